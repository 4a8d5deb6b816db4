"""What a command asked for, what came of it and what takes it back reads as a person would say it."""

from typing import Any

import pytest

from control.policy.codes import POLICIES, policy_codes
from control.present.wording import SCORED, Order, asked, effect, inverse, meanwhile, order, outcome, policy_name


def command(kind: str, payload: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"kind": kind, "payload": payload, "expected": None, "state": "applied", "reason": None} | more


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (command("alpha", {"alpha": 0.35}, expected=0.2), "α 0.20 → 0.35"),
        (command("alpha", {"alpha": 0.35}), "α 0.35"),
        (command("policy", {"policy": "edf"}, expected="hexgen"), "policy hexgen → edf"),
        (command("speed", {"speed": 0.5}, expected=10.0), "speed ×10 → ×0.5"),
        (command("drain", {"instance": "h100-0"}), "drain h100-0"),
        (command("step", {"step_s": 10.0}), "step 10 s"),
        (command("pause", {}), "pause"),
    ],
)
def test_a_command_reads_as_what_it_asked_for(row: dict[str, Any], text: str) -> None:
    assert asked(row) == text


def test_a_refusal_carries_its_reason() -> None:
    assert outcome(command("alpha", {}, state="refused", reason="it is 0.4")) == "✕ refused: it is 0.4"
    assert outcome(command("alpha", {}, state="pending")) == "… pending"


@pytest.mark.parametrize(
    ("row", "undo"),
    [
        (command("alpha", {"alpha": 0.35}, expected=0.2), Order("alpha", {"alpha": 0.2}, 0.35)),
        (command("drain", {"instance": "l4-0"}), Order("undrain", {"instance": "l4-0"})),
        (command("revive", {"instance": "l4-0"}), None),  # it would kill, unasked
        (command("pause", {}), Order("resume", {})),
        (command("alpha", {"alpha": 0.35}), None),
        (command("step", {"step_s": 10.0}), None),
        (command("alpha", {"alpha": 0.35}, expected=0.2, state="refused"), None),
        (command("alpha", {"alpha": 0.35}, expected=0.2, state="pending"), None),
    ],
)
def test_only_what_can_be_taken_back_has_an_inverse(row: dict[str, Any], undo: Order | None) -> None:
    assert inverse(row) == undo


def test_an_order_without_a_known_old_value_expects_nothing() -> None:
    assert order("alpha", 0.5) == Order("alpha", {"alpha": 0.5}, None)
    assert order("step", 10.0) == Order("step", {"step_s": 10.0})


def test_a_confirmation_names_the_instance_and_the_calls_it_reaches() -> None:
    assert "Kill l4-0: 1 call running" in effect("kill", "l4-0", 1, 3)
    assert "5 calls running and 0 queued there are finished" in effect("drain", "l4-0", 5, 0)


@pytest.mark.parametrize(
    ("applied", "base", "draft", "warned"),
    [(0.2, 0.2, 0.5, False), (0.4, 0.2, 0.2, False), (0.5, 0.2, 0.5, False), (0.4, 0.2, 0.5, True)],
)
def test_only_an_edit_that_lost_its_base_is_warned(applied: float, base: float, draft: float, warned: bool) -> None:
    assert bool(meanwhile(applied, base, draft)) == warned


@pytest.mark.parametrize(
    ("kind", "payload", "words"),
    [
        ("tune", {}, "run tuning"),
        ("tuning_mode", {"mode": "auto"}, "tuning auto"),
        ("release_alpha", {}, "release α to the tuner"),
    ],
)
def test_what_is_asked_of_the_tuner_reads_as_words(kind: str, payload: dict[str, Any], words: str) -> None:
    assert asked(command(kind, payload)) == words


def test_a_mode_of_the_tuner_is_undone_where_the_engine_recorded_the_old_one() -> None:
    assert inverse(command("tuning_mode", {"mode": "auto"}), {"mode": "off"}) == Order("tuning_mode", {"mode": "off"})
    assert inverse(command("tuning_mode", {"mode": "auto"})) is None
    assert inverse(command("tune", {})) is None


def test_a_policy_names_the_form_of_its_score_where_it_is_not_the_papers() -> None:
    assert policy_name("hexgen", "paper") == "hexgen"
    assert policy_name("hexgen", "artifact") == "hexgen, artifact form"
    assert policy_name("edf", "artifact") == "edf"


def test_the_policies_with_two_forms_are_those_whose_dispatch_differs() -> None:
    assert {name for name in POLICIES if policy_codes(name, "artifact") != policy_codes(name)} == SCORED
