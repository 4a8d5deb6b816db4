"""Another scenario begins while the engine runs: what was, ends in one commit; a killed engine comes back in it."""

from dataclasses import replace
from typing import Any

import pytest

from control.config import EngineSettings
from control.engine import checkpoint
from control.engine.history import History
from control.engine.loop import Loop
from control.engine.source import Source
from control.engine.state import Live, start
from control.model.fleet import load_fleet
from control.service import restored
from control.workload.generate import generate
from control.workload.scenarios import WINDOW_IDS, scenario, scenario_names
from storage import commands, readers
from storage.journal import Journal
from storage.open import Store
from tests.support.live import check_live
from tests.support.parity import unlike_tables

ORIGIN = EngineSettings()


def origin() -> tuple[Any, Source]:
    """Fleet and source of an engine that was started without options."""
    return load_fleet("demo-mixed"), Source("demo-mixed", 0, scenario=scenario("demo-mixed"))


def loop_of(live: Live, store: Store) -> Loop:
    """An engine's loop around it."""
    return Loop(live, store, ORIGIN, "test", lambda: False)


@pytest.fixture
def loop(store: Store) -> Loop:
    """The demo, some simulated seconds in, committed once."""
    running = loop_of(start(*origin(), "hexgen", 0.5, 5.0), store)
    running.tick(9.0)
    running.record()
    return running


def choose(loop: Loop, name: str, seed: int = 0, expected: Any = None) -> dict[str, Any]:
    """Have the loop take a command that asks for a scenario, and commit; the command's row."""
    number = commands.submit(loop.store, "scenario", {"scenario": name, "seed": seed}, "test", expected)
    loop.tick(0.0)
    loop.record()
    row = commands.get(loop.store, number)
    assert row is not None
    return row


@pytest.mark.parametrize(
    "name", [n if n in ("agents", "step-load") else pytest.param(n, marks=pytest.mark.slow) for n in scenario_names()]
)
def test_it_begins_as_if_the_engine_had_been_started_with_it(loop: Loop, name: str) -> None:
    windows = loop.live.next_window
    assert choose(loop, name, 3)["state"] == "applied"
    mix = scenario(name)
    source = Source(name, 3, scenario=mix, first_id=windows * WINDOW_IDS)
    fresh = start(load_fleet(mix.fleet), source, mix.policy, ORIGIN.alpha, 5.0)
    assert unlike_tables(loop.live.world, fresh.world) == []
    assert (loop.live.policy, loop.live.fleet, loop.live.now_s) == (mix.policy, fresh.fleet, 0.0)
    loop.tick(4.0)
    check_live(loop.live.world)


def test_what_was_under_way_ends_in_the_same_commit(loop: Loop) -> None:
    active = [int(row["id"]) for row in loop.live.world.workflows if row["state"] == 1]
    assert active
    choose(loop, "burst")
    lost = readers.workflows(loop.store, 999, state="failed")
    assert sorted(row["id"] for row in lost) == sorted(active)
    assert {row["cause"] for row in lost} == {"scenario_replaced"}
    (event,) = [row for row in readers.events(loop.store, 0.0, 99) if row["kind"] == "scenario"]
    assert event["text"] == f"scenario demo-mixed → burst, seed 0; {len(active)} workflows ended"
    newest = readers.latest_snapshot(loop.store)
    assert newest is not None
    assert (newest["payload"]["scenario"], newest["sim_s"]) == ("burst", 0.0)


def test_no_number_of_a_workflow_comes_twice_in_a_store(loop: Loop) -> None:
    seen: set[int] = set()
    for k in range(4):
        for _ in range(3):
            loop.tick(9.0)
            loop.record()
        own = {int(number) for number in loop.live.world.workflows["id"]}
        assert not own & seen
        seen |= own | {row["id"] for row in readers.workflows(loop.store, 9999)}
        if k == 1:  # a kill in between
            source = replace(loop.live.source, first_id=0)
            live = checkpoint.load(checkpoint.save(loop.live), loop.live.given, source)
            assert live.source.first_id == loop.live.source.first_id
        choose(loop, "demo-mixed" if k % 2 else "burst", k)
    ids = [row["id"] for row in readers.workflows(loop.store, 9999)]
    assert len(ids) == len(set(ids)) > 100


