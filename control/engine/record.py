"""What the world's journal tells, taken out of the world at once and made into rows at leisure.

Taking is a few copies, for which the world must stand still; the rest reads the copies alone. So a thread that serves
requests never waits for a row to be written. All that ended is counted and added up; the rows may be fewer.
"""

from typing import Any, NamedTuple

import numpy as np

from control.engine.books import EndedWorkflows
from control.engine.history import History
from control.engine.pending import Pending
from control.engine.receipts import Allowance, Receipts, receipt_row, take_receipts, terms_then
from control.engine.rolling import Ended
from control.engine.state import Live, move, take_windows
from control.policy.codes import (
    BREAKS,
    BY_CLIENT,
    CALL_ENDED,
    CAUSES,
    COMPLETED,
    DONE,
    PIN_BROKEN,
    PLACED,
    REFUSED,
    SERVER_LOST,
    WORKFLOW_ENDED_ENTRY,
)
from control.policy.tables import Ints, Record, Table
from control.twin.world import World

Row = dict[str, Any]
STEP_S = 5.0  # simulated s between looks of `live_on` at what has ended
MOST_ROWS_PER_S = 100  # requests of real servers may come faster than rows of them are worth having; wall s


class Taken(NamedTuple):
    """A stretch of the journal with all that it speaks of, copied."""

    policy: str
    alpha: float
    entries: Table  # JOURNAL rows of calls that were placed
    placed: Table  # the calls, as they are now
    placed_in: Ints  # and the numbers of their workflows
    calls: Table  # calls that ended
    broken: dict[int, int]  # why a call found its conversation's KV gone, by uid
    ended: EndedWorkflows
    receipts: Receipts  # of the calls that were placed


class Most(NamedTuple):
    """Rows that may be written; None: all."""

    decisions: int | None = None
    workflows: int | None = None


def most_left(record_s: float, waiting: Pending) -> Most:
    """Rows that may still go into a record that covers `record_s` and for which these wait already."""
    left = int(MOST_ROWS_PER_S * record_s)
    return Most(max(0, left - len(waiting.decisions)), max(0, left - len(waiting.workflows)))


def take(live: Live, allowance: Allowance | None = None) -> Taken:
    """Empty the journal, with as many receipts as the allowance lets through; None: MOST_AT_ONCE."""
    world = live.world
    entries = world.journal[: int(world.clock[0]["n_journal"])]
    kinds = entries["kind"]
    placed, broken = entries[kinds == PLACED], entries[kinds == PIN_BROKEN]
    calls = world.calls[placed["row"]]
    uids, causes = world.calls["uid"][broken["row"]].tolist(), broken["instance"].tolist()
    taken = Taken(
        live.policy,
        live.alpha,
        placed,
        calls,
        world.workflows["id"][calls["workflow"]],
        world.calls[entries["row"][kinds == CALL_ENDED]],
        dict(zip(uids, causes, strict=True)),
        ended_of(world, entries["row"][kinds == WORKFLOW_ENDED_ENTRY]),
        take_receipts(live, placed["receipt"], allowance),
    )
    world.clock[0]["n_journal"] = 0
    return taken


def ended_of(world: World, rows: Ints) -> EndedWorkflows:
    """Copies of these workflows and of their calls."""
    workflows = world.workflows[rows]
    counts = workflows["n_calls"].astype(np.int64)
    first = np.cumsum(counts) - counts
    owner = np.repeat(np.arange(len(rows)), counts)
    calls = world.calls[np.arange(len(owner)) + (workflows["first_call"] - first)[owner]]
    workflows["first_call"], calls["workflow"] = first, owner
    return EndedWorkflows(workflows, calls, world.steps.copy(), world.templates.copy())


def live_on(live: Live, until_s: float, history: History | None = None) -> None:
    """Let a live state run to `until_s`, simulated s, without rows: figures, books and `history` take in what ends."""
    while live.now_s < until_s:
        next_s = min(until_s, live.now_s + STEP_S)
        take_windows(live, next_s)
        while not move(live, next_s):
            rows_of(live, take(live), history, Most(0, 0))
        rows_of(live, take(live), history, Most(0, 0))
        if history is not None:
            history.keep_state(live)


def drain_journal(live: Live) -> tuple[list[Row], list[Row]]:
    """Decisions and ended workflows since the last call, as rows; books and rolling figures take them in."""
    return rows_of(live, take(live), None, Most())


