"""The debt ledger against numbers worked out by hand."""

import numpy as np
import pytest

from control.metrics.ledger import CAUSES, debt_by_cause_s, debts_s, planned_s, spent_s
from control.policy.codes import ACTIVE, BROKEN, DONE
from control.policy.tables import Table
from tests.support import tables

PLAN = {"plan_prefill_s": 1.0, "plan_decode_s": 5.0, "plan_tool_s": 2.0}


@pytest.fixture
def workflows() -> Table:
    """One that took its time, one that broke early, one under way."""
    return tables.workflows(
        {"state": DONE, "tool_s": 3.0, **PLAN}, {"state": BROKEN, **PLAN}, {"state": ACTIVE, "tool_s": 50.0}
    )


@pytest.fixture
def calls() -> Table:
    """Two stages of the first workflow, with a sibling nobody waited for; one call of each of the others."""
    return tables.calls(
        {"critical": 1, "queue_own_s": 1.0, "queue_other_s": 2.0, "prefill_s": 0.5, "decode_s": 3.0},
        {"critical": 0, "queue_own_s": 9.0, "prefill_s": 9.0},
        {"critical": 1, "prefill_s": 0.25, "decode_s": 4.0, "preempted_s": 0.125},
        {"critical": 1, "workflow": 1, "failure_s": 6.0},
        {"critical": 1, "workflow": 2, "decode_s": 70.0},
    )


def by_cause(**seconds: float) -> list[float]:
    """Seconds in the order of the causes; 0 where none are given."""
    return [seconds.get(cause, 0.0) for cause in CAUSES]


def test_only_calls_that_were_waited_for_cost_time(workflows: Table, calls: Table) -> None:
    spent = spent_s(workflows, calls)
    first = by_cause(queue_own=1.0, queue_other=2.0, prefill=0.75, decode=7.0, preemption=0.125, tool=3.0)
    assert spent[0].tolist() == first
    assert spent[1].tolist() == by_cause(failure=6.0)


def test_plan_knows_neither_queues_nor_mishaps(workflows: Table) -> None:
    assert planned_s(workflows)[0].tolist() == by_cause(prefill=1.0, decode=5.0, tool=2.0)


def test_debt_is_time_less_plan_and_may_be_negative(workflows: Table, calls: Table) -> None:
    first, broken = debts_s(workflows, calls)[:2]
    expected = by_cause(queue_own=1.0, queue_other=2.0, prefill=-0.25, decode=2.0, preemption=0.125, tool=1.0)
    assert first.tolist() == expected
    assert broken.tolist() == by_cause(prefill=-1.0, decode=-5.0, tool=-2.0, failure=6.0)
    assert first.sum() == pytest.approx(13.875 - 8.0)


def test_sums_leave_out_what_is_under_way(workflows: Table, calls: Table) -> None:
    sums = debt_by_cause_s(workflows, calls)
    assert list(sums) == list(CAUSES)
    assert sums["decode"] == 2.0 - 5.0
    assert sums["tool"] == 1.0 - 2.0
    assert sums["failure"] == 6.0
    assert sums["transfer"] == 0.0


def test_nothing_has_run_yet() -> None:
    assert debt_by_cause_s(tables.workflows(), tables.calls()) == dict.fromkeys(CAUSES, 0.0)
    assert np.array_equal(debts_s(tables.workflows({}), tables.calls()), np.zeros((1, len(CAUSES))))
