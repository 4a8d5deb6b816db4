"""The ledger by step and by instance, and what active workflows owe, against numbers worked out by hand."""

import numpy as np
import pytest

from control.metrics.ledger import CAUSES
from control.metrics.stages import active_debts_s, plans_by_step, times_by
from control.policy.codes import COMPLETED, DECODE, WAITING
from control.policy.tables import Table
from tests.support import tables


def cell(table: np.ndarray, row: int, cause: str) -> float:
    """One entry of a table by cause."""
    return float(table[row, CAUSES.index(cause)])


@pytest.fixture
def calls() -> Table:
    """Three critical calls of two steps on two instances, one that is not, one refused before it was placed."""
    return tables.calls(
        {"critical": 1, "step": 0, "instance": 1, "prefill_s": 1.0, "queue_own_s": 2.0},
        {"critical": 1, "step": 1, "instance": 1, "prefill_s": 4.0},
        {"critical": 1, "step": 1, "instance": 0, "decode_s": 8.0},
        {"critical": 0, "step": 1, "instance": 0, "decode_s": 99.0},
        {"critical": 1, "step": 0, "instance": -1, "failure_s": 16.0},
    )


def test_time_by_step(calls: Table) -> None:
    times = times_by(calls, "step", 3)
    assert cell(times, 0, "prefill") == 1.0
    assert cell(times, 0, "queue_own") == 2.0
    assert cell(times, 1, "prefill") == 4.0
    assert cell(times, 1, "decode") == 8.0
    assert times[0].sum() == 3.0 + 16.0
    assert times[2].sum() == 0.0


def test_time_by_instance_leaves_out_what_was_on_none(calls: Table) -> None:
    times = times_by(calls, "instance", 2)
    assert times[0].sum() == 8.0
    assert times[1].sum() == 7.0


def test_plan_by_step_is_the_template_times_the_means() -> None:
    steps = tables.steps(5.0, 3.0)
    steps["mean_prefill_s"], steps["mean_tool_s"] = (1.0, 2.0), (0.25, 0.0)
    plans = plans_by_step(steps, np.array([4.0, 0.5]))
    assert [cell(plans, 0, cause) for cause in ("prefill", "decode", "tool")] == [4.0, 16.0, 1.0]
    assert [cell(plans, 1, cause) for cause in ("prefill", "decode", "tool")] == [1.0, 0.5, 0.0]
    assert plans.sum() == 22.5


def owed_s(now_s: float, tool_s: float, *calls: dict[str, float]) -> float:
    """Debt so far of a workflow that arrived at 10 s, whose steps are planned at 2 and 5 s."""
    workflows, steps = tables.workflows({"arrival_s": 10.0, "tool_s": tool_s}), tables.steps(2.0, 5.0)
    [debt] = active_debts_s(workflows, tables.calls(*calls), steps, now_s)
    return float(debt)


FIRST = {"critical": 1, "step": 0, "state": COMPLETED, "ready_s": 10.0}


@pytest.mark.parametrize(
    ("words", "now_s", "tool_s", "calls", "debt_s"),
    [
        ("within its first stage's plan", 11.5, 0.0, [{"state": WAITING, "ready_s": 10.0}], 0.0),
        ("a second past it, still waiting", 13.0, 0.0, [{"state": WAITING, "ready_s": 10.0}], 1.0),
        ("first stage took 6 s for 2", 16.0, 0.0, [FIRST], 4.0),
        ("tools are nobody's debt", 19.0, 3.0, [FIRST], 4.0),
        ("ahead of plan is no credit", 11.0, 0.0, [FIRST], 0.0),
        ("second stage under way for 3 of 5 s", 19.0, 0.0, [FIRST, {"step": 1, "state": DECODE, "ready_s": 16.0}], 4.0),
        ("second stage under way for 7 of 5 s", 23.0, 0.0, [FIRST, {"step": 1, "state": DECODE, "ready_s": 16.0}], 6.0),
    ],
)
def test_debt_so_far(words: str, now_s: float, tool_s: float, calls: list[dict[str, float]], debt_s: float) -> None:
    assert owed_s(now_s, tool_s, *calls) == debt_s, words
