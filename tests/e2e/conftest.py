"""Whole Headways: real processes, a real browser. Everything a test starts ends with it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from storage import readers
from storage.open import Store, open_store
from tests.support.running import Running, Start, end_all, free_port, starter, until
from tests.support.web import is_live

CHROMIUM = Path("/usr/bin/chromium")
PACKAGES = ("chromium", "fonts-dejavu-core")
FIRST_ENDED = 20  # workflows before a module's tests begin: forks and replays draw on what has ended


class Served(NamedTuple):
    """A whole Headway that is live: where its dashboard is, its store and the folder it runs in."""

    url: str
    store: Store
    folder: Path
    whole: Running


@pytest.fixture
def port() -> int:
    """A free port."""
    return free_port()


@pytest.fixture
def url(port: int) -> str:
    """Where the dashboard will be."""
    return f"http://localhost:{port}"


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser, installed once where this is Debian and we may; else the test is skipped."""
    if not CHROMIUM.exists() and os.geteuid() == 0 and shutil.which("apt-get"):
        command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *PACKAGES]
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(command, env=quiet, capture_output=True, timeout=240, check=False)
    if not CHROMIUM.exists():
        pytest.skip(f"no browser: install {' and '.join(PACKAGES)}")
    return str(CHROMIUM)


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Any]:
    """The browser of a module's tests."""
    from tests.support.browser import launched

    with launched(chromium) as opened:
        yield opened


@pytest.fixture
def page(browser: Any, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """A test's own viewer, on a desk; of a test that fails its last picture is kept in `tmp_path`."""
    from tests.support.browser import viewer

    with viewer(browser) as opened:
        failed_before = request.session.testsfailed
        yield opened
        if request.session.testsfailed > failed_before:
            opened.screenshot(path=tmp_path / "failed.png", timeout=10_000)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One `headway up` for all tests of a module, ten times as fast as the clock."""
    folder = tmp_path_factory.mktemp("served")
    with starter(folder) as begin:
        yield from serve(begin, folder)


def serve(begin: Start, folder: Path, speed: float = 10.0) -> Iterator[Served]:
    """`headway up` in `folder`, once there is something to see on each page."""
    port, file = free_port(), folder / "headway.db"
    whole = begin("up", "--headless", "--db", file, "--port", port, "--speed", speed)
    url = f"http://localhost:{port}"
    until(lambda: is_live(url), "live data")
    store = open_store(str(file))
    until(lambda: len(readers.workflows(store, FIRST_ENDED)) == FIRST_ENDED, "the first workflows that ended")
    yield Served(url, store, folder, whole)
    store.close()


@pytest.fixture
def streamlit_alone(tmp_path: Path, db: Path, port: int) -> Iterator[Running]:
    """`streamlit run app.py`, as somebody who does not know `headway up` would."""
    app = Path(__file__).resolve().parents[2] / "app.py"
    command = [sys.executable, "-m", "streamlit", "run", str(app), f"--server.port={port}", "--server.headless=true"]
    alone = Running(tmp_path, command, HEADWAY_DB=str(db))
    yield alone
    end_all([alone])
