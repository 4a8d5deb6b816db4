"""The timeline of one workflow as a Gantt figure: what each of its calls waited for, one row a call.

Figures are plain dicts for Plotly.js. Colours are names ("@blue"), which the browser replaces by those of the
theme in use.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from control.present.cells import tidy
from control.present.units import seconds

#: Time of a call by phase in the order it is drawn: field, name, colour, hatch.
PHASES = (
    ("failure_s", "failure", "@red", "x"),
    ("queue_s", "queue", "@muted", ""),
    ("prefill_s", "prefill", "@pale", ""),
    ("preempted_s", "preemption", "@amber", "/"),
    ("hold_s", "held", "@muted", "\\"),
    ("transfer_s", "KV transfer", "@violet", "."),
    ("decode_s", "decode", "@primary", ""),
)
#: What is told of the turn of a conversation on its way, in this order; s since the workflow's arrival, None: not yet.
TURN = (
    *("call", "instance", "ready_s", "first_token_s", "finished_s"),
    *("queue_s", "prefill_s", "hold_s", "transfer_s", "preempted_s", "failure_s", "decode_s"),
    *("tool_s", "state", "broke"),
)
#: Why a conversation lost its KV, in words.
BREAKS = {
    "instance_lost": "its decoder failed or drained",
    "evicted": "others needed the blocks",
    "expired": "idle for longer than allowed",
    "compacted": "its own turn shrank the context",
    "unfit": "another policy or the context limit took it off its decoder",
}
#: States of a call that ran to its end.
ENDED = ("completed", "done")
#: Calls of a figure at most: more rows than that are thinner than a line of text.
MOST_CALLS = 80
ROW_PX, FRAME_PX = 22, 54
#: Numbers of calls that one workflow has.
CALLS_OF_ONE = 100_000


def figure(
    timeline: Sequence[Mapping[str, Any]], slo_s: float | None, plan_s: float | None, now_s: float | None = None
) -> dict[str, Any]:
    """The figure: data, layout and its height in px. x is s since the workflow's arrival; `now_s`: it is under way."""
    calls = ordered(timeline)
    labels = [_label(call) for call in calls]
    bars = [_bars(calls, *phase) for phase in PHASES]
    traces = [t for t in (*bars, _tools(calls)) if any(t["x"])]
    lines = [("SLO", slo_s, "dash"), ("plan", plan_s, "dot"), ("now", now_s, "dot")]
    marks = [(name, at, dash) for name, at, dash in lines if at is not None]
    return {
        "data": [*traces, _budgets(calls), *_breaks(calls)],
        "layout": _layout(labels, marks, _end(calls, [at for _, at, _ in marks])),
        "height": FRAME_PX + ROW_PX * max(len(calls), 2),
    }


