"""Which waiting call an instance admits next, as a table of cases in words. It is 10 s."""

import math
from dataclasses import dataclass
from typing import Any

import pytest

from control.policy.codes import EDF, FCFS, LLF, PLAS, QLM, SJF, VTC
from control.policy.pick import order_moves, pick_waiting
from tests.support import tables

NOW_S = 10.0


@dataclass(frozen=True)
class Case:
    """Waiting calls in order of arrival, by one field or several, and the one that must be picked."""

    words: str
    queue: int
    calls: tuple[dict[str, Any], ...]
    picked: int
    aging_s: float = math.inf
    tokens: tuple[float, ...] = (0.0, 0.0, 0.0)  # virtual counters by workflow
    attained_s: tuple[float, ...] = (0.0, 0.0, 0.0)  # by workflow


def due(t_comp_s: float, budget_s: float, ready_s: float = 0.0, **more: float) -> dict[str, float]:
    """A call by its work, its budget and the time it became ready."""
    return {"t_comp_s": t_comp_s, "budget_s": budget_s, "ready_s": ready_s, **more}


def until(*deadlines_s: float) -> tuple[dict[str, float], ...]:
    """Calls by deadline."""
    return tuple({"deadline_s": at_s} for at_s in deadlines_s)


def work(*t_comp_s: float) -> tuple[dict[str, float], ...]:
    """Calls by estimated execution time."""
    return tuple({"t_comp_s": s} for s in t_comp_s)


def of(*workflows: int) -> tuple[dict[str, int], ...]:
    """Calls by workflow."""
    return tuple({"workflow": w} for w in workflows)


CASES = (
    Case("first come, first served: the head, however late the others", FCFS, (due(1, 9), due(1, -9)), 0),
    Case("least laxity: the smaller budget", LLF, (due(1, 9), due(1, 2), due(1, 5)), 1),
    Case("least laxity: the longer call at equal budgets", LLF, (due(1, 5), due(3, 5)), 1),
    Case("least laxity: the one that waited longer", LLF, (due(1, 5, 4), due(1, 5, 1)), 1),
    Case("least laxity: a debt is more urgent than no budget", LLF, (due(1, 0), due(1, -1)), 1),
    Case("least laxity: the earlier one on a tie", LLF, (due(1, 5), due(2, 4), due(2, 4)), 1),
    Case("least laxity: a preempted head resumes first", LLF, (due(1, 9, preemptions=1), due(1, -9)), 0),
    Case("least laxity: preempted behind the head is like any", LLF, (due(1, 2), due(1, 9, preemptions=1)), 0),
    Case("aging: the head has waited too long", LLF, (due(1, 99), due(1, -9, 9)), 0, aging_s=9.0),
    Case("aging: waited exactly as long as is allowed", LLF, (due(1, 99), due(1, -9, 9)), 1, aging_s=10.0),
    Case("aging: those in front of an aged call may still go", LLF, (due(1, 2, 8), due(1, 99), due(1, -9)), 0, 5.0),
    Case("aging: nobody behind an aged call may", LLF, (due(1, 200, 8), due(1, 99), due(1, -9, 9)), 1, 5.0),
    Case("aging: of two aged calls the first", LLF, (due(1, 99), due(1, 2)), 0, 5.0),
    Case("aging: other orders know none", EDF, until(9, 5), 1, 5.0),
    Case("earliest deadline of the workflow", EDF, until(9, 5, 7), 1),
    Case("earliest deadline: one that has passed", EDF, until(9, -5, 7), 1),
    Case("earliest deadline: the earlier one on a tie", EDF, until(9, 5, 5), 1),
    Case("shortest job", SJF, work(3, 2, 1), 2),
    Case("shortest job: the earlier one on a tie", SJF, work(3, 1, 1), 1),
    Case("shortest job: a preempted head resumes first", SJF, ({"t_comp_s": 9, "preemptions": 2}, {"t_comp_s": 1}), 0),
    Case("least attained: the workflow served least", PLAS, of(0, 1, 2), 2, attained_s=(3, 2, 1)),
    Case("least attained: the earlier call on a tie", PLAS, of(0, 1, 2), 1, attained_s=(3, 1, 1)),
    Case("least attained: calls of one workflow in turn", PLAS, of(0, 1, 1), 1, attained_s=(3, 1, 9)),
    Case("virtual counters: the smallest", VTC, of(0, 1, 2), 1, tokens=(30, 10, 20)),
    Case("virtual counters: first seen on a tie, though it came later", VTC, of(2, 1, 0), 1, tokens=(9, 5, 5)),
    Case("virtual counters: calls of one workflow in turn", VTC, of(1, 0, 0), 1, tokens=(1, 2, 0)),
    Case(
        "virtual counters: a preempted head resumes first",
        VTC,
        ({"workflow": 0, "preemptions": 1}, *of(1)),
        0,
        tokens=(9, 0, 0),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=[case.words for case in CASES])
def test_case(case: Case) -> None:
    workflows = tables.workflows(*({"attained_s": s} for s in case.attained_s))
    rule, queue = tables.queue_policy(case.queue, case.aging_s), tables.calls(*case.calls)
    assert pick_waiting(rule, workflows, tables.counters(*case.tokens), queue, 0, NOW_S) == case.picked


@pytest.mark.parametrize(
    ("queue", "aging_s", "moves"),
    [
        *((queue, math.inf, False) for queue in (FCFS, LLF, EDF, SJF)),
        *((queue, math.inf, True) for queue in (VTC, QLM, PLAS)),
        (LLF, 5.0, True),
        (FCFS, 5.0, False),
    ],
)
def test_runs_are_cut_where_waiting_alone_can_change_the_order(queue: int, aging_s: float, moves: bool) -> None:
    assert order_moves(tables.queue_policy(queue, aging_s)) == moves
