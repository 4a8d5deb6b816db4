"""What would happen if? A stored fork in; the table of its settings and words out (its lines: `whatif_picture`).

Runs are those of the store's runs of kind "whatif". Their result grows while the engine computes: the settings
that are done stand in `result["settings"]`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from control.present.cells import Cell, Table, amount, measured, percent, share
from control.present.units import MINUS, NOTHING, number, seconds
from control.present.whatif_ask import ahead

Run = Mapping[str, Any]
Setting = Mapping[str, Any]
DEBT = Cell(
    "SLO debt, ended",
    "num",
    hint="Past their deadlines, of all that end ahead; the line is of open ones at a time",
)
#: Index of the setting that changes nothing.
AS_IT_IS = 0


class Figure(NamedTuple):
    """A figure over the seeds: its mean and the band that holds 80 % of them; None where there is none."""

    mean: float | None = None
    low: float | None = None
    high: float | None = None


def result_of(run: Run) -> Mapping[str, Any]:
    """What is there of a run's result."""
    found = run.get("result")
    return found if isinstance(found, Mapping) else {}


def computing(run: Run | None) -> bool:
    """Whether the engine is still at it."""
    return run is not None and result_of(run).get("state") == "running"


def settings_of(run: Run) -> list[Setting]:
    """The settings that are done, in the order of the spec."""
    return list(result_of(run).get("settings") or ())


def names_of(run: Run) -> dict[int, str]:
    """Index and name of all settings that were asked for, those that are not done included."""
    asked = enumerate((run["params"].get("spec") or {}).get("settings") or ())
    return {k: str(s.get("name", "")) for k, s in asked} | {int(s["index"]): str(s["name"]) for s in settings_of(run)}


def possible(run: Run) -> list[Setting]:
    """The settings that are done and can be."""
    return [s for s in settings_of(run) if not s.get("problem")]


def setting_of(run: Run, index: int | None) -> Setting | None:
    """The setting of that index, None where it is not done."""
    return next((s for s in settings_of(run) if s["index"] == index), None)


def best_of(run: Run) -> int:
    """Index of the best setting, of `AS_IT_IS` while nothing is surely better."""
    return int(result_of(run).get("best") or AS_IT_IS)


def figure(setting: Setting | None, name: str) -> Figure:
    """A figure of a setting."""
    found = (setting or {}).get("figures", {}).get(name) or {}
    return Figure(found.get("mean"), found.get("low"), found.get("high"))


def about(run: Run, clock: str) -> str:
    """From when the fork is and what it looks at, in words; `clock` is its wall time as text."""
    params = run["params"]
    asked = params.get("spec") or {}
    back_s = float(asked.get("back_s") or 0.0)
    ago = f", {seconds(back_s)} back" if back_s else ""
    where = f"{params.get('policy', NOTHING)}, α {params['alpha']:.2f}" if params.get("alpha") is not None else ""
    facts = [
        f"Forked at {clock}",
        f"simulated {number(round(params.get('sim_s', 0.0)), 6)} s{ago}",
        ahead(asked),
        where,
    ]
    return ", ".join(fact for fact in facts if fact)


def took(run: Run) -> str:
    """How long it took, in words; "" while nothing is known."""
    result = result_of(run)
    first_s, wall_s, cpu_s = (result.get(key) for key in ("first_s", "wall_s", "cpu_s"))
    if first_s is None:
        return ""
    done = len(settings_of(run))
    if result.get("state") == "running":
        return f"first setting after {measured(first_s, 's')}, {done} of {len(names_of(run))} done"
    cost = f" ({measured(cpu_s, 's')} of CPU)" if cpu_s else ""
    return f"first setting after {measured(first_s, 's')}, all {done} after {measured(wall_s, 's')}{cost}"


def words(setting: Setting | None) -> str:
    """A setting's P95 with its band, debt and power, in words."""
    if setting is None:
        return NOTHING
    if setting.get("problem"):
        return f"cannot be: {setting['problem']}"
    debt, power = figure(setting, "slo_debt_s"), figure(setting, "power_w")
    rest = [f"SLO debt of what ends {measured(debt.mean, 's')}", f"{measured(power.mean, 'W')}"]
    return ", ".join([f"P95 {with_band(figure(setting, 'p95_s'))}", *(part for part in rest if NOTHING not in part)])


def with_band(found: Figure) -> str:
    """A time with its band, e.g. "12.1 s (10.9 to 13.4 s)"."""
    if found.mean is None:
        return NOTHING
    return f"{measured(found.mean, 's')} ({band(found)})" if found.low is not None else measured(found.mean, "s")


