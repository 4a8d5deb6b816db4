"""What is worth seeing now: queues, debt, conversations, KV caches, power. Replaced every second."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from control.engine.conversations import conversations, talks_of
from control.engine.energy import energy
from control.engine.forecast import forecasts
from control.engine.occupancy import occupancy, pinned_blocks
from control.engine.state import Live
from control.engine.view import read_views
from control.metrics.slo import clocks_s
from control.metrics.stages import OPEN, active_debts_s
from control.policy.codes import ACTIVE, EDF, LLF, PLAS, SJF, VTC
from control.policy.tables import Floats, Record, Table
from control.policy.urgency import urgency_s

Row = dict[str, Any]
MOST_CALLS = 50  # listed per queue
MOST_ACTIVE = 100  # workflows listed


def detail(live: Live, tuning: Row) -> Row:
    """The whole document."""
    world, views = live.world, read_views(live)
    talks = talks_of(live, views)
    owed = np.where(
        world.workflows["state"] == ACTIVE,
        active_debts_s(world.workflows, world.calls, world.steps, live.now_s),
        0.0,
    )
    return {
        "queues": [queue(live, i) for i in range(len(live.fleet.instances))],
        "ledger": live.books.ledger(live.now_s) | {"active_debt_s": float(owed.sum())},
        "active": active(live, owed),
        "tuning": tuning,
        "conversations": conversations(live, talks),
        "kv": occupancy(live, talks, views, pinned_blocks(world, views)),
        "power": energy(live, views),
        "forecasts": forecasts(live),
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
    late = clocks_s(workflows, live.now_s) - workflows["arrival_s"] - workflows["slo_s"]
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


def stage_now(calls: Table, steps: Sequence[str]) -> str:
    """The step a workflow is at; "tool" between groups."""
    states = calls["state"].tolist()
    row = next((k for k, state in enumerate(states) if state in OPEN), None)
    return "tool" if row is None else steps[int(calls["step"][row])]