def ordered(timeline: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The calls in order of group, readiness and number; of very long workflows the critical ones first of all."""
    chosen = sorted(timeline, key=lambda c: not c["critical"])[:MOST_CALLS]
    return sorted(chosen, key=lambda c: (c["group"], c["ready_s"] is None, c["ready_s"] or 0.0, c["call"]))


def caption(timeline: Sequence[Mapping[str, Any]]) -> str:
    """What the figure shows, in words."""
    critical = sum(1 for call in timeline if call["critical"])
    left_out = len(timeline) - len(ordered(timeline))
    more = f"; {left_out} more calls are not drawn" if left_out else ""
    return f"{len(timeline)} calls, ◆ {critical} that the workflow waited for{more}"


def legend(timeline: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of the phases that took time in any call, in the order they are drawn, then of the marks."""
    phases = [*((field, name) for field, name, *_ in PHASES), ("tool_s", "tool")]
    ends = ["budget"] if any(call["budget_s"] for call in timeline) else []
    ends += ["KV lost"] if any(call.get("broke") for call in timeline) else []
    return [name for field, name in phases if any(call.get(field) for call in timeline)] + ends


def _label(call: Mapping[str, Any]) -> str:
    sign = "◆ " if call["critical"] else ""
    fate = "" if call["state"] in ENDED else f" ({call['state']})"
    return f"{sign}{call['stage']}{fate} {_own(call)}".rstrip()


def _own(call: Mapping[str, Any]) -> str:
    """A call's number within its workflow: the last digits of its whole one (twin/pack.py), which the hint shows."""
    return str(call["call"] % CALLS_OF_ONE) if isinstance(call["call"], int) else str(call["call"])


def _start(call: Mapping[str, Any], phase: str) -> float:
    """Start of a phase: phases follow each other from the moment the call was ready, s."""
    at = float(call["ready_s"] or 0.0)
    for field, *_ in PHASES:
        if field == phase:
            break
        at += call.get(field) or 0.0
    return at


def _bars(calls: Sequence[Mapping[str, Any]], field: str, name: str, colour: str, hatch: str) -> dict[str, Any]:
    trace = _bar(name, colour, [_start(c, field) for c in calls], [c.get(field) or 0.0 for c in calls])
    trace["customdata"] = [_hint(call, name, field) for call in calls]
    if hatch:
        trace["marker"]["pattern"] = {"shape": hatch, "fillmode": "overlay", "fgcolor": "@background", "size": 6}
    return trace


def _tools(calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    ends = [c["finished_s"] if c["state"] in ENDED else None for c in calls]
    widths = [c["tool_s"] or 0.0 if end is not None else 0.0 for c, end in zip(calls, ends, strict=True)]
    trace = _bar("tool", "@grid", [end or 0.0 for end in ends], widths)
    trace["customdata"] = [_hint(call, "tool", "tool_s") for call in calls]
    return trace


def _bar(name: str, colour: str, base: list[float], width: list[float]) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "y": list(range(len(base))),
        "base": [round(b, 3) for b in base],
        "x": [round(w, 3) for w in width],
        "marker": {"color": colour, "line": {"width": 0}},
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _budgets(calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A tick where each call's budget ends."""
    known = [(i, c) for i, c in enumerate(calls) if c["ready_s"] is not None and (c["budget_s"] or 0.0) > 0]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "budget",
        "x": [round(c["ready_s"] + c["budget_s"], 3) for _, c in known],
        "y": [i for i, _ in known],
        "marker": {"symbol": "line-ns-open", "size": 15, "color": "@text", "line": {"width": 2}},
        "customdata": [seconds(tidy(c["budget_s"])) for _, c in known],
        "hovertemplate": "budget of the call: %{customdata}<extra></extra>",
    }


def _breaks(calls: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A cross where a call found the KV of its conversation gone; nothing where none did."""
    broken = [(i, c) for i, c in enumerate(calls) if c.get("broke") and c["ready_s"] is not None]
    if not broken:
        return []
    trace = {
        "type": "scatter",
        "mode": "markers",
        "name": "KV lost",
        "x": [round(c["ready_s"], 3) for _, c in broken],
        "y": [i for i, _ in broken],
        "marker": {"symbol": "x", "size": 9, "color": "@red"},
        "customdata": [BREAKS.get(c["broke"], c["broke"]) for _, c in broken],
        "hovertemplate": "KV lost: %{customdata}<extra></extra>",
    }
    return [trace]


def _hint(call: Mapping[str, Any], name: str, field: str) -> str:
    where = f" on {call['instance']}" if call["instance"] else ""
    return f"{call['stage']} {call['call']}".rstrip() + f"{where}<br>{name} {seconds(tidy(call.get(field) or 0.0))}"


def _end(calls: Sequence[Mapping[str, Any]], marks: Sequence[float]) -> float:
    """Right end of the axis, s: all bars and marks, and a budget where it does not dwarf them."""
    ends = [_start(c, "decode_s") + (c["decode_s"] or 0.0) for c in calls]
    done = [c for c in calls if c["finished_s"] is not None]
    ends += [c["finished_s"] + ((c["tool_s"] or 0.0) if c["state"] in ENDED else 0.0) for c in done]
    return max([*ends, *marks, 0.1]) * 1.04


def _layout(labels: list[str], marks: Sequence[tuple[str, float, str]], end: float) -> dict[str, Any]:
    return {
        "barmode": "overlay",
        "bargap": 0.3,
        "margin": {"l": 164, "r": 64, "t": 24, "b": 26},
        "showlegend": False,
        "xaxis": {"range": [0, end], "ticksuffix": " s", "showgrid": True},
        "yaxis": {
            "range": [len(labels) - 0.5, -0.5],
            "tickvals": list(range(len(labels))),
            "ticktext": labels,
            "showgrid": False,
        },
        "shapes": [_line(at, dash) for _, at, dash in marks],
        "annotations": _names(marks),
    }


def _line(at: float, dash: str) -> dict[str, Any]:
    colour = "@red" if dash == "dash" else "@muted"
    return {
        "type": "line",
        "x0": at,
        "x1": at,
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "line": {"color": colour, "dash": dash, "width": 1},
    }


def _names(marks: Sequence[tuple[str, float, str]]) -> list[dict[str, Any]]:
    """Labels above the lines: the first line's to its left, the last one's to its right, so that they never meet."""
    last = max((at for _, at, _ in marks), default=0.0)
    return [_name(name, at, len(marks) > 1 and at < last) for name, at, _ in marks]


def _name(name: str, at: float, left: bool) -> dict[str, Any]:
    where = {"x": at, "y": 1, "yref": "paper", "yanchor": "bottom", "xanchor": "right" if left else "left"}
    return {"text": f"{name} {seconds(tidy(at))}", "showarrow": False, **where}
