"""The loop over a real store: what a tick records, what a command does, and that both are one transaction."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from control.config import EngineSettings
from control.engine import checkpoint
from control.engine.loop import Loop
from control.engine.source import Source
from control.engine.state import start
from control.errors import LeaseHeldError
from control.model.fleet import Fleet
from control.workload.generate import generate
from storage import commands, lease, readers
from storage.journal import Journal
from storage.open import Store, open_store


@pytest.fixture
def dashboard(tmp_path: Path, store: Store) -> Iterator[Store]:
    """Another process's view of the same store."""
    opened = open_store(str(tmp_path / "headway.db"))
    yield opened
    opened.close()


@pytest.fixture
def loop(store: Store, demo_fleet: Fleet, demo_source: Source) -> Loop:
    live = start(demo_fleet, demo_source, "hexgen", 0.3, 1.0)
    return Loop(live, store, EngineSettings(), "0", lambda: False)


def sim(loop: Loop) -> float:
    """Simulated time, rounded to a microsecond."""
    return round(loop.live.now_s, 6)


def test_time_goes_at_the_speed_and_stands_still_while_paused(loop: Loop, dashboard: Store) -> None:
    loop.tick(1.0)
    assert sim(loop) == 1.0
    commands.submit(dashboard, "speed", {"speed": 20.0}, "test")
    loop.tick(1.0)
    loop.record()
    assert sim(loop) == 2.0
    loop.tick(1.0)
    assert sim(loop) == 22.0
    commands.submit(dashboard, "pause", {}, "test")
    for _ in range(3):
        loop.tick(1.0)
        loop.record()
    assert sim(loop) == 42.0
    commands.submit(dashboard, "step", {"step_s": 90.0}, "test")
    loop.tick(1.0)
    assert sim(loop) == 132.0
    loop.record()
    newest = readers.latest_snapshot(dashboard)
    assert newest is not None
    assert newest["payload"]["engine"]["state"] == "paused"
    commands.submit(dashboard, "resume", {}, "test")
    loop.tick(0.0)
    loop.tick(0.5)
    assert sim(loop) == 142.0


def test_a_command_is_obeyed_once_and_told_with_its_event(loop: Loop, dashboard: Store) -> None:
    good = commands.submit(dashboard, "alpha", {"alpha": 0.8}, "ann", expected=0.3)
    loop.tick(0.1)
    stale = commands.submit(dashboard, "alpha", {"alpha": 0.1}, "bob", expected=0.3)
    for _ in range(5):
        loop.tick(0.1)
    assert loop.live.alpha == 0.8
    assert [outcome["id"] for outcome in loop.pending.outcomes] == [good, stale]
    loop.record()
    loop.tick(0.1)
    loop.record()
    rows = {key: commands.get(dashboard, key) or {} for key in (good, stale)}
    assert (rows[good]["state"], rows[stale]["state"]) == ("applied", "refused")
    assert "it is 0.8 now, not 0.3" in rows[stale]["reason"]
    events = [row for row in readers.events(dashboard, 0.0, 99) if row["command_id"] is not None]
    assert [(row["command_id"], row["old"], row["new"]) for row in events] == [(good, 0.3, 0.8)]


def test_a_fleet_too_large_for_its_speed_runs_slower(loop: Loop) -> None:
    loop.advance(60.0, most_work_s=0.0)
    assert 0.0 < sim(loop) < 60.0  # time is left behind, commits and commands are not
    loop.advance(60.0)
    assert sim(loop) > 60.0


def test_what_was_not_recorded_did_not_happen(loop: Loop, store: Store, dashboard: Store, demo_fleet: Fleet) -> None:
    loop.tick(1.0)
    loop.record()
    asked = commands.submit(dashboard, "alpha", {"alpha": 0.8}, "ann")
    loop.tick(1.0)
    assert loop.live.alpha == 0.8
    saved = Journal(store).load_checkpoint()
    assert saved is not None
    again = Loop(checkpoint.load(saved[2], demo_fleet, loop.live.source), store, EngineSettings(), "0", lambda: False)
    assert again.live.alpha == 0.3
    assert (commands.get(dashboard, asked) or {})["state"] == "pending"
    again.tick(1.0)
    again.record()
    assert (commands.get(dashboard, asked) or {})["state"] == "applied"
    assert again.live.alpha == 0.8


def test_decisions_workflows_and_samples_reach_the_store(loop: Loop, dashboard: Store) -> None:
    loop.live.speed = 60.0
    for _ in range(4):
        loop.tick(1.0)
        loop.record()
    newest = readers.latest_snapshot(dashboard)
    assert newest is not None
    payload = newest["payload"]
    ended = readers.workflows(dashboard, 10_000)
    assert payload["fleet"]["completed"] == len(ended) > 100
    assert len(readers.decisions(dashboard, 100_000)) > 1000
    columns = readers.samples(dashboard, None, 0.0, 1)
    assert len(columns["at"]) == 4 * 9
    assert payload["fleet"]["power_w"] == pytest.approx(sum(row["power_w"] for row in payload["instances"]))
    assert payload["fleet"]["queued"] == sum(row["queued"] for row in payload["instances"])
    assert 0.0 <= payload["fleet"]["slo_attainment"] <= 1.0
    figures = [row["latency_s"] for row in ended if row["state"] == "completed"]
    assert min(figures) <= payload["fleet"]["p50_s"] <= payload["fleet"]["p95_s"] <= max(figures)


def test_an_engine_that_lost_its_lease_writes_nothing_more(loop: Loop, store: Store, dashboard: Store) -> None:
    loop.tick(1.0)
    loop.record()
    lease.release(dashboard, "this-engine")
    lease.acquire(dashboard, "the-other")
    before = len(readers.events(dashboard, 0.0, 99))
    loop.event("alpha", "never to be seen")
    with pytest.raises(LeaseHeldError, match="another engine drives this store"):
        loop.record()
    assert len(readers.events(dashboard, 0.0, 99)) == before


def test_a_finished_trace_says_so_and_keeps_answering(store: Store, dashboard: Store, demo_fleet: Fleet) -> None:
    source = Source("t", 0, trace=generate("text2sql", 20, 0, 5.0))
    loop = Loop(start(demo_fleet, source, "hexgen", 0.3, 60.0), store, EngineSettings(), "0", lambda: False)
    for _ in range(8):
        loop.tick(1.0)
    loop.record()
    asked = commands.submit(dashboard, "alpha", {"alpha": 1.0}, "ann")
    loop.tick(1.0)
    loop.record()
    newest: Any = readers.latest_snapshot(dashboard)
    assert newest["payload"]["engine"]["state"] == "finished"
    assert newest["payload"]["fleet"]["completed"] == 20
    assert (commands.get(dashboard, asked) or {})["state"] == "applied"


def test_it_ends_when_told_to(loop: Loop, dashboard: Store) -> None:
    ticks = iter([False, False, True])
    loop.should_stop = lambda: next(ticks)
    loop.run()
    assert readers.latest_snapshot(dashboard) is not None
