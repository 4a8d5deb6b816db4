"""Fixtures that every room's tests share."""

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from tests.support import laws
from tests.support.running import Start, starter

ROOT = Path(__file__).resolve().parent
#: Tests that start processes and wait for what these do in time: with several workers, one runs them all, in turn.
LIVE = ("e2e", "service", "pages/test_navigation.py", "cli/test_signals.py", "cli/test_warm.py")
#: Files whose fixtures cost more than their tests: one worker each.
TOGETHER = ("tuning/test_report.py", "storage/test_postgres.py")
#: Long ones, begun early: the workers end at about the same time.
LONG = ("parity/test_flags.py", "laws/test_ledger.py", "tuning/test_report.py", "storage/test_journal.py")
NICENESS = 5  # of a worker that has no live tests to run: what these start goes first


def place_of(item: pytest.Item) -> str:
    """The file of a test below this folder."""
    return item.path.relative_to(ROOT).as_posix()


def is_live(item: pytest.Item) -> bool:
    """Whether a test starts processes and times them."""
    return place_of(item).startswith(LIVE)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, object, object]:
    """Live tests first and in one group, then the long ones; the order within a file stays.

    As a wrapper it runs before the plugin that reads the groups.
    """
    for item in items:
        if is_live(item):
            item.add_marker(pytest.mark.xdist_group("live"))
        elif place_of(item).startswith(TOGETHER):
            item.add_marker(pytest.mark.xdist_group(place_of(item)))
    items.sort(key=lambda item: (not is_live(item), not place_of(item).startswith(LONG)))
    return (yield)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let the live tests of another worker go first, from this worker's first other test on."""
    if hasattr(item.config, "workerinput") and not is_live(item):
        os.setpriority(os.PRIO_PROCESS, 0, max(NICENESS, os.getpriority(os.PRIO_PROCESS, 0)))


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
