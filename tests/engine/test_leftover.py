"""What does not go on when an engine ends or another scenario begins, and that the store says so."""

from typing import Any

import pytest

from control.engine import beside
from control.engine.loop import Loop
from storage import commands, readers, runs
from storage.open import Store
from tests.support.labs import Row, apply, forked, go_on, loop_of, order, stored, widen

LONG: Row = {"minutes": 30, "seeds": 32, "settings": [{"name": "α", "alpha": 0.2}]}


@pytest.fixture
def loop(store: Store) -> Loop:
    """The demo, four minutes in."""
    made = loop_of(store)
    go_on(made, 240.0)
    return made


def under_way(loop: Loop, store: Store) -> Row:
    """The run of a fork that is not done."""
    commands.submit(store, "whatif", {"spec": LONG}, "ann")
    loop.tick(0.01)
    (run,) = runs.recent(store, 1, kind="whatif", with_result=True)
    assert run["result"]["state"] == "running"
    return run


def shadow_texts(store: Store) -> list[str]:
    """What was told of shadows, newest first."""
    return [event["text"] for event in readers.events(store, 0.0, 100) if event["kind"] == "shadows"]


def test_a_fork_that_a_killed_engine_left_is_told_as_failed_by_the_next(loop: Loop, store: Store) -> None:
    run = runs.save(
        store, "whatif", {"spec": LONG}, {"state": "running", "reason": None, "settings": [], "guard": None}
    )
    done = forked(loop, store)
    beside.begin(loop)
    left = runs.get(store, run)
    assert left is not None
    assert (left["result"]["state"], left["result"]["reason"]) == ("failed", "the engine ended while it ran")
    assert stored(store, done)["state"] == "done"


def test_a_fork_under_way_at_a_clean_stop_is_told_as_failed(loop: Loop, store: Store) -> None:
    run = under_way(loop, store)
    beside.end(loop)
    told = stored(store, run)
    assert (told["state"], told["reason"]) == ("failed", "the engine ended while it ran")


def test_a_fork_that_another_scenario_stops_says_so(loop: Loop, store: Store) -> None:
    run = under_way(loop, store)
    order(loop, store, "scenario", {"scenario": "burst", "seed": 0})
    for job in list(loop.forks.jobs):
        assert job.future is not None
        job.future.result(60.0)
    loop.tick(0.01)
    assert stored(store, run)["reason"] == "stopped: another scenario began"


def test_a_guard_ends_with_the_scenario_it_watched(loop: Loop, store: Store) -> None:
    run = forked(loop, store)
    widen(store, run)
    apply(loop, store, run["id"], 1, 5.0)
    order(loop, store, "scenario", {"scenario": "burst", "seed": 0})
    guard = stored(store, run)["guard"]
    assert (guard["state"], guard["why"], loop.live.guard) == ("ended", "another scenario began", None)


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_guard_goes_on_with_its_engine_and_ends_with_a_fresh_start(loop: Loop, store: Store, goes_on: bool) -> None:
    run = forked(loop, store)
    widen(store, run)
    apply(loop, store, run["id"], 1, 5.0)
    loop.live.guard = loop.live.guard if goes_on else None
    beside.begin(loop)
    assert stored(store, run)["guard"]["state"] == ("watching" if goes_on else "ended")


def test_shadows_that_end_with_their_scenario_are_told(loop: Loop, store: Store) -> None:
    order(loop, store, "shadows", {"policies": ["sjf"]})
    order(loop, store, "scenario", {"scenario": "burst", "seed": 0})
    assert shadow_texts(store) == ["shadows ended: another scenario began", "shadow policies: sjf"]


def test_shadows_that_end_with_their_engine_are_told_once(loop: Loop, store: Store) -> None:
    order(loop, store, "shadows", {"policies": ["sjf", "edf"]})
    texts: list[Any] = []
    for _ in range(2):
        again = loop_of(store)
        beside.begin(again)
        again.record()
        texts.append(shadow_texts(store))
    assert texts[0] == texts[1] == ["shadows ended: the engine began anew", "shadow policies: sjf, edf"]
