"""Applications of forks taken back one by one; what somebody else has set since stays, and is said so."""

from typing import Any

import pytest

from control.engine import applied
from control.engine.loop import Loop
from storage import commands, readers, runs
from storage.open import Store
from tests.support.labs import SWEEP, Row, apply, forked, go_on, loop_of, order, stored, undo, widen


@pytest.fixture
def loop(store: Store) -> Loop:
    """The demo, four minutes in."""
    made = loop_of(store)
    go_on(made, 240.0)
    return made


def fork(loop: Loop, store: Store, *settings: Row) -> int:
    """The number of a fork of these settings."""
    number: int = forked(loop, store, {"minutes": 1, "seeds": 1, "settings": list(settings)})["id"]
    return number


def state(loop: Loop, i: int = 0) -> int:
    """State of an instance: 0 up, 1 draining, 2 down."""
    return int(loop.live.world.instances[i]["state"])


def test_a_setting_that_is_in_force_is_not_applied_twice_and_one_undo_takes_it_back(loop: Loop, store: Store) -> None:
    run = fork(loop, store, {"name": "α", "alpha": 0.2})
    assert apply(loop, store, run, 1) == ("applied", "α")
    assert apply(loop, store, run, 1) == ("refused", "α: it is in force already")
    assert undo(loop, store, run)[0] == "applied"
    assert loop.live.alpha == 0.5


def test_two_settings_of_one_fork_are_taken_back_one_by_one(loop: Loop, store: Store) -> None:
    run = fork(loop, store, {"name": "low", "alpha": 0.2}, {"name": "high", "alpha": 0.9, "policy": "sjf"})
    for setting in (1, 2):
        assert apply(loop, store, run, setting)[0] == "applied"
    alphas = []
    for _ in range(2):
        assert undo(loop, store, run)[0] == "applied"
        alphas.append((loop.live.alpha, loop.live.policy))
    assert alphas == [(0.2, "hexgen"), (0.5, "hexgen")]
    assert undo(loop, store, run) == ("refused", f"run = {run}: nothing of it is applied that could be taken back")


def test_what_another_fork_has_set_since_stays_until_that_is_taken_back(loop: Loop, store: Store) -> None:
    first = fork(loop, store, {"name": "low", "alpha": 0.2})
    second = fork(loop, store, {"name": "high", "alpha": 0.9})
    for run in (first, second):
        apply(loop, store, run, 1)
    how, why = undo(loop, store, first)
    assert (how, loop.live.alpha) == ("refused", 0.9)
    assert why is not None
    assert "nothing can be taken back; alpha is left alone: it is 0.90 now, not 0.20 as it was left" in why
    assert undo(loop, store, second)[0] == "applied"
    assert undo(loop, store, first)[0] == "applied"
    assert loop.live.alpha == 0.5


def test_an_undo_of_a_part_says_what_it_left_alone(loop: Loop, store: Store) -> None:
    run = fork(loop, store, {"name": "two", "policy": "sjf", "alpha": 0.1})
    apply(loop, store, run, 1)
    order(loop, store, "alpha", {"alpha": 0.77})
    how, why = undo(loop, store, run)
    assert (how, loop.live.policy, loop.live.alpha) == ("applied", "hexgen", 0.77)
    assert why == "alpha is left alone: it is 0.77 now, not 0.10 as it was left"
    event = readers.newest_event(store, "undo_whatif")
    assert event is not None
    assert event["text"].startswith(f"fork #{run}, two: policy taken back; alpha is left alone")


def test_nothing_is_called_applied_where_another_hand_has_set_all_of_it(loop: Loop, store: Store) -> None:
    run = fork(loop, store, {"name": "α", "alpha": 0.2})
    apply(loop, store, run, 1)
    order(loop, store, "alpha", {"alpha": 0.77})
    how, why = undo(loop, store, run)
    assert (how, loop.live.alpha) == ("refused", 0.77)
    assert why is not None
    assert "it is 0.77 now" in why


@pytest.mark.parametrize("together", [True, False])
def test_a_drain_and_a_kill_are_both_taken_back(loop: Loop, store: Store, together: bool) -> None:
    deeds: list[dict[str, Any]] = [{"do": "drain", "instance": "h100-0"}, {"do": "fail", "instance": "h100-0"}]
    parts = [deeds] if together else [[deed] for deed in deeds]
    run = fork(loop, store, *({"name": f"{k}", "changes": part} for k, part in enumerate(parts)))
    for k in range(len(parts)):
        assert apply(loop, store, run, k + 1)[0] == "applied"
    assert state(loop) == 2
    seen = []
    for _ in parts:
        assert undo(loop, store, run)[0] == "applied"
        seen.append(state(loop))
    assert seen == ([0] if together else [1, 0])