def rows_of(live: Live, taken: Taken, history: History | None, most: Most) -> tuple[list[Row], list[Row]]:
    """Decisions and ended workflows as rows; books, history and rolling figures take in all of them."""
    live.broken.update(taken.broken)
    note_calls(live, taken.calls)
    n, found, ended = len(taken.placed), len(taken.ended.workflows), taken.ended
    shown = n if most.decisions is None else min(n, most.decisions)
    kept = found if most.workflows is None else min(found, most.workflows)
    live.books.unstored["decisions"] += n - shown
    live.books.unstored["workflows"] += found - kept
    decisions = [decision_row(live, taken, k) for k in range(shown)]
    if not found:
        return decisions, []
    note_workflows(live, ended.workflows)
    if history is not None:
        history.note(ended, live.now_s)
    debts = live.books.note(ended)
    workflows = [workflow_row(live, ended, w) | live.books.row(ended, w, debts) for w in range(kept)]
    for uid in ended.calls["uid"][int(ended.workflows["n_calls"][:kept].sum()) :].tolist() if live.broken else ():
        live.broken.pop(uid, None)
    return decisions, [with_breaks(live, row) for row in workflows]


def with_breaks(live: Live, row: Row) -> Row:
    """A workflow that ended, with why its turns found their conversation's KV gone."""
    for call in row.get("timeline") or ():
        cause = live.broken.pop(call["call"], None)
        if cause is not None:
            call["broke"] = BREAKS[cause]
    return row


def decision_row(live: Live, taken: Taken, k: int) -> Row:
    """A placement as it was decided."""
    call, entry, names = taken.placed[k], taken.entries[k], live.fleet.instances
    chosen, is_latest = int(entry["instance"]), call["receipt"] == entry["receipt"]
    terms = terms_of(call) if is_latest else terms_then(taken.receipts, k, chosen)
    other = terms.pop("other")
    return {
        "sim_s": float(entry["at_s"]),
        "call": int(call["uid"]),
        "workflow": int(taken.placed_in[k]),
        "stage": live.names[2][int(call["step"])],
        "instance": names[chosen].name,
        "policy": taken.policy,
        "alpha": taken.alpha,
        "budget_s": float(call["budget_s"]),
        "runner_up": names[other].name if other >= 0 else None,
        **terms,
        **receipt_row(live, taken.receipts, k, chosen, other, terms["t_comp_s"]),
    }


def terms_of(call: Record) -> Row:
    """The terms of the latest placement of a call."""
    other = int(call["runner_up"])
    return {
        "score": float(call["score"]),
        "t_comp_s": float(call["t_comp_s"]),
        "t_queue_s": float(call["t_queue_s"]),
        "other": other,
        "runner_up_score": float(call["runner_up_score"]) if other >= 0 else None,
    }


def note_calls(live: Live, calls: Table) -> None:
    """Count calls that ended."""
    done = calls[calls["state"] == COMPLETED]
    live.rolling.context += int(done["input_tokens"].sum() + done["emitted"].sum())
    live.rolling.refused += int(np.count_nonzero(calls["state"] == REFUSED))


def note_workflows(live: Live, workflows: Table) -> None:
    """Take workflows that ended into the rolling figures."""
    latencies_s = workflows["finished_s"] - workflows["arrival_s"]
    done = workflows["state"] == DONE
    met = done & (latencies_s <= workflows["slo_s"])
    columns = (workflows["finished_s"], latencies_s, met, done)
    for values in zip(*(column.tolist() for column in columns), strict=True):
        live.rolling.note(Ended(*values))


def workflow_row(live: Live, ended: EndedWorkflows, w: int) -> Row:
    """A workflow that ended."""
    workflow = ended.workflows[w]
    first, n = int(workflow["first_call"]), int(workflow["n_calls"])
    calls = ended.calls[first : first + n]
    latency_s, slo_s = float(workflow["finished_s"] - workflow["arrival_s"]), float(workflow["slo_s"])
    return {
        "id": int(workflow["id"]),
        "kind": live.names[0][int(workflow["kind"])],
        "tenant": live.names[1][int(workflow["tenant"])],
        "arrival_sim_s": float(workflow["arrival_s"]),
        "finished_sim_s": float(workflow["finished_s"]),
        "latency_s": latency_s,
        "slo_s": slo_s,
        "debt_s": max(0.0, latency_s - slo_s),
        "state": state_word(workflow),
        "cause": CAUSES[int(workflow["cause"])] or None,
        "calls": n,
        "input_tokens": int(calls["input_tokens"].sum()),
        "output_tokens": int(calls["emitted"].sum()),
        "energy_j": float(calls["energy_j"].sum()),
    }


def state_word(workflow: Record) -> str:
    """How a workflow ended."""
    if workflow["state"] == DONE:
        return "completed"
    if workflow["cause"] == BY_CLIENT:
        return "cancelled"
    return "failed" if workflow["cause"] >= SERVER_LOST else "refused"
