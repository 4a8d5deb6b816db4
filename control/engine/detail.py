"""What is worth seeing now: who waits, where time goes, which workflows are late. Replaced every second."""

from collections import deque
from typing import Any, NamedTuple

import numpy as np

from control.engine.state import Live
from control.metrics.ledger import CAUSES, debts_s, planned_s
from control.metrics.stages import OPEN, active_debts_s, plans_by_step, times_by
from control.metrics.timeline import timeline
from control.policy.codes import ACTIVE, EDF, LLF, PLAS, SJF, VTC
from control.policy.tables import Floats, Record, Table
from control.policy.urgency import urgency_s

Row = dict[str, Any]
MOST_CALLS = 50  # listed per queue
MOST_ACTIVE = 100  # workflows listed


class Entry(NamedTuple):
    """The ledger of one ended workflow."""

    at_s: float  # simulated s
    tenant: int
    debts: Floats  # [causes], s
    by_step: Floats  # [steps, causes], s
    by_instance: Floats  # [instances, causes], s


class Books:
    """The ledgers of the workflows that ended in the last `window_s` simulated seconds."""

    def __init__(self, window_s: float) -> None:
        self.window_s = window_s
        self.entries: deque[Entry] = deque()

    def note(self, live: Live, w: int) -> Row:
        """Take in workflow `w`, which has ended; what its row in the store gains."""
        world = live.world
        workflow = world.workflows[w : w + 1]
        first, n = int(workflow["first_call"][0]), int(workflow["n_calls"][0])
        calls = world.calls[first : first + n].copy()
        shown = timeline(workflow[0], calls, live.names[2], [spec.name for spec in live.fleet.instances])
        calls["workflow"] = 0
        debts = debts_s(workflow, calls)[0]
        template = world.templates[int(workflow["kind"][0])]
        by_step = times_by(calls, "step", len(world.steps)) - plans_by_step(world.steps, template)
        by_instance = times_by(calls, "instance", len(world.instances))
        tenant = int(workflow["tenant"][0])
        self.entries.append(Entry(float(workflow["finished_s"][0]), tenant, debts, by_step, by_instance))
        plan_s = float(planned_s(workflow).sum())
        return {"plan_s": plan_s, "ledger": [round(float(d), 6) for d in debts], "timeline": shown}

    def ledger(self, live: Live) -> Row:
        """Sums over the window: of the fleet, by tenant, by stage, by instance, each by cause, s."""
        while self.entries and self.entries[0].at_s < live.now_s - self.window_s:
            self.entries.popleft()
        entries, n = self.entries, len(CAUSES)
        tenants: Floats = np.zeros((len(live.names[1]), n))
        for entry in entries:
            tenants[entry.tenant] += entry.debts
        steps = sum((entry.by_step for entry in entries), np.zeros((len(live.names[2]), n)))
        places = sum((entry.by_instance for entry in entries), np.zeros((len(live.fleet.instances), n)))
        return {
            "window_s": self.window_s,
            "workflows": len(entries),
            "causes": list(CAUSES),
            "fleet": rounded(tenants.sum(axis=0)),
            "by_tenant": named(live.names[1], tenants),
            "by_stage": named(live.names[2], steps),
            "by_instance": named([spec.name for spec in live.fleet.instances], places),
        }


def rounded(values: Floats) -> list[float]:
    """Seconds to the microsecond, as plain numbers."""
    return [round(float(value), 6) for value in values]


def named(names: Any, table: Floats) -> dict[str, list[float]]:
    """Rows of a table by name."""
    return {name: rounded(row) for name, row in zip(names, table, strict=True)}


def detail(live: Live, books: Books, tuning: Row) -> Row:
    """The whole document."""
    world = live.world
    owed = np.where(
        world.workflows["state"] == ACTIVE,
        active_debts_s(world.workflows, world.calls, world.steps, live.now_s),
        0.0,
    )
    return {
        "queues": [queue(live, i) for i in range(len(live.fleet.instances))],
        "ledger": books.ledger(live) | {"active_debt_s": float(owed.sum())},
        "active": active(live, owed),
        "tuning": tuning,
    }


