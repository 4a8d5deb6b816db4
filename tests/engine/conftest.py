"""Fleets and sources the engine's tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from control.engine.source import Source
from control.model.fleet import Fleet, load_fleet
from control.workload.scenarios import scenario
from storage import lease
from storage.open import Store, open_store
from tests.support.live import Driven, started


@pytest.fixture(scope="session")
def demo_fleet() -> Fleet:
    return load_fleet("demo-mixed")


@pytest.fixture
def demo_source() -> Source:
    return Source("demo-mixed", 0, scenario=scenario("demo-mixed"))


@pytest.fixture
def demo(demo_fleet: Fleet, demo_source: Source) -> Driven:
    """The demo, two minutes in."""
    engine = started(demo_fleet, demo_source)
    engine.run(120.0)
    return engine


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(str(tmp_path / "headway.db"))
    lease.acquire(opened, "this-engine")
    yield opened
    opened.close()
