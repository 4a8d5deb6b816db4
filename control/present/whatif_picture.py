"""The lines of a fork: all that the browser draws, in one piece, so that it shows another setting without asking."""

from collections.abc import Iterable, Mapping, Sequence
from math import floor, isfinite, log10
from typing import Any

from control.present.units import seconds
from control.present.whatif import Run, Setting, names_of, possible, result_of, words

Values = Sequence[float | None]
#: Lines that are drawn: key, title, unit. The first is the large one.
LINES = (
    ("p95_s", "P95 latency", "s"),
    ("slo_debt_s", "SLO debt of open workflows", "s"),
    ("queued", "Queued calls", "calls"),
    ("power_w", "GPU power", "W"),
)
#: How much higher than the highest mean a band may reach before the axis cuts it off.
BAND_ROOM = 2.0
#: Points a line at most, and significant digits of the highest value.
MOST_POINTS, DIGITS = 90, 4


def picture(run: Run, selected: int, debt_limit_s: float | None = None) -> dict[str, Any]:
    """All that the browser draws; `selected` is the setting shown until the viewer picks one.

    Times are minutes from the fork; "alpha" is the one in force then, None under a policy without one; `debt_limit_s`
    is drawn where the debt comes near it.
    """
    drawn = possible(run)
    back_s = float((run["params"].get("spec") or {}).get("back_s") or 0.0)
    return {
        "run": run["id"],
        "selected": selected,
        "alpha": run["params"].get("alpha"),
        "now": f"{seconds(back_s)} ago" if back_s else "now",
        "settings": [_choice(run, setting) for setting in drawn],
        "rows": list(names_of(run)),
        "sweep": sweep(run),
        "charts": [_chart(run, drawn, *line, debt_limit_s if line[0] == "slo_debt_s" else None) for line in LINES],
    }


def sweep(run: Run) -> bool:
    """Whether α is all that differs between the settings beside the one in force."""
    asked = (run["params"].get("spec") or {}).get("settings") or []
    beside = [setting for setting in asked if setting.get("name") != "as it is"]
    return len(beside) > 2 and all(set(setting) == {"name", "alpha"} for setting in beside)


def _choice(run: Run, setting: Setting) -> dict[str, Any]:
    """What the browser says of a setting; `alpha` puts it on the slider."""
    asked = (run["params"].get("spec") or {}).get("settings") or []
    index = int(setting["index"])
    alpha = asked[index].get("alpha") if index < len(asked) else None
    return {"index": index, "name": str(setting["name"]), "words": words(setting), "alpha": alpha}


def _chart(run: Run, drawn: Sequence[Setting], key: str, title: str, unit: str, limit: float | None) -> dict[str, Any]:
    """One line of all settings, each going on from where the past ends; of a fork of the past also what came since."""
    past, times = run["params"].get("past") or {}, result_of(run).get("times_s") or ()
    before = past.get(key) or ()
    kept, shown = _spread(len(before)), _spread(len(times))
    lines = {int(s["index"]): (s.get("lines") or {}).get(key) or {} for s in drawn}
    since, end_s = past.get("since") or {}, times[-1] if times else 0.0
    after = (since.get(key) or ())[: sum(s <= end_s for s in since.get("times_s") or ())]
    came = _spread(len(after))
    high = _highest([*before, *after], lines.values())
    decimals = max(0, DIGITS - 1 - floor(log10(high))) if high > 0.0 else DIGITS
    joint = _rounded(before, [len(before) - 1], decimals) if before else []
    lead = [] if joint == [None] else joint
    at = [_minutes(past["times_s"][k]) for k in kept]
    return {
        "key": key,
        "title": title,
        "unit": unit,
        "past": {"x": [*at, 0.0], "y": _rounded(before, kept, decimals) + joint} if before else {"x": [], "y": []},
        "since": {"x": [_minutes(since["times_s"][k]) for k in came], "y": _rounded(after, came, decimals)},
        "x": [0.0] * len(lead) + [_minutes(times[k]) for k in shown],
        "lines": {str(k): _line(line, shown, lead, decimals) for k, line in lines.items()},
        "high": high,
        "limit": limit if limit is not None and high >= 0.5 * limit else None,
    }


def _line(line: Mapping[str, Values], shown: Sequence[int], lead: Sequence[float | None], decimals: int) -> Any:
    """Mean, low and high, each led by the last value of the past where there is one."""
    return {name: [*lead, *_rounded(line.get(name) or (), shown, decimals)] for name in ("mean", "low", "high")}


def _highest(before: Values, lines: Iterable[Mapping[str, Values]]) -> float:
    """The highest that is drawn: all means, and the bands as far as they do not dwarf them."""
    listed = list(lines)
    means = [_most(before), *(_most(line.get("mean") or ()) for line in listed)]
    highs = [_most(line.get("high") or ()) for line in listed]
    highest = max(means)
    return max(highest, min(max(highs, default=0.0), BAND_ROOM * highest))


def _most(values: Values) -> float:
    return float(max((v for v in values if v is not None and isfinite(v)), default=0.0))


def _spread(count: int) -> list[int]:
    """At most `MOST_POINTS` places of `count`, evenly apart, the last one among them."""
    step = max(1, -(-count // MOST_POINTS))
    return list(range(count - 1, -1, -step))[::-1]


def _rounded(values: Values, places: Sequence[int], decimals: int) -> list[float | None]:
    """The values at `places`, None where there is none, with the digits that a chart shows."""
    there = [values[k] if k < len(values) else None for k in places]
    return [None if v is None or not isfinite(v) else round(v, decimals) for v in there]


def _minutes(time_s: float) -> float:
    return round(time_s / 60.0, 3)
