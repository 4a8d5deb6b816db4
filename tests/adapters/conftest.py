"""Recorded texts of real servers and GPUs, and pages served over real sockets."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adapters.pages import Pages, serving

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture
def recorded() -> Path:
    """The folder of recorded texts."""
    if not (SHARED / "metrics").is_dir():
        pytest.skip(f"no recorded texts in {SHARED}")
    return SHARED


@pytest.fixture
def pages() -> Iterator[Pages]:
    """An HTTP server of pages; `pages["/metrics"] = 200, "text"` serves one."""
    with serving() as server:
        yield server
