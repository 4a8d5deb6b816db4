"""Forks of a real engine: commands that went wrong inside it, and a kill while one is run ahead."""

import signal
from pathlib import Path
from typing import Any

import pytest

from storage import commands, readers, runs
from storage.open import Store
from tests.service.conftest import newest, wait_for_snapshot
from tests.support.running import Start, until

LONG: dict[str, Any] = {"minutes": 30, "seeds": 32, "settings": [{"name": f"load {k}", "load": k} for k in (3, 10)]}
POISON: tuple[dict[str, Any], ...] = (
    {"settings": [{"name": "a", "policy": ["zz"]}]},
    {"settings": [{"name": "a", "policy": {}}]},
    {"settings": [{"name": "a", "changes": [{"do": []}]}]},
)


def decided(store: Store, number: int) -> dict[str, Any]:
    """The row of a command, once it is decided."""
    until(lambda: (commands.get(store, number) or {}).get("state") != "pending", f"command {number}")
    row = commands.get(store, number)
    assert row is not None
    return row


def newest_fork(store: Store) -> dict[str, Any]:
    """The newest run of a fork."""
    until(lambda: runs.recent(store, 1, kind="whatif"), "a fork in the store")
    return runs.recent(store, 1, kind="whatif", with_result=True)[0]


def minutes_in(start: Start, db: Path, store: Store) -> Any:
    """An engine that has seen enough to fork."""
    engine = start("engine", "--db", db, "--speed", 20)
    wait_for_snapshot(store)
    until(lambda: newest(store)["payload"]["sim_s"] > 60.0, "a minute of simulated time")
    return engine


@pytest.mark.slow
def test_poison_is_refused_and_the_same_engine_goes_on(start: Start, db: Path, store: Store) -> None:
    engine = minutes_in(start, db, store)
    for spec in POISON:
        row = decided(store, commands.submit(store, "whatif", {"spec": spec}, "ann"))
        assert row["state"] == "refused"
        assert "expected" in row["reason"]
    wait_for_snapshot(store, newest(store)["seq"] + 1)
    assert newest(store)["payload"]["engine"]["pid"] == engine.pid


@pytest.mark.slow
def test_a_heavy_fork_gives_way_and_a_killed_engines_fork_is_told_as_failed(
    start: Start, db: Path, store: Store
) -> None:
    engine = minutes_in(start, db, store)
    decided(store, commands.submit(store, "whatif", {"spec": LONG}, "ann"))
    heavy = newest_fork(store)["id"]
    light = {"minutes": 1, "seeds": 1, "settings": [{"name": "as it is"}]}
    decided(store, commands.submit(store, "whatif", {"spec": light}, "ann"))
    until(lambda: newest_fork(store)["id"] > heavy and newest_fork(store)["result"]["state"] == "done", "the light one")
    decided(store, commands.submit(store, "shadows", {"policies": ["sjf"]}, "ann"))
    decided(store, commands.submit(store, "whatif", {"spec": LONG}, "ann"))
    until(lambda: newest_fork(store)["result"]["state"] == "running", "another heavy one")
    left = newest_fork(store)["id"]
    engine.signal(signal.SIGKILL)
    engine.wait()
    start("engine", "--db", db)
    until(lambda: newest_fork(store)["result"]["state"] == "failed", "the end of the fork that was left behind")
    assert (newest_fork(store)["id"], newest_fork(store)["result"]["reason"]) == (left, "the engine ended while it ran")
    until(lambda: (readers.newest_event(store, "shadows") or {}).get("new") == [], "the end of the shadows")
