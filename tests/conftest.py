"""Fixtures that every room's tests share."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import laws
from tests.support.running import Start, starter
from tests.support.shares import is_live, rank

NICENESS = 5  # of a worker that has no live tests to run: what these start goes first


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Live tests first, then the long ones; the order within a file stays."""
    items.sort(key=lambda item: rank(item.nodeid))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let the live tests of another worker go first, from this worker's first other test on."""
    if hasattr(item.config, "workerinput") and not is_live(item.nodeid):
        os.setpriority(os.PRIO_PROCESS, 0, max(NICENESS, os.getpriority(os.PRIO_PROCESS, 0)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Who runs what where there are several workers: one for all live tests, whoever is free for any other."""
    from tests.support.workers import Shares

    return Shares(config, log)


@pytest.fixture
def check_world() -> Callable[..., None]:
    """The checker of all laws of the twin: check_world(world, ended=False)."""
    return laws.check_world


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """The file of a store of the test's own, for real processes."""
    return tmp_path / "headway.db"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts `headway ...` in `tmp_path`; it and all below it end with the test."""
    with starter(tmp_path) as begin:
        yield begin
