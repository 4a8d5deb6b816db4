"""Whole Headways: real processes, a real browser. Everything a test starts ends with it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.running import Running, end_all, free_port

CHROMIUM = Path("/usr/bin/chromium")
PACKAGES = ("chromium", "fonts-dejavu-core")


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


@pytest.fixture
def streamlit_alone(tmp_path: Path, db: Path, port: int) -> Iterator[Running]:
    """`streamlit run app.py`, as somebody who does not know `headway up` would."""
    app = Path(__file__).resolve().parents[2] / "app.py"
    command = [sys.executable, "-m", "streamlit", "run", str(app), f"--server.port={port}", "--server.headless=true"]
    alone = Running(tmp_path, command, HEADWAY_DB=str(db))
    yield alone
    end_all([alone])
