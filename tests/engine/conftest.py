"""Fleets and sources the engine's tests share."""

from collections.abc import Iterator
from copy import deepcopy
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


@pytest.fixture(scope="session")
def two_minutes_in(demo_fleet: Fleet) -> Driven:
    """The demo after two minutes, run once and never touched."""
    engine = started(demo_fleet, Source("demo-mixed", 0, scenario=scenario("demo-mixed")))
    engine.run(120.0)
    return engine


@pytest.fixture
def demo(two_minutes_in: Driven) -> Driven:
    """The demo, two minutes in, a test's own."""
    return deepcopy(two_minutes_in)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(str(tmp_path / "headway.db"))
    lease.acquire(opened, "this-engine")
    yield opened
    opened.close()
