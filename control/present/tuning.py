"""Which α, and did it keep its promise? Runs of the tuner in; curve, promise chart, history and words out.

Figures are plain dicts for Plotly.js with named colours ("@blue"), which the browser replaces by the theme's.
Run rows are those of the store's runs of kind "tune".
"""

from collections.abc import Mapping, Sequence
from typing import Any

from control.present.cells import Cell, Table, duration, tidy
from control.present.units import MINUS, NOTHING, number, seconds
from control.present.verdicts import fate, missed, stood_review, why

Run = Mapping[str, Any]
TRIGGERS = {"period": "timer", "drift": "load drifted", "button": "dashboard", "cli": "command line"}
MODES = {"off": "Off", "suggest": "Suggest", "auto": "Auto"}
MODE_NOTES = {
    "off": "Nothing runs by itself; Run tuning still does.",
    "suggest": "Runs by itself and proposes; you apply.",
    "auto": "Runs by itself, applies what is surely better, and rolls back what is not.",
}
HEIGHT_PX = 270


def curve(run: Run, alpha: float) -> dict[str, Any]:
    """P95 over α as the run's replay found it, with its band, today's `alpha` and the chosen one marked."""
    points, chosen = run["result"]["curve"], float(run["result"]["alpha"])
    x = [p["alpha"] for p in points]
    low, high = ([round(p[k], 3) for p in points] for k in ("low_s", "high_s"))
    p95 = [round(p["p95_s"], 3) for p in points]
    line: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": "P95",
        "x": x,
        "y": p95,
        "line": {"color": "@blue", "width": 1.6},
    }
    line |= {"marker": {"size": 5, "color": "@blue"}, "hovertemplate": "α %{x:.2f}: P95 %{y:.3g} s<extra></extra>"}
    best = [p for p in points if abs(p["alpha"] - chosen) < 1e-9]
    marked: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "x": [p["alpha"] for p in best],
        "y": [p["p95_s"] for p in best],
    }
    marked |= {"marker": {"size": 11, "symbol": "diamond", "color": "@amber"}, "hoverinfo": "skip", "name": "chosen"}
    layout = _layout("α", "P95 latency, s", [-0.02, 1.02], [0, max(high, default=1.0) * 1.12])
    marks = [(chosen, f"chosen {chosen:.2f}", "@amber")] + (
        [(alpha, f"now {alpha:.2f}", "@text")] if abs(alpha - chosen) > 1e-9 else []
    )
    layout |= {"shapes": [_line(at, colour) for at, _, colour in marks], "annotations": _names(marks)}
    return {"data": [*_band(x, low, high), line, marked], "layout": layout, "height": HEIGHT_PX}


def kept(runs: Sequence[Run]) -> list[Run]:
    """Runs whose promise was put to the test: what they predicted and what came of it are both known."""
    return [
        r
        for r in runs
        if r["result"].get("realised_p95_s") is not None and r["result"].get("predicted_p95_s") is not None
    ]


def promise(runs: Sequence[Run]) -> dict[str, Any]:
    """Predicted against realised P95 of tested runs, with the predicted band and the diagonal of kept promises."""
    results = [r["result"] for r in kept(runs)]
    x, y = ([round(r[k], 3) for r in results] for k in ("predicted_p95_s", "realised_p95_s"))
    up = [round(r["predicted_high_s"] - r["predicted_p95_s"], 3) for r in results]
    down = [round(r["predicted_p95_s"] - r["predicted_low_s"], 3) for r in results]
    end = 1.12 * max([*x, *y, *(r["predicted_high_s"] for r in results), 0.1])
    diagonal: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines",
        "x": [0, end],
        "y": [0, end],
        "hoverinfo": "skip",
        "name": "as promised",
    }
    diagonal |= {"line": {"color": "@muted", "dash": "dash", "width": 1}}
    dots: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "name": "runs",
        "x": x,
        "y": y,
        "marker": {"size": 8, "color": [_verdict(r) for r in results], "symbol": [_symbol(r) for r in results]},
    }
    dots |= {
        "error_x": {"type": "data", "array": up, "arrayminus": down, "color": "@muted", "thickness": 1, "width": 3}
    }
    dots |= {"customdata": [[r["alpha"], fate(r).text] for r in results]}
    told = "α %{customdata[0]:.2f}: predicted %{x:.3g} s, realised %{y:.3g} s, %{customdata[1]}<extra></extra>"
    dots |= {"hovertemplate": told}
    layout = _layout("predicted P95, s", "realised P95, s", [0, end], [0, end])
    return {"data": [diagonal, dots], "layout": layout, "height": HEIGHT_PX}


def score(runs: Sequence[Run]) -> str:
    """How many promises were kept, in words."""
    results = [r["result"] for r in kept(runs)]
    if not results:
        return "No applied run has been put to the test yet."
    within, reviewed = (sum(map(test, results)) for test in (lambda r: not missed(r), stood_review))
    rest = f", {reviewed} above it but kept after review (hollow)" if reviewed else ""
    return f"{within} of {len(results)} at or below the predicted band{rest}"