def test_history_and_tuner_begin_anew_and_the_speed_stays(loop: Loop) -> None:
    loop.live.tuning_mode, loop.live.pinned = "auto", True
    history, tuner = loop.history, loop.tuner
    choose(loop, "agents")
    assert isinstance(loop.history, History)
    assert loop.history is not history
    assert loop.tuner is not tuner
    assert tuner.stopping
    assert (loop.live.tuning_mode, loop.live.pinned, loop.live.speed) == ("suggest", False, 5.0)


@pytest.mark.parametrize(
    ("name", "expected", "says"),
    [
        ("party", None, "scenario = 'party': expected one of demo-mixed"),
        ("burst", "agents", "it is demo-mixed now, not agents"),
    ],
)
def test_refused_and_everything_goes_on(loop: Loop, name: str, expected: Any, says: str) -> None:
    live = loop.live
    row = choose(loop, name, expected=expected)
    assert (row["state"], loop.live) == ("refused", live)
    assert says in row["reason"]


def test_a_trace_is_not_replaced(store: Store) -> None:
    source = Source("t.csv", 0, trace=generate("text2sql", 20, 0, 1.0))
    replay = loop_of(start(load_fleet("demo-mixed"), source, "hexgen", 0.5, 1.0), store)
    row = choose(replay, "burst")
    assert (row["state"], row["reason"]) == (
        "refused",
        "a trace is replayed: start the engine with --demo for scenarios",
    )


def test_a_killed_engine_comes_back_in_what_was_chosen_last(loop: Loop) -> None:
    for name in ("agents", "power-cap"):
        choose(loop, name, 4)
    loop.tick(10.0)
    loop.record()
    live, events, lost = restored(loop.store, *origin(), ORIGIN, fresh=False)
    assert (live.source.name, live.source.seed, live.fleet.name) == ("power-cap", 4, "conserve-a40")
    assert ([kind for kind, _ in events], lost) == (["engine_recovered"], [])
    assert unlike_tables(live.world, loop.live.world) == []
    assert checkpoint.save(live) == checkpoint.save(loop.live)
    again = loop_of(live, loop.store)
    again.tick(5.0)
    again.record()
    assert restored(loop.store, *origin(), ORIGIN, fresh=False)[0].source.name == "power-cap"


def test_the_way_back_to_the_first_scenario_is_open(loop: Loop) -> None:
    choose(loop, "burst")
    choose(loop, "demo-mixed", 7)
    live, _, _ = restored(loop.store, *origin(), ORIGIN, fresh=False)
    assert (live.source.name, live.source.seed) == ("demo-mixed", 7)


def test_a_fresh_start_and_another_scenario_by_name_forget_the_choice(loop: Loop) -> None:
    choose(loop, "burst")
    assert restored(loop.store, *origin(), ORIGIN, fresh=True)[0].source.name == "demo-mixed"
    named = load_fleet("conserve-a40"), Source("agents", 0, scenario=scenario("agents"))
    live, events, _ = restored(loop.store, *named, EngineSettings(scenario="agents"), fresh=False)
    assert (live.source.name, live.begun_as) == ("agents", None)
    assert "engine_fresh" in [kind for kind, _ in events]


def test_a_choice_that_this_version_does_not_know_starts_what_was_asked_for(loop: Loop) -> None:
    choose(loop, "burst")
    loop.live.source = Source("gone", 0, scenario=loop.live.source.scenario)
    loop.record()
    saved = Journal(loop.store).load_checkpoint()
    assert saved is not None
    assert checkpoint.chosen(saved[2], *origin())[1].name == "demo-mixed"
    assert checkpoint.chosen(b"damaged", *origin())[1].name == "demo-mixed"
    assert restored(loop.store, *origin(), ORIGIN, fresh=False)[0].source.name == "demo-mixed"