def band(found: Figure) -> str:
    """The band of a time in words, e.g. "10.9 to 13.4 s"."""
    if found.low is None:
        return NOTHING
    low, high = measured(found.low, "s"), measured(found.high, "s")
    figure_, _, unit = low.partition(" ")
    return f"{figure_} to {high}" if high.endswith(f" {unit}") else f"{low} to {high}"


def table(run: Run) -> Table:
    """A row a setting; one that is not done yet waits with its name."""
    heads = [Cell("Setting"), Cell("P50", "num"), Cell("P95", "num"), Cell("80 % band", "num", hint="Over the seeds")]
    heads += [Cell("P95 change", "num", hint="Against as it is"), Cell("Attainment", "num"), DEBT]
    heads += [Cell("Ended", "num", hint="Workflows per second"), Cell("TTFET P95", "num"), Cell("tok/J", "num")]
    heads += [Cell("Power", "num"), Cell("Remark")]
    unchanged = figure(setting_of(run, AS_IT_IS), "p95_s").mean
    done = {int(setting["index"]): setting for setting in settings_of(run)}
    waits = "" if result_of(run).get("state") in ("done", "failed") else "…"
    rows = [
        _row(run, done[k], unchanged) if k in done else _blank(name, Cell(waits, "muted"))
        for k, name in names_of(run).items()
    ]
    return Table(heads, rows)


def verdict(run: Run) -> str:
    """What the fork says, in one sentence."""
    best, shown = best_of(run), result_of(run)
    if shown.get("state") == "running":
        return "Which is best is known once all are done."
    if shown.get("state") != "done":
        return "It was not finished, so which is best is not known."
    found, others = setting_of(run, best), [one for one in possible(run) if one["index"] != AS_IT_IS]
    if others and not any(one.get("applicable") for one in others):
        return "Nothing to choose here, but what may happen: read each beside as it is. Latencies are of what ended."
    if best == AS_IT_IS or found is None:
        return "No setting is surely better than as it is."
    gain = change(figure(found, "p95_s").mean, figure(setting_of(run, AS_IT_IS), "p95_s").mean)
    return f"Best: {found['name']}, P95 {with_band(figure(found, 'p95_s'))}, {gain} against as it is."


def change(value: float | None, base: float | None) -> str:
    """The change from `base` to `value` in % with its sign."""
    if value is None or not base:
        return NOTHING
    points = round(100.0 * (value / base - 1.0), 1) + 0.0
    sign = MINUS if points < 0 else "+" if points > 0 else ""
    return f"{sign}{abs(points):.{1 if abs(points) < 10 else 0}f} %"


def _row(run: Run, setting: Setting, unchanged_s: float | None) -> list[Cell]:
    """One setting of the table; one that cannot be says why."""
    index, name = int(setting["index"]), str(setting["name"])
    if setting.get("problem"):
        return _blank(name, Cell(f"✕ {setting['problem']}", "amber wrap"))
    p95 = figure(setting, "p95_s")
    best = index == best_of(run) != AS_IT_IS
    return [
        Cell(name, "strong" if best else ""),
        amount(figure(setting, "p50_s").mean, "s"),
        amount(p95.mean, "s"),
        Cell(band(p95), "num muted"),
        Cell("" if index == AS_IT_IS else change(p95.mean, unchanged_s), "num"),
        share(figure(setting, "slo_attainment").mean),
        amount(figure(setting, "slo_debt_s").mean, "s"),
        Cell(measured(figure(setting, "throughput_wps").mean, "/s"), "num"),
        amount(figure(setting, "ttfet_p95_s").mean, "s"),
        Cell(measured(figure(setting, "tokens_per_joule").mean, ""), "num"),
        Cell(measured(figure(setting, "power_w").mean, "W"), "num"),
        _remark(setting, best),
    ]


def _blank(name: str, remark: Cell) -> list[Cell]:
    """The row of a setting without figures."""
    return [Cell(name), *(Cell(NOTHING, "num muted") for _ in range(10)), remark]


def _remark(setting: Setting, best: bool) -> Cell:
    """Best, refused work, and whether it could be applied."""
    said = ["✓ best"] if best else []
    if early := setting.get("seeds"):
        said.append(f"of the first {number(early)} seeds")
    if refused := figure(setting, "refused").mean:
        said.append(f"{number(refused)} refused")
    if setting.get("applicable") is False and setting["index"] != AS_IT_IS:
        said.append("not live")
    hint = str(setting.get("why_not") or "") if "not live" in said else ""
    return Cell(", ".join(said), "good" if best else "muted", hint=hint)


def attained(setting: Setting | None) -> str:
    """A setting's SLO attainment in %."""
    return percent(figure(setting, "slo_attainment").mean)
