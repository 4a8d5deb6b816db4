"""The what-if lab over a real store: asked for, run ahead, applied under watch, taken back."""

import time
from typing import Any

import pytest

from control.engine import checkpoint
from control.engine.loop import Loop
from storage import commands, forks, runs
from storage.open import Store
from tests.support.labs import SWEEP, apply, forked, go_on, kinds, loop_of, outcome, stored, widen


@pytest.fixture
def loop(store: Store) -> Loop:
    """The demo, four minutes in."""
    made = loop_of(store)
    go_on(made, 240.0)
    return made


def test_a_fork_is_stored_with_its_lines_and_its_file(loop: Loop, store: Store) -> None:
    run = forked(loop, store)
    result, params = run["result"], run["params"]
    assert (result["state"], result["progress"]) == ("done", 1.0)
    assert [row["name"] for row in result["settings"]] == ["as it is", "α 0.2", "α 0.9"]
    assert result["times_s"][-1] == 120.0
    assert all(len(row["lines"]["p95_s"]["mean"]) == len(result["times_s"]) for row in result["settings"])
    assert params["past"]["times_s"][-1] == pytest.approx(0.0, abs=15.0)
    assert forks.payload(store, run["id"])
    assert loop.forks.jobs == []


def test_what_cannot_be_forked_is_refused_with_the_reason(loop: Loop, store: Store) -> None:
    commands.submit(store, "whatif", {"spec": {"minutes": 500, "settings": [{"name": "x"}]}}, "ann")
    loop.tick(0.1)
    loop.record()
    assert outcome(store) == ("refused", "minutes = 500: expected a number from 1 to 30")


def test_the_newest_fork_stops_the_one_before(loop: Loop, store: Store) -> None:
    for seeds in (32, 2):
        spec = SWEEP | {"seeds": seeds, "minutes": 10 if seeds == 32 else 2}
        commands.submit(store, "whatif", {"spec": spec}, "ann")
    loop.tick(0.1)
    for job in list(loop.forks.jobs):
        assert job.future is not None
        job.future.result(60.0)
    until_s = time.monotonic() + 20.0
    while loop.forks.jobs and time.monotonic() < until_s:
        loop.tick(0.01)
    loop.tick(0.01)
    second, first = runs.recent(store, 2, kind="whatif", with_result=True)
    assert second["result"]["state"] == "done"
    assert (first["result"]["state"], first["result"]["reason"]) == ("failed", "stopped: another fork was asked for")


