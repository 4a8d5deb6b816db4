"""Real servers: whether each is well, what it says of itself, and how what its profile predicts compares."""

from collections.abc import Mapping, Sequence
from typing import Any

from control.present.cells import Cell, Table, measured, percent
from control.present.units import NOTHING, number, seconds

Row = Mapping[str, Any]
DRIFT_AMBER = 0.25  # predicted and served may differ by so much
METRICS_AMBER_S = 5.0  # age of the last scrape from which it is no longer trusted
HEALTH = {"ready": ("● ready", ""), "starting": ("○ not ready", "amber"), "sick": ("▲ taken out", "late")}
FRESH = {"live": "", "stale": "amber", "missing": "amber"}

#: While every instance is simulated: why the page is empty, the command that changes it, where more is told.
NONE = "Every instance of this fleet is simulated, so there is no server to watch. Give one a url in a fleet file:"
CONNECT = "headway up --fleet fleet.toml --gateway-port 8080"
GUIDE = "docs/connect.md shows such a file and what each key means."


def real(snapshot: Row) -> list[Row]:
    """The instances that are real servers and have been looked at."""
    return [row for row in snapshot["instances"] if row.get("observed")]


def summary(snapshot: Row) -> list[tuple[str, str, str, str]]:
    """The figures on top: (label, value, line below, "", "amber" or "late")."""
    rows = real(snapshot)
    seen = [row["observed"] for row in rows]
    ready = sum(one["health"] == "ready" for one in seen)
    faults = {name: sum(one["faults"][name] for one in seen) for name in ("sick", "full", "client")}
    ages = [one["metrics_age_s"] for one in seen if one["metrics_age_s"] is not None]
    drifts = [one["ttft_drift"] for one in seen if one.get("ttft_drift") is not None]
    worst = max(drifts, key=abs, default=None)
    return [
        ("Servers ready", f"{ready} of {len(rows)}", _simulated(snapshot), "" if ready == len(rows) else "late"),
        (
            "In flight",
            number(sum(row["running"] for row in rows)),
            _flights(rows),
            "",
        ),
        (
            "Faults",
            number(sum(faults.values())),
            f"{faults['sick']} sick, {faults['full']} full, {faults['client']} the client's",
            "amber" if faults["sick"] else "",
        ),
        ("Oldest metrics", _seconds(max(ages)) if ages else NOTHING, "age of the last scrape", _old(ages)),
        ("Worst drift", _signed(worst), "TTFT served against predicted", _off(worst)),
    ]


def health(snapshot: Row) -> Table:
    """One row a server: is it well, and do its counts and ours agree?"""
    heads = [Cell("Server", "id"), Cell("Health"), Cell("In flight", "num", hint="Calls we have sent and not ended")]
    heads += [Cell("Its running", "num", hint="As its metrics say"), Cell("Its waiting", "num")]
    heads += [Cell("KV by us", "num", hint="By our own books"), Cell("KV by it", "num", hint="As its metrics say")]
    heads += [Cell("Power", "num"), Cell("Metrics", hint="Age of the last scrape"), Cell("Sent", "num")]
    heads += [Cell("Sick", "num", hint="Unreachable, broken or silent; three in a row take it out")]
    heads += [Cell("Full", "num"), Cell("Engine"), Cell("Remark")]
    return Table(heads, [_health(row) for row in real(snapshot)])


def predictions(snapshot: Row) -> Table:
    """One row a server: TTFT and TPOT as its profile predicts them when a call is sent, beside what was served."""
    heads = [Cell("Server", "id"), Cell("Profile"), Cell("Refined", hint="Factors learned from live answers")]
    heads += [Cell("Calls", "num", hint="Compared; the newest 200")]
    for name in ("TTFT", "TPOT"):
        heads += [Cell(f"{name} predicted", "num"), Cell("served", "num"), Cell("drift", "num", hint="Median")]
    return Table(heads, [_prediction(row) for row in real(snapshot)])


def _health(row: Row) -> list[Cell]:
    seen = row["observed"]
    word, kind = HEALTH[seen["health"]]
    if row["state"] == "draining":
        word, kind = "◐ draining", "amber"
    return [
        Cell(str(row["name"]), "id", hint=str(seen["url"])),
        Cell(word, kind),
        Cell(number(row["running"]), "num"),
        _count(seen["seen_running"]),
        _count(seen["seen_waiting"]),
        Cell(percent(row["kv_used_fraction"]), "num"),
        Cell(percent(seen["seen_kv_used_fraction"]), "num"),
        Cell(measured(row["power_w"], "W"), "num", hint=str(seen["power_error"] or "")),
        Cell(_age(seen), FRESH[seen["metrics"]], hint=str(seen["metrics_failure"] or "")),
        Cell(number(seen["sent"]), "num"),
        Cell(number(seen["faults"]["sick"]), "num late" if seen["faults"]["sick"] else "num"),
        Cell(number(seen["faults"]["full"]), "num"),
        Cell(" ".join(str(part) for part in (seen["seen_engine"], seen["seen_version"]) if part) or NOTHING),
        Cell(str(seen["suspect"] or seen["power_error"] or seen["reason"] or "")[:120]),
    ]


def _prediction(row: Row) -> list[Cell]:
    seen = row["observed"]
    prefill, decode = row.get("scales") or (1.0, 1.0)
    words = "" if (prefill, decode) == (1.0, 1.0) else f"prefill ×{number(prefill)}, decode ×{number(decode)}"
    cells = [Cell(str(row["name"]), "id"), Cell(str(row["provenance"])), Cell(words or "as it is")]
    cells.append(Cell(number(seen["compared"]), "num"))
    for name in ("ttft", "tpot"):
        drift = seen.get(f"{name}_drift")
        cells += [
            Cell(_time(seen[f"predicted_{name}_s"]), "num"),
            Cell(_time(seen[f"{name}_s"]), "num"),
            Cell(_signed(drift), "num late" if _off(drift) else "num"),
        ]
    return cells


def _time(value: float | None) -> str:
    return NOTHING if value is None else measured(1e3 * value, "ms") if value < 1.0 else seconds(value)


def _count(value: float | None) -> Cell:
    return Cell(NOTHING if value is None else number(value), "num")


def _age(seen: Row) -> str:
    if seen["metrics"] == "missing":
        return "missing"
    return f"{seen['metrics']}, {_seconds(seen['metrics_age_s'])}"


def _seconds(age_s: float) -> str:
    return f"{age_s:.1f} s" if age_s < 10.0 else seconds(round(age_s))


def _signed(drift: float | None) -> str:
    return NOTHING if drift is None else f"{'+' if drift >= 0 else '−'}{abs(100 * drift):.0f} %"


def _off(drift: float | None) -> str:
    return "amber" if drift is not None and abs(drift) > DRIFT_AMBER else ""


def _old(ages: Sequence[float]) -> str:
    return "amber" if ages and max(ages) > METRICS_AMBER_S else ""


def _flights(rows: Sequence[Row]) -> str:
    waiting, sent = sum(int(row["queued"]) for row in rows), sum(row["observed"]["sent"] for row in rows)
    return f"{number(waiting)} wait here, {number(sent)} sent so far"


def _simulated(snapshot: Row) -> str:
    n = sum(bool(row.get("simulated", True)) for row in snapshot["instances"])
    return f"{n} simulated beside them" if n else "none simulated"
