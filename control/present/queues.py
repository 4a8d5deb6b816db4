"""Who waits, and who is next: the waiting calls of each instance, in the order they will be served."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from control.present.cells import Cell, Table, count, duration, signed, workflow
from control.present.groups import most, short_of
from control.present.units import NOTHING, counted, number, seconds

#: The choice that leaves a filter open.
ALL = "all"
#: Rows on the page while several instances are shown; one alone shows all it reported (50).
ROWS = 80
#: A call with less time left than this (s) is near its deadline.
NEAR_S = 10.0

EST_RUN = Cell("Est. run", "num", hint="By the lengths known of its stage, alone on the instance")
EST_QUEUE = Cell(
    "Est. queue",
    "num",
    hint="The estimated runs of all calls there, one after the other: the policy's term for the load, not the wait; a "
    "batch serves them side by side",
)
HEADS = (
    Cell("#", "num place"),
    Cell("Call", "id"),
    Cell("Workflow", "id"),
    Cell("Stage"),
    Cell("Tenant"),
    Cell("Laxity", "num", hint="Budget less the wait and the estimated run; below 0 the call is late already"),
    Cell("Waits", "num"),
    EST_RUN,
    EST_QUEUE,
    Cell("Budget", "num"),
    Cell("Score", "num", hint="The score the call was placed here by"),
    Cell("Runner-up", hint="The instance that came second, and its score; none: no other could take the call"),
)


class Filter(NamedTuple):
    """What the viewer wants to see; ALL leaves a part open."""

    instance: str = ALL
    tenant: str = ALL
    stage: str = ALL


class Queue(NamedTuple):
    """One instance: calls that wait there in all, those reported and wanted, and the reported ones by tenant."""

    instance: str
    total: int
    reported: int
    calls: Sequence[Mapping[str, Any]]
    by_tenant: Mapping[str, int]


def choices(detail: Mapping[str, Any], field: str) -> list[str]:
    """The values of "tenant" or "stage" among the waiting calls, or the instances; ALL first."""
    if field == "instance":
        return [ALL, *(str(q["instance"]) for q in detail["queues"])]
    return [ALL, *sorted({str(call[field]) for q in detail["queues"] for call in q["calls"]})]


def tenants(detail: Mapping[str, Any]) -> list[str]:
    """The tenants of the run: of waiting calls, of workflows on their way and of those that ended in the window."""
    waiting = {str(call["tenant"]) for q in detail["queues"] for call in q["calls"]}
    return sorted(waiting | {str(row["tenant"]) for row in detail["active"]} | set(detail["ledger"]["by_tenant"]))


def queues_of(detail: Mapping[str, Any], wanted: Filter) -> list[Queue]:
    """The queues the filter leaves, in the engine's order of instances and calls."""
    return [_queue(q, wanted) for q in detail["queues"] if wanted.instance in (ALL, q["instance"])]


def summary(queues: Sequence[Queue], wanted: Filter) -> list[tuple[str, str, str, str]]:
    """The figures on top: (label, value, line below, "" or "late")."""
    calls = [call for queue in queues for call in queue.calls]
    late = sum(1 for call in calls if call["laxity_s"] < 0)
    longest = max(calls, key=_wait, default=None)
    tightest = min(calls, key=_laxity, default=None)
    total = sum(queue.total for queue in queues)
    reported = sum(queue.reported for queue in queues)
    closed = (wanted.tenant, wanted.stage) != (ALL, ALL)
    waiting = len(calls) if closed else total
    preempted = sum(1 for call in calls if call["preempted"])
    below = f"of {number(total)} in all" if closed else f"on {counted(sum(1 for q in queues if q.total), 'instance')}"
    first = "" if reported == total else f", first {number(reported)} looked at"
    return [
        ("Waiting", f"{number(waiting)}", below, ""),
        ("Late already", f"{number(late)}", f"laxity below 0{first}", "late" if late else ""),
        ("Longest wait", seconds(_wait(longest)) if longest else NOTHING, _who(longest), ""),
        ("Least laxity", _laxity_text(tightest), _who(tightest), _state(tightest)),
        ("Preempted", number(preempted), "lost their KV cache, wait again", ""),
    ]


def overview(queues: Sequence[Queue], tenants: Sequence[str]) -> list[tuple[Cell, list[tuple[str, float]], Cell]]:
    """One line an instance: name, [(tenant, share of the longest queue)] and its total; of many the LISTED longest."""
    longest = max((q.total for q in queues), default=0) or 1
    shown = most(queues, lambda q: q.total)
    return [(Cell(q.instance, "id"), _shares(q, tenants, longest), count(q.total)) for q in shown]


def left_out(queues: Sequence[Queue]) -> str:
    """A sentence on the queues that `overview` does not hold, "" where it holds all."""
    return short_of(queues, "longest queues")


def busiest(queues: Sequence[Queue]) -> Sequence[Queue]:
    """The queues with calls that the filter leaves, in order; of more than the page has rows for the longest ones."""
    return most([q for q in queues if q.calls], lambda q: q.total)


