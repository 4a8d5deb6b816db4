"""Urgency, eligibility, power, names of policies."""

import math

import pytest

from control.errors import SettingError
from control.policy.codes import (
    DOWN,
    DRAINING,
    FCFS,
    HEXGEN,
    HEXGEN_ARTIFACT,
    LLF,
    POLICIES,
    UP,
    policy_codes,
)
from control.policy.eligible import count_eligible, fits_any_context, is_eligible, nth_eligible
from control.policy.power import run_w
from control.policy.rules import policy_table
from control.policy.urgency import urgency_s
from tests.support import tables


def test_urgency_is_time_needed_less_time_left() -> None:
    """4 s of work, budget 10 s, waited 3 s: laxity 3 s."""
    [call] = tables.calls({"t_comp_s": 4.0, "budget_s": 10.0, "ready_s": 2.0})
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


def test_artifact_form_changes_the_dispatch_of_the_papers_policies_alone() -> None:
    assert policy_codes("hexgen", "artifact") == (HEXGEN_ARTIFACT, LLF)
    assert policy_codes("wb-fcfs", "artifact") == (HEXGEN_ARTIFACT, FCFS)
    for name in set(POLICIES) - {"hexgen", "wb-fcfs"}:
        assert policy_codes(name, "artifact") == policy_codes(name)


def test_unknown_form_names_what_exists() -> None:
    with pytest.raises(SettingError, match=r"form = 'papyrus': expected one of paper, artifact"):
        policy_codes("hexgen", "papyrus")


@pytest.mark.parametrize("aging_s", [0.0, -1.0, math.nan])
def test_aging_takes_a_number_of_seconds(aging_s: float) -> None:
    with pytest.raises(SettingError, match=r"aging_s = .*: expected a number of seconds > 0"):
        policy_table("hexgen", 0.5, aging_s=aging_s)


def test_unknown_policy_names_what_exists() -> None:
    with pytest.raises(SettingError, match=r"policy = 'hexgenn': expected one of hexgen, wb-fcfs, rr-fcfs"):
        policy_codes("hexgenn")
