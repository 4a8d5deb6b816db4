"""Fixtures that every room's tests share."""

from collections.abc import Callable

import pytest

from tests.support import laws


@pytest.fixture
def check_world() -> Callable[..., None]:
    """The checker of all laws of the twin: check_world(world, ended=False)."""
    return laws.check_world
