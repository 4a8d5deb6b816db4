"""Synthetic forks in the engine's format: params and result of stored runs of kind "whatif"."""

from typing import Any

from storage import runs
from storage.open import Store

TIMES_S = [10.0 * k for k in range(1, 31)]
FIGURES = {
    "p50_s": 4.1,
    "mean_s": 5.2,
    "slo_attainment": 0.93,
    "slo_debt_s": 41.0,
    "throughput_wps": 0.83,
    "ttft_p95_s": 1.9,
    "ttfet_p95_s": 3.3,
    "tokens_per_joule": 2.41,
    "power_w": 1310.0,
    "refused": 0.0,
}
SWEEP: list[dict[str, Any]] = [{"name": f"α {k / 10:.2f}", "alpha": k / 10} for k in range(11)]


def band(mean: float | None, spread: float = 0.1) -> dict[str, float | None]:
    """A figure with its band, `spread` of the mean to both sides."""
    if mean is None:
        return {"mean": None, "low": None, "high": None}
    return {"mean": mean, "low": mean * (1.0 - spread), "high": mean * (1.0 + spread)}


def line(start: float, end: float) -> dict[str, list[float | None]]:
    """A line from `start` to `end` with a band that widens."""
    shares = [k / (len(TIMES_S) - 1) for k in range(len(TIMES_S))]
    mean = [start + (end - start) * s for s in shares]
    low, high = ([m * (1.0 + sign * 0.15 * s) for m, s in zip(mean, shares, strict=True)] for sign in (-1, 1))
    return {"mean": list(mean), "low": list(low), "high": list(high)}


def setting(index: int, name: str, p95_s: float = 13.0, **changed: Any) -> dict[str, Any]:
    """One setting that is done; keyword arguments replace its keys."""
    figures = {key: band(value) for key, value in FIGURES.items()} | {"p95_s": band(p95_s)}
    figures["slo_debt_s"] = band(3.0 * p95_s)
    lines = {"p95_s": line(13.0, p95_s), "slo_debt_s": line(39.0, 3.0 * p95_s)}
    lines |= {"queued": line(6.0, p95_s / 2.0), "power_w": line(1300.0, 1250.0 + 5.0 * p95_s)}
    row = {"index": index, "name": name, "problem": None, "figures": figures, "lines": lines}
    row |= {"applicable": True, "why_not": "", "commands": []}
    return row | changed


def swept() -> list[dict[str, Any]]:
    """As it is (α 0.20) and the sweep; α 0.60 is the best."""
    rows = [setting(0, "as it is", 13.2)]
    for k, asked in enumerate(SWEEP, 1):
        p95_s = 10.0 + 20.0 * (asked["alpha"] - 0.6) ** 2
        rows.append(setting(k, asked["name"], p95_s, commands=[["alpha", {"alpha": asked["alpha"]}]]))
    return rows


def params(asked: list[dict[str, Any]] | None = None, **spec: Any) -> dict[str, Any]:
    """What was asked; keyword arguments replace keys of the spec."""
    settings = [{"name": "as it is"}, *(SWEEP if asked is None else asked)]
    whole = {"minutes": 5.0, "seeds": 8, "arrivals": "resampled", "back_s": 0.0, "settings": settings} | spec
    times = [-5.0 * k for k in range(60, -1, -1)]
    past = {"times_s": times, "p95_s": [11.0 + 2.0 * (1 + t / 300.0) for t in times]}
    past |= {"slo_debt_s": [20.0 + 19.0 * (1 + t / 300.0) for t in times]}
    past |= {
        "queued": [4.0 + (k % 5) for k in range(len(times))],
        "power_w": [1290.0 + (k % 7) for k in range(len(times))],
    }
    row = {"spec": whole, "sim_s": 4210.0, "at": 1_800_000_000.0, "policy": "hexgen", "alpha": 0.2}
    row |= {"scenario": "demo-mixed", "fleet": "demo-mixed", "speed": 10.0, "window_s": 300.0, "past": past}
    return row


def result(settings: list[dict[str, Any]] | None = None, **changed: Any) -> dict[str, Any]:
    """What came out; keyword arguments replace its keys."""
    rows = swept() if settings is None else settings
    row = {"state": "done", "reason": None, "progress": 1.0, "wall_s": 1.9, "cpu_s": 3.4, "first_s": 0.31}
    row |= {"times_s": TIMES_S, "settings": rows, "best": 7 if settings is None else 0, "guard": None}
    return row | changed


def guard(state: str = "watching", realised_p95_s: float | None = None, **changed: Any) -> dict[str, Any]:
    """What watches the α 0.60 that was applied."""
    row = {"setting": 7, "until_sim_s": 4510.0, "high_s": 11.0, "low_s": 9.0, "state": state, "why": ""}
    return row | {"realised_p95_s": realised_p95_s} | changed


def run(number: int = 12, settings: list[dict[str, Any]] | None = None, **changed: Any) -> dict[str, Any]:
    """A stored fork as a reader gives it; keyword arguments replace keys of its result."""
    row = {"id": number, "created_at": 1_800_000_000.0, "kind": "whatif", "label": "", "seed": None}
    return row | {"params": params(), "result": result(settings, **changed)}


def store_fork(store: Store, settings: list[dict[str, Any]] | None = None, **changed: Any) -> int:
    """Store a fork of the sweep; its number."""
    return runs.save(store, "whatif", params(), result(settings, **changed))
