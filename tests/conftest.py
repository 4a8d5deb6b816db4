"""Fixtures that every room's tests share."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import laws
from tests.support.running import Start, starter


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
