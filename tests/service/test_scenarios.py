"""A scenario chosen while the engine runs outlives a kill of the engine, whatever it was started with."""

import signal
from pathlib import Path

import pytest

from storage import commands, readers
from storage.open import Store
from tests.service.conftest import event_kinds, newest, wait_for_snapshot
from tests.support.running import Start, until


def shown(store: Store) -> tuple[str, int, str]:
    """Scenario, seed and fleet of the newest snapshot."""
    payload = newest(store).get("payload", {})
    return payload.get("scenario", ""), payload.get("seed", -1), payload.get("fleet_name", "")


@pytest.mark.slow
def test_one_click_and_a_kill_later_it_still_runs(start: Start, db: Path, store: Store) -> None:
    engine = start("engine", "--db", db, "--speed", 20)
    wait_for_snapshot(store, 1)
    asked = commands.submit(store, "scenario", {"scenario": "power-cap", "seed": 5}, "test")
    until(lambda: (commands.get(store, asked) or {})["state"] == "applied", "the scenario begun")
    until(lambda: newest(store)["sim_s"] > 185.0, "its first act")
    engine.signal(signal.SIGKILL)
    engine.wait()
    before = newest(store)
    second = start("engine", "--db", db, "--speed", 20)
    after = wait_for_snapshot(store, before["seq"])
    assert shown(store) == ("power-cap", 5, "conserve-a40")
    assert after["sim_s"] >= before["sim_s"]
    until(lambda: newest(store)["sim_s"] > 365.0, "its second act")
    assert event_kinds(store) == ["engine_started", "scenario", "power_cap", "engine_recovered", "power_cap"]
    second.signal(signal.SIGTERM)
    assert second.wait(10.0) == 0
    assert second.complaints == []
    failed = readers.workflows(store, 999, state="failed")
    assert {row["cause"] for row in failed} == {"scenario_replaced"}
    third = start("engine", "--db", db, "--fresh")
    wait_for_snapshot(store, newest(store)["seq"])
    assert shown(store) == ("demo-mixed", 0, "demo-mixed")
    assert third.is_alive()
