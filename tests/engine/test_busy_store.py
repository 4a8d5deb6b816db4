"""A store that somebody else keeps locked: the engine waits, and loses nothing."""

import sqlite3

from control.config import EngineSettings
from control.engine.loop import Loop
from control.engine.source import Source
from control.engine.state import start
from control.model.fleet import load_fleet
from control.workload.scenarios import scenario
from storage import commands, lease, readers
from storage import open as opening
from storage.open import open_store


def test_what_happens_while_the_store_is_locked_is_recorded_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "BUSY_TIMEOUT_S", 0.2)
    store = open_store(str(tmp_path / "h.db"))
    lease.acquire(store, "engine")
    mix = scenario("demo-mixed")
    live = start(load_fleet(mix.fleet), Source(mix.name, 0, scenario=mix), "hexgen", 0.3, 1.0)
    loop = Loop(live, store, EngineSettings(), "0", lambda: False)
    asked = commands.submit(store, "alpha", {"alpha": 0.7}, "test")
    with sqlite3.connect(tmp_path / "h.db", isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        loop.tick(2.0)
        loop.record()
        assert readers.latest_snapshot(store) is None
        other.execute("ROLLBACK")
    loop.tick(2.0)
    loop.record()
    assert commands.get(store, asked)["state"] == "applied"
    assert [event["new"] for event in readers.events(store, 0.0, 10) if event["kind"] == "alpha"] == [0.7]
    assert readers.latest_snapshot(store)["payload"]["alpha"] == 0.7
    assert len(readers.decisions(store, 10_000)) == len({d["call"] for d in readers.decisions(store, 10_000)}) > 0
    store.close()
