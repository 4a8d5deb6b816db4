"""Where the time goes and who pays: SLO debt by cause, and the workflows that carry it.

A workflow's debt by cause is what each cause took less what the plan gave it, each measured by itself; the
causes of one workflow sum to its elapsed time less its plan.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from control.present.cells import Cell, Table, count, duration, filtered, signed, tidy, workflow
from control.present.units import NOTHING, number, seconds

#: Causes in words.
CAUSES = {
    "queue_own": "Queue, own tenant",
    "queue_other": "Queue, other tenants",
    "prefill": "Prefill",
    "decode": "Decode",
    "preemption": "Preemption",
    "transfer": "KV transfer",
    "tool": "Tools",
    "failure": "Failures",
}
#: The same for narrow columns.
SHORT = dict(
    zip(CAUSES, ("own", "others", "prefill", "decode", "preempt.", "transfer", "tool", "failure"), strict=True)
)
#: How a workflow ended, in words.
STATES = {"completed": "✓ completed", "failed": "✕ failed", "cancelled": "cancelled", "refused": "✕ refused"}


#: The sentence for a workflow that was placed and is neither among the latest active ones nor ended.
ON_ITS_WAY = "On its way; its timeline is drawn once it has ended."


class Check(NamedTuple):
    """The sum of a workflow's ledger beside its elapsed time less its plan, s."""

    elapsed_s: float
    plan_s: float
    sum_s: float

    def text(self) -> str:
        """The sum in words, e.g. "52 s elapsed − 30.1 s planned = +21.9 s"."""
        whole = f"{duration(self.elapsed_s).text} elapsed − {duration(self.plan_s).text} planned"
        gap = self.elapsed_s - self.plan_s - self.sum_s
        off = f"; {signed(gap)} of it has no cause" if abs(gap) > max(0.05, 1e-3 * self.elapsed_s) else ""
        return f"{whole} = {signed(self.elapsed_s - self.plan_s)}{off}"


def ended(detail: Mapping[str, Any], fleet: Mapping[str, Any]) -> int:
    """Workflows that ended in the ledger's window: as reported, else throughput times window."""
    reported = detail["ledger"].get("workflows")
    if reported is not None:
        return int(reported)
    throughput_wps: float = fleet.get("throughput_wps") or 0.0
    window_s: float = detail["ledger"]["window_s"]
    return round(throughput_wps * window_s)


def by_cause(causes: Sequence[str], spent: Sequence[float], workflows: int | None) -> Table:
    """Debt by cause: total and, for a fleet, the mean of `workflows`, with a bar from the middle."""
    widest = max((abs(s) for s in spent), default=0.0) or 1.0
    heads = [Cell("Cause"), Cell("", "wide"), Cell("Debt", "num")]
    if workflows is not None:
        heads.append(Cell("Per workflow", "num", hint="Mean over the workflows that ended in the window"))
    rows = [_cause(c, s, s / widest, workflows) for c, s in zip(causes, spent, strict=True)]
    total = [Cell("Sum", "strong"), Cell("", "wide"), Cell(signed(sum(spent)), "num strong")]
    return Table(heads, [*rows, total + _mean(sum(spent), workflows, "num strong")])


def strips(causes: Sequence[str], groups: Mapping[str, Sequence[float]], name: str, hint: str) -> Table:
    """Seconds by cause for each tenant, stage or instance; the ground shows the size within the table."""
    widest = max((abs(s) for spent in groups.values() for s in spent), default=0.0) or 1.0
    heads = [Cell(name, hint=hint), *(Cell(SHORT.get(c, c), "num", hint=CAUSES.get(c, c)) for c in causes)]
    rows = [[_group(name, str(g)), *(_heat(s, widest) for s in spent), _sum(spent)] for g, spent in groups.items()]
    return Table([*heads, Cell("sum", "num")], rows)


def worst(causes: Sequence[str], spent: Sequence[float] | None) -> str:
    """The cause that took most beyond its plan, in words."""
    if not spent or max(spent) <= 0:
        return NOTHING
    cause = causes[max(range(len(spent)), key=lambda i: spent[i])]
    return f"{CAUSES.get(cause, cause)} {signed(max(spent))}"


def listed(detail: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], limit: int) -> Table:
    """Active workflows behind their deadline first, then those that ended last; at most `limit` rows."""
    heads = [
        Cell("Workflow", "id"),
        Cell("State"),
        Cell("Kind"),
        Cell("Tenant"),
        Cell("Took", "num"),
        Cell("SLO", "num"),
    ]
    heads += [Cell("Late by", "num"), Cell("Debt", "num", hint="Against the plan"), Cell("Stage or main cause")]
    causes = detail["ledger"]["causes"]
    ended = {row["id"] for row in rows}  # read after the detail: one may have ended since
    active = [_active(a) for a in detail["active"] if a["late_s"] > 0 and a["id"] not in ended]
    return Table(heads, (active + [_ended(r, causes) for r in rows])[:limit])


_CAUSES = {
    "too_long": "context too long for every instance",
    "no_instance": "no instance was up",
    "workflow_ended": "its workflow had ended",
    "by_client": "given up by the client",
}


def facts(row: Mapping[str, Any]) -> str:
    """An ended workflow in one line."""
    late = _late(row)
    fate = f"late by {duration(late).text}" if late is not None and late > 0 else "within its SLO"
    cause = f" ({_CAUSES.get(row['cause'], row['cause'])})" if row.get("cause") else ""
    is_done = row["latency_s"] is not None and row["state"] != "cancelled"
    slo = f", SLO {duration(row['slo_s']).text}, {fate}" if is_done else ""
    return f"{row['kind']} of {row['tenant']}, {STATES.get(row['state'], row['state'])}{cause}{slo}"


