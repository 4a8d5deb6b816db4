"""Groups of waiting calls by time left, as cases in words. SLOs are 15 s times the call's own."""

from dataclasses import dataclass

import pytest

from control.policy.codes import QLM
from control.policy.pick import pick_waiting
from control.policy.qlm import MOST_GROUPS, pick_qlm, qlm_group
from tests.support import tables


@dataclass(frozen=True)
class Case:
    """Own deadlines of the waiting calls in order of arrival, s; all became ready at 0."""

    words: str
    deadlines_s: tuple[float, ...]
    picked: int
    now_s: float = 0.0


CASES = (
    Case("one group: the first to come, though due last", (19, 11, 12), 0),
    Case("two groups in time: the one that formed first, though due later", (99, 11, 98), 0),
    Case("the second group would be late: the one due first", (99, 11), 1, now_s=9.0),
    Case("a group is late by the calls ahead of it: 16 of 2/3 s and 10 s left", (99,) * 15 + (11,), 15),
    Case("15 calls of 2/3 s are in time to the second", (99,) * 14 + (11,), 0),
    Case("due first, its first to come", (99, 15, 11), 1, now_s=9.0),
    Case("all are late: the one due first", (59, 39, 49), 1, now_s=100.0),
    Case("a deadline in the past is a group of its own", (5, -5), 1),
    Case("deadlines 10 s apart at the edge are two groups", (20, 19.9), 1, now_s=9.5),
)


@pytest.mark.parametrize("case", CASES, ids=[case.words for case in CASES])
def test_case(case: Case) -> None:
    workflows = tables.workflows(*({"slo_s": 15.0 * at_s} for at_s in case.deadlines_s))
    queue = tables.calls(*({"workflow": w} for w in range(len(workflows))))
    assert pick_qlm(workflows, queue, 0, case.now_s) == case.picked


def test_preempted_head_resumes_first() -> None:
    workflows = tables.workflows({"slo_s": 900.0}, {"slo_s": 0.0})
    queue = tables.calls({"workflow": 0, "preemptions": 1}, {"workflow": 1})
    assert pick_waiting(tables.queue_policy(QLM), workflows, tables.counters(0, 0), queue, 0, 50.0) == 0


def test_own_deadline_counts_from_the_time_a_call_became_ready() -> None:
    [workflow] = tables.workflows({"slo_s": 150.0})
    [call] = tables.calls({"ready_s": 25.0})
    assert qlm_group(workflow, call) == 3


def test_more_groups_than_places_share_the_last_one() -> None:
    """The group due first came too late for a place of its own: whoever shares its place is judged by the place."""
    n = MOST_GROUPS + 1
    workflows = tables.workflows(*({"slo_s": 15.0 * 10.0 * (n - k)} for k in range(n)))
    queue = tables.calls(*({"workflow": w} for w in range(n)))
    assert pick_qlm(workflows, queue, 0, 1e6) == MOST_GROUPS - 1
