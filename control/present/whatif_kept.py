"""Forks that are kept: the list, and two of them side by side."""

from collections.abc import Mapping, Sequence
from typing import Any

from control.present.cells import Cell, Table, amount, measured, share, signed
from control.present.units import NOTHING
from control.present.whatif import (
    AS_IT_IS,
    Run,
    band,
    best_of,
    change,
    computing,
    figure,
    result_of,
    setting_of,
    settings_of,
    with_band,
)
from control.present.whatif_apply import guard_of, outcome, undone
from control.present.whatif_ask import what

HEIGHT_PX = 240
_STATES = {"running": "… running", "failed": "✕ failed"}
_KINDS = {"kept": "good", "rolled_back": "late", "watching": "amber"}


def history(runs: Sequence[Run], clocks: Sequence[str], shown: int | None = None) -> Table:
    """The forks, newest first; `clocks` are their wall times as text, `shown` is the one in view."""
    heads = [Cell("Fork"), Cell("Time"), Cell("What"), Cell("Ahead", "num"), Cell("Best"), Cell("P95", "num")]
    heads += [Cell("As it is", "num"), Cell("Applied")]
    return Table(heads, [_row(run, clock, run["id"] == shown) for run, clock in zip(runs, clocks, strict=True)])


def label(run: Run, clock: str) -> str:
    """A fork in a select box."""
    return f"#{run['id']}, {clock}: {what(run['params'].get('spec') or {})}"


def pairs(one: Run, other: Run) -> list[tuple[str, Mapping[str, Any] | None, Mapping[str, Any] | None]]:
    """Best of both, then the settings of equal name, in the order of the first."""
    best = [setting_of(run, best_of(run)) for run in (one, other)]
    named = {str(s["name"]): s for s in settings_of(other)}
    alike = [(str(s["name"]), s, named[str(s["name"])]) for s in settings_of(one) if str(s["name"]) in named]
    return [("best", best[0], best[1]), *alike]


def compared(one: Run, other: Run) -> Table:
    """Two forks side by side: P95 with its band, attainment and debt of the settings that both have."""
    ids = f"#{one['id']}", f"#{other['id']}"
    heads = [Cell("Setting"), *(Cell(f"P95 {name}", "num") for name in ids), Cell("Difference", "num")]
    heads += [Cell(f"Attainment {name}", "num") for name in ids] + [Cell(f"SLO debt {name}", "num") for name in ids]
    return Table(heads, [_compare(*pair) for pair in pairs(one, other)])


def lines(one: Run, other: Run) -> dict[str, Any]:
    """P95 of the best setting of both over the time from their forks."""
    drawn = [_line(run, colour) for run, colour in ((one, "@blue"), (other, "@amber"))]
    layout = {
        "margin": {"l": 52, "r": 12, "t": 24, "b": 40},
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "xaxis": {"title": {"text": "min from the fork"}, "showgrid": False},
        "yaxis": {"title": {"text": "P95 latency, s"}, "rangemode": "tozero"},
    }
    return {"data": [trace for traces in drawn for trace in traces], "layout": layout, "height": HEIGHT_PX}


def missing(number: int) -> str:
    """The sentence for a number that no stored fork has."""
    return f"No fork {number} is in the store. Choose one of the list of forks below."


def _row(run: Run, clock: str, shown: bool) -> list[Cell]:
    asked = run["params"].get("spec") or {}
    state, guard = str(result_of(run).get("state")), guard_of(run)
    best = setting_of(run, best_of(run))
    name = "as it is" if best is None or best["index"] == AS_IT_IS else str(best["name"])
    applied = Cell(outcome(run), _KINDS.get(str(guard.get("state")), "muted") if guard and not undone(run) else "muted")
    return [
        Cell(f"#{run['id']}", "id strong" if shown else "id", fork=run["id"]),
        Cell(clock, "muted"),
        Cell(what(asked)),
        Cell(f"{float(asked.get('minutes') or 0.0):g} min", "num"),
        Cell(_STATES.get(state, name), "late" if state == "failed" else "muted" if computing(run) else ""),
        Cell(with_band(figure(best, "p95_s")), "num"),
        amount(figure(setting_of(run, AS_IT_IS), "p95_s").mean, "s"),
        applied,
    ]


def _compare(name: str, one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> list[Cell]:
    p95 = [figure(s, "p95_s") for s in (one, other)]
    if name == "best":
        name = "best: " + ", ".join(str(s["name"]) if s else NOTHING for s in (one, other))
    cells = [Cell(name), *(Cell(measured(f.mean, "s"), "num", hint=f"80 % band: {band(f)}") for f in p95)]
    gap = NOTHING if p95[0].mean is None or p95[1].mean is None else signed(p95[0].mean - p95[1].mean)
    share_of = change(p95[0].mean, p95[1].mean)
    cells.append(Cell(gap, "num", hint="" if gap == NOTHING else f"{share_of} of the second"))
    cells += [share(figure(s, "slo_attainment").mean) for s in (one, other)]
    return cells + [amount(figure(s, "slo_debt_s").mean, "s") for s in (one, other)]


def _line(run: Run, colour: str) -> list[dict[str, Any]]:
    best = setting_of(run, best_of(run)) or {}
    line = (best.get("lines") or {}).get("p95_s") or {}
    x = [round(s / 60.0, 3) for s in result_of(run).get("times_s") or ()]
    edge: dict[str, Any] = {"type": "scatter", "mode": "lines", "x": x, "line": {"width": 0}, "hoverinfo": "skip"}
    edge |= {"showlegend": False}
    name = f"#{run['id']} {best.get('name', '')}".strip()
    mean = {"type": "scatter", "mode": "lines", "x": x, "y": line.get("mean") or [], "name": name}
    mean |= {"line": {"color": colour, "width": 1.8}}
    mean |= {"hovertemplate": "after %{x:.1f} min: %{y:.3g} s<extra></extra>"}
    filled = {"fill": "tonexty", "fillcolor": f"{colour}/0.16"}
    return [edge | {"y": line.get("low") or []}, edge | {"y": line.get("high") or []} | filled, mean]