def why(row: Mapping[str, Any]) -> str:
    """Why an ended workflow is late, in a sentence; "" where it is not, or what took its time is not recorded."""
    late, spent, timeline = _late(row), row.get("ledger"), row.get("timeline")
    if late is None or late <= 0.0 or not spent or not timeline:
        return ""
    took: dict[str, list[float]] = {}
    for call in timeline:
        if call["critical"] and call["finished_s"] is not None and call["ready_s"] is not None:
            took.setdefault(str(call["stage"]), []).append(call["finished_s"] - call["ready_s"])
    if not took:
        return ""
    stage = max(took, key=lambda name: sum(took[name]))
    n = len(took[stage])
    calls = f"{n} calls of {stage} in a row" if n > 1 else f"one call of {stage}"
    whole = duration(row["latency_s"]).text
    text = f"Late by {duration(late).text}: {calls} took {duration(sum(took[stage])).text} of its {whole}"
    return f"{text}; most over the plan: {worst(list(CAUSES), spent)}." if max(spent) > 0.0 else f"{text}."


def progress(active: Mapping[str, Any]) -> str:
    """A workflow on its way in one line."""
    late, calls = active["late_s"], f"{number(active['done_calls'])} of {number(active['calls'])} calls done"
    fate = f"late by {duration(late).text}" if late > 0 else f"{duration(-late).text} left"
    return f"{active['kind']} of {active['tenant']}, running {active['stage']}, {calls}, {fate}"


def window(book: Mapping[str, Any], workflows: int) -> str:
    """What the fleet's ledger is about, in words."""
    behind = seconds(tidy(book["active_debt_s"]))
    ended_in = f"{number(workflows)} workflows ended in the last {seconds(book['window_s'])} of simulated time"
    return f"{ended_in}; those on their way are {behind} behind their plans."


def unknown(workflow_id: int) -> str:
    """The sentence for a number that no workflow has."""
    return (
        f"No workflow #{workflow_id} is on its way or in the store, which keeps those of the last 24 h, the newest "
        "50,000 at most; choose one of the list below."
    )


def no_number(asked: str, what: str = "workflow") -> str:
    """The sentence for a link whose workflow, or whatever else it names, is no number."""
    return f"“{asked[:40]}” is not the number of a {what}; accepted: a whole number, e.g. 12."


def check(row: Mapping[str, Any]) -> Check | None:
    """The sum of an ended workflow's ledger beside elapsed less plan; None where one is not recorded."""
    if row.get("ledger") is None or row.get("plan_s") is None or row.get("latency_s") is None:
        return None
    return Check(row["latency_s"], row["plan_s"], sum(row["ledger"]))


def _cause(cause: str, spent: float, share: float, workflows: int | None) -> list[Cell]:
    cells = [Cell(CAUSES.get(cause, cause)), Cell("", "wide", bar=share), Cell(signed(spent), "num")]
    return cells + _mean(spent, workflows, "num muted")


def _mean(spent: float, workflows: int | None, kind: str) -> list[Cell]:
    if workflows is None:
        return []
    return [Cell(signed(spent / workflows) if workflows else NOTHING, kind)]


def _group(name: str, group: str) -> Cell:
    """A tenant, stage or instance as a link to its workflows or its queue."""
    page, field = ("queues" if name == "Instance" else "workflows"), name.lower()
    return Cell(group, page=filtered(page, field, group))


def _heat(spent: float, widest: float) -> Cell:
    shown = tidy(spent)
    return Cell(number(float(f"{shown:.3g}")) if shown else "0", "num" if shown else "num muted", heat=spent / widest)


def _sum(spent: Sequence[float]) -> Cell:
    return Cell(signed(sum(spent)), "num strong")


def _active(row: Mapping[str, Any]) -> list[Cell]:
    return [
        workflow(int(row["id"])),
        Cell("● running", "amber"),
        Cell(str(row["kind"])),
        Cell(str(row["tenant"])),
        duration(row["elapsed_s"]),
        duration(row["slo_s"]),
        _lateness(row["late_s"]),
        Cell(signed(row["debt_s"]), "num"),
        Cell(f"{row['stage']}, {row['done_calls']} of {row['calls']} calls", "muted"),
    ]


def _ended(row: Mapping[str, Any], causes: Sequence[str]) -> list[Cell]:
    late, spent = _late(row), row.get("ledger")
    return [
        workflow(int(row["id"])),
        Cell(STATES.get(row["state"], str(row["state"])), "" if row["state"] == "completed" else "late"),
        Cell(str(row["kind"])),
        Cell(str(row["tenant"])),
        duration(row["latency_s"]),
        duration(row["slo_s"]),
        _lateness(late),
        Cell(signed(sum(spent)), "num") if spent else count(None),
        Cell(worst(causes, spent), "muted"),
    ]


def _lateness(late: float | None) -> Cell:
    if late is None or late > 0:
        return Cell(NOTHING, "num muted") if late is None else Cell(f"✕ {duration(late).text}", "num late")
    return Cell("in time", "num muted")


def _late(row: Mapping[str, Any]) -> float | None:
    """Latency less SLO, s; None where the workflow did not run to its end."""
    if row["latency_s"] is None or row["slo_s"] is None:
        return None
    return float(row["latency_s"] - row["slo_s"])
