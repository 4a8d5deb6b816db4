"""Which waiting call is admitted next, as cases in words; eligibility, power, names of policies."""

import pytest

from control.errors import SettingError
from control.policy.codes import DOWN, DRAINING, FCFS, HEXGEN, LLF, UP, policy_codes
from control.policy.eligible import count_eligible, fits_any_context, is_eligible, nth_eligible
from control.policy.pick import pick_waiting
from control.policy.power import run_w
from control.policy.urgency import urgency_s
from tests.support import tables


def waiting(t_comp_s: float, budget_s: float, ready_s: float = 0.0, preemptions: int = 0) -> dict[str, float]:
    """A waiting call."""
    return {"t_comp_s": t_comp_s, "budget_s": budget_s, "ready_s": ready_s, "preemptions": preemptions}


PICKS = {
    "first come, first served: the head, however late the others": (FCFS, [waiting(1, 9), waiting(1, -9)], 0),
    "least laxity: the smaller budget": (LLF, [waiting(1, 9), waiting(1, 2), waiting(1, 5)], 1),
    "least laxity: the longer call at equal budgets": (LLF, [waiting(1, 5), waiting(3, 5)], 1),
    "least laxity: the one that waited longer": (LLF, [waiting(1, 5, ready_s=4), waiting(1, 5, ready_s=1)], 1),
    "least laxity: a debt is more urgent than no budget": (LLF, [waiting(1, 0), waiting(1, -1)], 1),
    "least laxity: the earlier one on a tie": (LLF, [waiting(1, 5), waiting(2, 4), waiting(2, 4)], 1),
    "least laxity: a preempted head resumes first": (LLF, [waiting(1, 9, preemptions=1), waiting(1, -9)], 0),
    "least laxity: preempted behind the head is judged like any": (
        LLF,
        [waiting(1, 2), waiting(1, 9, preemptions=1)],
        0,
    ),
}


@pytest.mark.parametrize("words", PICKS)
def test_picks(words: str) -> None:
    order, queue, expected = PICKS[words]
    assert pick_waiting(tables.calls(*queue), 0, order, 10.0) == expected


def test_urgency_is_time_needed_less_time_left() -> None:
    """4 s of work, budget 10 s, waited 3 s: laxity 3 s."""
    [call] = tables.calls(waiting(4.0, 10.0, ready_s=2.0))
    assert urgency_s(call, 5.0) == -3.0
    assert urgency_s(call, 9.0) == 1.0


@pytest.mark.parametrize(
    ("state", "limit", "may"),
    [(UP, 11, True), (UP, 10, False), (DRAINING, 11, False), (DOWN, 11, False)],
    ids=["input and one token fit", "no room for a token", "draining", "down"],
)
def test_eligible(state: int, limit: int, may: bool) -> None:
    [instance] = tables.instances({"state": state, "max_model_len": limit})
    assert is_eligible(instance, tables.calls({"input_tokens": 10})[0]) == may


def test_eligible_instances_are_counted_and_found_in_order() -> None:
    fleet = tables.instances({"state": DOWN}, {}, {"max_model_len": 5}, {})
    [call] = tables.calls({})
    assert count_eligible(fleet, call) == 2
    assert [nth_eligible(fleet, call, n) for n in range(3)] == [1, 3, -1]


def test_context_limit_counts_instances_that_are_down() -> None:
    [call] = tables.calls({})
    assert fits_any_context(tables.instances({"state": DOWN}, {"max_model_len": 5}), call)
    assert not fits_any_context(tables.instances({"max_model_len": 5}), call)


@pytest.mark.parametrize(
    ("b", "p", "watts"), [(0, 0, 100.0), (8, 0, 108.0), (0, 64, 400.0), (20, 60, 120.0 + 280.0 * 0.75)]
)
def test_power_lies_between_decode_and_prefill_by_tokens(b: int, p: int, watts: float) -> None:
    assert run_w(tables.costs({"prefill_w": 400.0}), 0, b, p) == pytest.approx(watts)


def test_named_policy_is_a_pair_of_levels() -> None:
    assert policy_codes("hexgen") == (HEXGEN, LLF)
    assert policy_codes("wb-fcfs") == (HEXGEN, FCFS)


def test_unknown_policy_names_what_exists() -> None:
    with pytest.raises(SettingError, match=r"policy = 'hexgenn': expected one of hexgen, wb-fcfs, rr-fcfs"):
        policy_codes("hexgenn")