def test_an_end_that_comes_while_the_beginning_is_stored_is_stored_too(
    loop: Loop, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = runs.save

    def late(*given: Any, **named: Any) -> int:
        for job in loop.forks.jobs:
            assert job.future is not None
            job.future.result(60.0)
        return usual(*given, **named)

    monkeypatch.setattr(runs, "save", late)
    commands.submit(store, "whatif", {"spec": SWEEP}, "ann")
    until_s = time.monotonic() + 60.0
    loop.tick(0.1)
    while loop.forks.jobs and time.monotonic() < until_s:
        loop.tick(0.01)
    (run,) = runs.recent(store, 1, kind="whatif", with_result=True)
    assert run["result"]["state"] == "done"


def test_an_applied_setting_that_keeps_its_promise_stays(loop: Loop, store: Store) -> None:
    run = forked(loop, store)
    widen(store, run)
    apply(loop, store, run["id"], 1, 2.0)
    assert loop.live.alpha == 0.2
    assert stored(store, run)["guard"]["state"] == "watching"
    go_on(loop, 130.0)
    assert stored(store, run)["guard"]["state"] == "kept"
    assert loop.live.alpha == 0.2
    assert kinds(store)[0] == "guard_kept"


def test_a_broken_promise_is_taken_back_by_itself(loop: Loop, store: Store) -> None:
    run = forked(loop, store)
    widen(store, run, low=0.0, high=0.001)  # a promise that nothing can keep
    apply(loop, store, run["id"], 2, 2.0)
    assert loop.live.alpha == 0.9
    go_on(loop, 20.0)
    assert stored(store, run)["guard"]["state"] == "watching"  # it is given a quarter of its time
    go_on(loop, 20.0)
    guard = stored(store, run)["guard"]
    assert (guard["state"], loop.live.alpha) == ("rolled_back", 0.5)
    assert guard["realised_p95_s"] > 0.001
    assert kinds(store)[:2] == ["rolled_back", "alpha"]


def test_a_guard_outlives_a_restart_and_gives_way_to_another_hand(loop: Loop, store: Store) -> None:
    run = forked(loop, store)
    widen(store, run)
    apply(loop, store, run["id"], 1, 5.0)
    again = checkpoint.load(checkpoint.save(loop.live), loop.live.given, loop.live.source)
    assert again.guard == loop.live.guard is not None
    commands.submit(store, "alpha", {"alpha": 0.7}, "bob")
    loop.tick(0.01)
    loop.tick(0.01)
    assert (stored(store, run)["guard"]["state"], loop.live.alpha) == ("replaced", 0.7)


def test_what_was_applied_is_undone_like_anything_else(loop: Loop, store: Store) -> None:
    settings = [{"name": "two", "policy": "sjf", "alpha": 0.1, "changes": [{"do": "drain", "instance": "h100-0"}]}]
    run = forked(loop, store, SWEEP | {"settings": settings})
    apply(loop, store, run["id"], 1, 5.0)
    first = loop.live.world.instances[0]
    assert (loop.live.policy, loop.live.alpha, int(first["state"])) == ("sjf", 0.1, 1)
    commands.submit(store, "undo_whatif", {"run": run["id"]}, "ann")
    loop.tick(0.01)
    loop.record()
    first = loop.live.world.instances[0]
    assert (loop.live.policy, loop.live.alpha, int(first["state"])) == ("hexgen", 0.5, 0)
    assert (stored(store, run)["guard"]["state"], loop.live.guard) == ("ended", None)
    commands.submit(store, "undo_whatif", {"run": run["id"]}, "ann")
    loop.tick(0.01)
    loop.record()
    assert outcome(store) == ("refused", f"run = {run['id']}: nothing of it is applied that could be taken back")


def test_an_undo_leaves_alone_what_somebody_else_has_set_since(loop: Loop, store: Store) -> None:
    settings = [{"name": "two", "policy": "sjf", "alpha": 0.1}]
    run = forked(loop, store, SWEEP | {"settings": settings})
    apply(loop, store, run["id"], 1, 0.0)
    commands.submit(store, "alpha", {"alpha": 0.77}, "bob")
    loop.tick(0.01)
    commands.submit(store, "undo_whatif", {"run": run["id"]}, "ann")
    loop.tick(0.01)
    assert (loop.live.policy, loop.live.alpha) == ("hexgen", 0.77)


def test_watching_ends_by_hand(loop: Loop, store: Store) -> None:
    run = forked(loop, store)
    widen(store, run)
    apply(loop, store, run["id"], 1, 5.0)
    commands.submit(store, "end_guard", {}, "ann")
    loop.tick(0.01)
    assert (stored(store, run)["guard"]["state"], loop.live.guard) == ("ended", None)
    commands.submit(store, "end_guard", {}, "ann")
    loop.tick(0.01)
    loop.record()
    assert outcome(store) == ("refused", "nothing is under watch")


def test_what_cannot_be_applied_is_refused_and_leaves_all_as_it_was(loop: Loop, store: Store) -> None:
    settings = [
        {"name": "buy", "changes": [{"do": "add", "like": "h100-0"}]},
        {"name": "two", "policy": "sjf", "changes": [{"do": "drain", "instance": "h100-0"}]},
    ]
    run = forked(loop, store, SWEEP | {"settings": settings})
    apply(loop, store, run["id"], 1, 0.0)
    assert outcome(store) == ("refused", "buy: hardware is bought first")
    apply(loop, store, run["id"], 9, 0.0)
    assert outcome(store) == ("refused", "setting = 9: the run has no such setting")
    apply(loop, store, run["id"] + 1, 1, 0.0)
    assert outcome(store)[0] == "refused"
    commands.submit(store, "kill", {"instance": "h100-0"}, "ann")  # so that it cannot be drained any more
    loop.tick(0.01)
    apply(loop, store, run["id"], 2, 0.0)
    assert outcome(store) == ("refused", "h100-0 is down: cannot drain it")
    assert loop.live.policy == "hexgen"