def queue(live: Live, i: int) -> Row:
    """The waiting calls of instance `i` in the order they will be served, as far as it is known now."""
    world = live.world
    rows = []
    c = int(world.instances[i]["wait_head"])
    while c >= 0:
        rows.append(c)
        c = int(world.calls[c]["next"])
    order = sorted(range(len(rows)), key=lambda k: (*serve_key(live, i, rows[k]), k))
    calls = [waiting_call(live, rows[k]) for k in order[:MOST_CALLS]]
    return {"instance": live.fleet.instances[i].name, "total": len(rows), "calls": calls}


def serve_key(live: Live, i: int, c: int) -> tuple[float, ...]:
    """Sorts waiting calls by who is served first under the queue order in force."""
    world = live.world
    call, rule = world.calls[c], int(world.policy[0]["queue"])
    if call["preemptions"] > 0:
        return (0.0, 0.0, 0.0)
    if rule == LLF:
        return (1.0, -float(urgency_s(call, live.now_s)), 0.0)
    if rule == EDF:
        return (1.0, float(call["deadline_s"]), 0.0)
    if rule == SJF:
        return (1.0, float(call["t_comp_s"]), 0.0)
    if rule == PLAS:
        return (1.0, float(world.workflows[call["workflow"]]["attained_s"]), 0.0)
    if rule == VTC:
        counter = world.counters[i, call["workflow"]]
        return (1.0, float(counter["tokens"]), float(counter["seen"]))
    return (1.0, 0.0, 0.0)


def waiting_call(live: Live, c: int) -> Row:
    """One waiting call with its laxity and the score it was placed by."""
    call, (kinds, tenants, steps) = live.world.calls[c], live.names
    workflow = live.world.workflows[call["workflow"]]
    other, wait_s = int(call["runner_up"]), live.now_s - float(call["ready_s"])
    return {
        "call": int(call["uid"]),
        "workflow": int(workflow["id"]),
        "stage": steps[int(call["step"])],
        "tenant": tenants[int(workflow["tenant"])],
        "kind": kinds[int(workflow["kind"])],
        "laxity_s": -float(urgency_s(call, live.now_s)),
        "wait_s": wait_s,
        "t_comp_s": float(call["t_comp_s"]),
        "t_queue_s": float(call["t_queue_s"]),
        "budget_s": float(call["budget_s"]),
        "score": float(call["score"]),
        "runner_up": live.fleet.instances[other].name if other >= 0 else None,
        "runner_up_score": float(call["runner_up_score"]) if other >= 0 else None,
        "preempted": bool(call["preemptions"] > 0),
    }


def active(live: Live, owed: Floats) -> list[Row]:
    """The active workflows, those furthest past their deadline first."""
    workflows = live.world.workflows
    late = live.now_s - workflows["arrival_s"] - workflows["slo_s"]
    rows = np.flatnonzero(workflows["state"] == ACTIVE)
    rows = rows[np.argsort(-late[rows], kind="stable")][:MOST_ACTIVE]
    return [active_row(live, workflows[w], float(late[w]), float(owed[w])) for w in rows]


def active_row(live: Live, workflow: Record, late_s: float, owed_s: float) -> Row:
    """One active workflow: where it stands against its deadline and its plan."""
    kinds, tenants, steps = live.names
    first, n = int(workflow["first_call"]), int(workflow["n_calls"])
    calls = live.world.calls[first : first + n]
    return {
        "id": int(workflow["id"]),
        "kind": kinds[int(workflow["kind"])],
        "tenant": tenants[int(workflow["tenant"])],
        "arrival_sim_s": float(workflow["arrival_s"]),
        "slo_s": float(workflow["slo_s"]),
        "elapsed_s": live.now_s - float(workflow["arrival_s"]),
        "late_s": late_s,
        "debt_s": owed_s,
        "stage": stage_now(calls, steps),
        "done_calls": int((calls["finished_s"] >= 0.0).sum()),
        "calls": n,
    }


def stage_now(calls: Table, steps: tuple[str, ...]) -> str:
    """The step a workflow is at; "tool" between groups."""
    is_open = np.flatnonzero(np.isin(calls["state"], OPEN))
    return steps[int(calls["step"][is_open[0]])] if len(is_open) else "tool"