def quiet(queues: Sequence[Queue], shown: int) -> str:
    """A sentence on the instances of `queues` beside the `shown` ones, "" where there are none to speak of."""
    busy = sum(1 for q in queues if q.calls)
    idle = len(queues) - busy
    parts = (
        [f"{number(busy - shown)} shorter queues are left out; choose an instance to see its own."]
        if busy > shown
        else []
    )
    parts += [f"No such call waits on {counted(idle, 'other instance')}."] if idle and len(queues) > 1 else []
    return " ".join(parts)


def table(queue: Queue, queues_shown: int) -> Table:
    """The calls of one instance, as many as the page has room for among `queues_shown` instances."""
    room = len(queue.calls) if queues_shown == 1 else max(1, ROWS // queues_shown)
    return Table(HEADS, [_row(place, call) for place, call in enumerate(queue.calls[:room], 1)])


def extent(queue: Queue, shown: int, wanted: Filter) -> str:
    """How many calls the shown rows stand for, in words."""
    closed = (wanted.tenant, wanted.stage) != (ALL, ALL)
    whole, what = (len(queue.calls), "matching") if closed else (queue.total, "waiting")
    return f"first {number(shown)} of {number(whole)} {what}" if shown < whole else f"{number(whole)} {what}"


def nobody(wanted: Filter, total: int) -> str:
    """The sentence of an empty page or queue."""
    if total and wanted != Filter():
        return f"No waiting call matches these filters; {number(total)} wait in all."
    return "Nobody waits: every call that is ready has a seat."


def placements(decisions: Sequence[Mapping[str, Any]]) -> Table:
    """Where the calls of one workflow were placed, newest first."""
    heads = [
        Cell("Call", "id"),
        Cell("Stage"),
        Cell("Instance", "id"),
        EST_RUN,
        EST_QUEUE,
    ]
    heads += [Cell("Budget", "num"), Cell("Score", "num"), Cell("Runner-up")]
    return Table(heads, [_placed(row) for row in decisions])


def _placed(row: Mapping[str, Any]) -> list[Cell]:
    return [
        Cell(f"{row['call']}", "id", decision=row.get("id")),
        Cell(str(row["stage"])),
        Cell(str(row["instance"]), "id"),
        duration(row["t_comp_s"]),
        duration(row["t_queue_s"]),
        duration(row["budget_s"]),
        Cell(_score(row["score"]), "num"),
        _runner_up(row),
    ]


def _queue(queue: Mapping[str, Any], wanted: Filter) -> Queue:
    calls = [c for c in queue["calls"] if wanted.tenant in (ALL, c["tenant"]) and wanted.stage in (ALL, c["stage"])]
    by_tenant = Counter(str(c["tenant"]) for c in queue["calls"])
    return Queue(str(queue["instance"]), int(queue["total"]), len(queue["calls"]), calls, by_tenant)


def _shares(queue: Queue, tenants: Sequence[str], longest: int) -> list[tuple[str, float]]:
    """Widths by tenant; calls beyond the reported ones are split as those are."""
    scale = queue.total / queue.reported / longest if queue.reported else 0.0
    return [(t, queue.by_tenant[t] * scale) for t in tenants if queue.by_tenant.get(t)]


def _row(place: int, call: Mapping[str, Any]) -> list[Cell]:
    return [
        Cell(f"{place}", "num place"),
        Cell(f"{call['call']}" + (" ↻" if call["preempted"] else ""), "id", hint=_preempted(call)),
        workflow(int(call["workflow"])),
        Cell(str(call["stage"])),
        Cell(str(call["tenant"])),
        Cell(_laxity_text(call), f"num {_state(call)}".strip()),
        duration(call["wait_s"]),
        duration(call["t_comp_s"]),
        duration(call["t_queue_s"]),
        duration(call["budget_s"]),
        Cell(_score(call["score"]), "num"),
        _runner_up(call),
    ]


def _runner_up(call: Mapping[str, Any]) -> Cell:
    if call["runner_up"] is None:
        return Cell("none", "muted")
    score = call["runner_up_score"]
    return Cell(str(call["runner_up"]) + ("" if score is None else f" {_score(score)}"), "id")


def _score(value: float | None) -> str:
    return NOTHING if value is None else number(float(f"{value:.3g}"))


def _laxity_text(call: Mapping[str, Any] | None) -> str:
    if call is None:
        return NOTHING
    sign = "✕ " if call["laxity_s"] < 0 else "▲ " if call["laxity_s"] < NEAR_S else ""
    return sign + signed(call["laxity_s"])


def _state(call: Mapping[str, Any] | None) -> str:
    if call is None or call["laxity_s"] >= NEAR_S:
        return ""
    return "late" if call["laxity_s"] < 0 else "amber"


def _preempted(call: Mapping[str, Any]) -> str:
    return "Preempted: lost its KV cache and waits again" if call["preempted"] else ""


def _who(call: Mapping[str, Any] | None) -> str:
    return "nobody waits" if call is None else f"{call['stage']} of workflow #{call['workflow']}"


def _wait(call: Mapping[str, Any] | None) -> float:
    return 0.0 if call is None else float(call["wait_s"])


def _laxity(call: Mapping[str, Any]) -> float:
    return float(call["laxity_s"])
