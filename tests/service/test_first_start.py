"""The first start on a machine compiles for a minute: the engine says so, and can be ended all the same."""

import signal
from pathlib import Path

import pytest

from storage import lease
from storage.open import Store
from tests.service.conftest import newest, wait_for_snapshot
from tests.support.running import Start, until


def state(store: Store) -> str:
    """The engine's state as shown."""
    payload = newest(store).get("payload", {})
    return str(payload.get("engine", {}).get("state", ""))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_in_the_middle_of_compiling(start: Start, db: Path, store: Store, tmp_path: Path, number: int) -> None:
    engine = start("engine", "--db", db, HEADWAY_CACHE=str(tmp_path / "cache"))
    wait_for_snapshot(store)
    assert state(store) == "compiling"
    engine.signal(number)
    assert engine.wait(8.0) == 0
    assert engine.complaints == []
    assert lease.holder(store) is None


@pytest.mark.slow
def test_it_says_that_it_compiles_keeps_the_lease_and_goes_live(
    start: Start, db: Path, store: Store, tmp_path: Path
) -> None:
    engine = start("engine", "--db", db, HEADWAY_CACHE=str(tmp_path / "cache"))
    first = wait_for_snapshot(store, 2)
    assert first["payload"]["engine"]["pid"] == engine.pid
    assert first["payload"]["fleet_name"] == "demo-mixed"
    assert start("engine", "--db", db).wait(15.0) == 3
    until(lambda: state(store) == "running", "live data", 240.0)
    assert newest(store)["at"] - first["at"] == pytest.approx(newest(store)["seq"] - first["seq"], rel=0.2)
    engine.signal(signal.SIGTERM)
    assert engine.wait(10.0) == 0