def test_caps_are_taken_back_with_one_command(loop: Loop, store: Store) -> None:
    run = fork(loop, store, {"name": "cap", "changes": [{"do": "cap", "tier": "H100", "cap_w": 400.0}]})
    before = [spec.power_cap_w for spec in loop.live.fleet.instances]
    assert apply(loop, store, run, 1)[0] == "applied"
    assert [spec.power_cap_w for spec in loop.live.fleet.instances] != before
    told = len(readers.events(store, 0.0, 100))
    assert undo(loop, store, run)[0] == "applied"
    assert [spec.power_cap_w for spec in loop.live.fleet.instances] == before
    assert len(readers.events(store, 0.0, 100)) == told + 2  # the caps, and the undo itself


def test_a_command_that_is_obeyed_again_after_a_kill_does_the_same(loop: Loop, store: Store) -> None:
    """What a run keeps is written at once, the effect with the next commit: a kill may come between."""
    run = fork(loop, store, {"name": "low", "alpha": 0.2}, {"name": "high", "alpha": 0.9})
    apply(loop, store, run, 1)
    number = commands.submit(store, "apply_whatif", {"run": run, "setting": 2, "guard_minutes": 0.0}, "ann")
    command = commands.get(store, number)
    assert command is not None
    for alpha in (0.2, 0.2):  # as the engine's last commit has it
        loop.live.world.policy[0]["alpha"] = alpha
        applied.apply(loop.live, store, command, lambda outcome, order: None)
    taken = {**command, "id": 99, "kind": "undo_whatif"}
    for alpha in (0.9, 0.9):
        loop.live.world.policy[0]["alpha"] = alpha
        applied.undo(loop.live, store, taken, lambda outcome, order: None)
        assert loop.live.alpha == 0.2
    assert [entry.get("undone_by") for entry in applied.entries(runs.get(store, run))] == [None, 99]


def test_a_refused_apply_leaves_the_guard_of_the_one_before(loop: Loop, store: Store) -> None:
    settings = [{"name": "α", "alpha": 0.2}, {"name": "two", "changes": [{"do": "drain", "instance": "h100-0"}]}]
    run = forked(loop, store, SWEEP | {"settings": settings})
    widen(store, run)
    apply(loop, store, run["id"], 1, 5.0)
    order(loop, store, "kill", {"instance": "h100-0"})
    assert apply(loop, store, run["id"], 2, 5.0) == ("refused", "h100-0 is down: cannot drain it")
    assert loop.live.guard is not None
    assert (loop.live.guard.name, stored(store, run)["guard"]["state"]) == ("α", "watching")


def test_taking_back_one_fork_leaves_the_guard_of_another(loop: Loop, store: Store) -> None:
    first = fork(loop, store, {"name": "cap", "changes": [{"do": "cap", "tier": "H100", "cap_w": 400.0}]})
    second = forked(loop, store)
    widen(store, second)
    apply(loop, store, first, 1)
    apply(loop, store, second["id"], 1, 5.0)
    assert undo(loop, store, first)[0] == "applied"
    loop.tick(0.01)
    assert loop.live.guard is not None
    assert stored(store, second)["guard"]["state"] == "watching"


def test_a_broken_promise_marks_its_application_as_taken_back(loop: Loop, store: Store) -> None:
    run = forked(loop, store)
    widen(store, run, low=0.0, high=0.001)
    apply(loop, store, run["id"], 2, 2.0)
    go_on(loop, 40.0)
    assert [entry["undone_by"] for entry in stored(store, run)["applied"]] == ["guard"]
    assert undo(loop, store, run["id"])[0] == "refused"


def test_the_run_tells_how_p95_stands_while_it_is_watched(loop: Loop, store: Store) -> None:
    run = forked(loop, store)
    widen(store, run)
    apply(loop, store, run["id"], 1, 5.0)
    go_on(loop, 20.0)
    guard = stored(store, run)["guard"]
    assert guard["state"] == "watching"
    assert guard["realised_p95_s"] == pytest.approx(loop.live.rolling.percentile_s(95), rel=0.2)


@pytest.mark.parametrize("other", [{"scenario": "burst"}, {"seed": 7}, {"fleet": "conserve-a40"}])
def test_a_fork_of_something_else_is_refused_and_both_are_named(loop: Loop, store: Store, other: Row) -> None:
    run = forked(loop, store)
    foreign = runs.save(store, "whatif", run["params"] | other, run["result"])
    how, why = apply(loop, store, foreign, 1, 5.0)
    named = {"scenario": "demo-mixed", "seed": 0, "fleet": "demo-mixed"} | other
    says = f"fork #{foreign} is of {named['scenario']}, seed {named['seed']}, on {named['fleet']}"
    assert (how, why) == ("refused", f"{says}; the engine runs demo-mixed, seed 0, on demo-mixed")
    assert (loop.live.alpha, loop.live.guard) == (0.5, None)


def test_a_fork_of_a_run_that_has_begun_anew_is_refused(loop: Loop, store: Store) -> None:
    run = forked(loop, store)
    order(loop, store, "scenario", {"scenario": "demo-mixed", "seed": 0})
    how, why = apply(loop, store, run["id"], 1, 5.0)
    assert how == "refused"
    assert why is not None
    assert "the engine began it anew" in why