def history(runs: Sequence[Run], clocks: Sequence[str]) -> Table:
    """The runs, newest first; `clocks` are their wall times as text."""
    heads = [
        Cell("Time"),
        Cell("Trigger"),
        Cell("α", "num"),
        Cell("Change in P95", "num", hint="Expected, with its band"),
    ]
    heads += [Cell("Predicted", "num"), Cell("Realised", "num"), Cell("Decision"), Cell("Reason")]
    return Table(heads, [_row(run, clock) for run, clock in zip(runs, clocks, strict=True)])


def about(run: Run) -> str:
    """What the run looked at and what it cost, in words."""
    params, cpu_s = run["params"], run["result"].get("cpu_s")
    looked = f"{number(params['calls'])} calls of the last {seconds(params['window_s'])}, {params['policy']}"
    cost = f", {seconds(tidy(cpu_s))} of CPU" if cpu_s else ""
    return f"replayed {looked}, {number(params['resamples'])} resamples for the band{cost}"


def effect(run: Run) -> str:
    """The predicted effect of the run's α, e.g. "P95 −12 % (−18 to −5 %)"."""
    result = run["result"]
    return f"P95 {_gain(result['gain'])} ({_gain(result['gain_high'])} to {_gain(result['gain_low'])})"


def standing(tuning: Mapping[str, Any]) -> str:
    """What the tuner does now, in words."""
    if tuning["running"]:
        share = tuning["progress"]
        return "… running" + ("" if share is None else f", {round(100 * share)} %")
    if tuning["mode"] == "off":
        return "Idle"
    wait = tuning["cooldown_s"]
    return f"Next run of its own in {seconds(tidy(wait))} at the earliest" if wait and wait > 0 else "Watches the load"


def suggestion(tuning: Mapping[str, Any], alpha: float) -> float | None:
    """The α proposed and not yet in force, None without one."""
    proposed = tuning["suggested_alpha"]
    return None if proposed is None or abs(proposed - alpha) < 1e-9 else float(proposed)


def run_of(tuning: Mapping[str, Any], runs: Sequence[Run]) -> Run | None:
    """The newest run that found the proposed α, None where it is not among `runs`."""
    proposed = tuning["suggested_alpha"]
    if proposed is None:
        return None
    return next((r for r in runs if abs(r["result"]["alpha"] - proposed) < 1e-9), None)


def _row(run: Run, clock: str) -> list[Cell]:
    params, result = run["params"], run["result"]
    before, after = params.get("alpha_before", result["current_alpha"]), result["alpha"]
    realised = result.get("realised_p95_s")
    alarming = missed(result) and not stood_review(result)
    return [
        Cell(clock, "muted"),
        Cell(TRIGGERS.get(params["trigger"], params["trigger"])),
        Cell(f"{before:.2f} → {after:.2f}", "num"),
        Cell(_gain(result["gain"]), "num", hint=effect(run)),
        duration(result.get("predicted_p95_s"))._replace(run=result.get("predicted_run")),
        Cell(("▲ " if alarming else "") + duration(realised).text, "num amber" if alarming else "num"),
        fate(result),
        Cell(why(result), "muted wrap"),
    ]


def _gain(gain: float | None) -> str:
    """A gain as the change of P95 in %: a gain of 0.12 is −12 %."""
    if gain is None:
        return NOTHING
    percent = round(-100 * gain, 1) + 0.0
    sign = MINUS if percent < 0 else "+" if percent > 0 else ""
    return f"{sign}{abs(percent):.{1 if abs(percent) < 10 else 0}f} %"


def _verdict(result: Mapping[str, Any]) -> str:
    return "@amber" if missed(result) and not stood_review(result) else "@blue"


def _symbol(result: Mapping[str, Any]) -> str:
    """Hollow where the promise was missed but stood the review."""
    return "circle-open" if stood_review(result) else "circle"


def _band(x: list[float], low: list[float], high: list[float]) -> list[dict[str, Any]]:
    edge = {"type": "scatter", "mode": "lines", "x": x, "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
    return [edge | {"y": low}, edge | {"y": high, "fill": "tonexty", "fillcolor": "@blue/0.18", "name": "band"}]


def _line(at: float, colour: str) -> dict[str, Any]:
    return {
        "type": "line",
        "x0": at,
        "x1": at,
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "line": {"color": colour, "dash": "dot", "width": 1},
    }


def _names(marks: Sequence[tuple[float, str, str]]) -> list[dict[str, Any]]:
    """Labels above the plot; two marks close together get a line each."""
    labels = []
    for place, (at, text, colour) in enumerate(marks):
        side = "right" if at > 0.75 else "left" if at < 0.25 else "center"
        near = place > 0 and abs(at - marks[0][0]) < 0.3
        where = {"x": at, "y": 1, "yref": "paper", "yanchor": "bottom", "yshift": 12 if near else 0, "xanchor": side}
        labels.append({"text": text, "font": {"color": colour}, "showarrow": False, **where})
    return labels


def _layout(x: str, y: str, x_range: list[float], y_range: list[float]) -> dict[str, Any]:
    return {
        "margin": {"l": 52, "r": 12, "t": 30, "b": 40},
        "showlegend": False,
        "xaxis": {"title": {"text": x}, "range": x_range, "showgrid": False},
        "yaxis": {"title": {"text": y}, "range": y_range},
    }
