"""A store per test that the pages open by HEADWAY_DB, as a process of its own would; a dashboard and a browser."""

import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pages._ui import source
from storage.open import Store, open_store
from tests.support import details
from tests.support.snapshots import StandInEngine
from tests.support.stored import store_trio
from tests.support.web import CHROMIUM, FLAGS, PATIENCE_MS

APP = Path(__file__).resolve().parents[2] / "app.py"


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    name = f"sqlite:///{tmp_path / 'headway.db'}"
    monkeypatch.setenv("HEADWAY_DB", name)
    yield name
    source.close()


@pytest.fixture
def engine_store(url: str) -> Iterator[Store]:
    """The engine's own connection to the store."""
    opened = open_store(url)
    yield opened
    opened.close()


@pytest.fixture
def engine(engine_store: Store) -> StandInEngine:
    return StandInEngine(engine_store)


@pytest.fixture
def ticking(engine: StandInEngine) -> Iterator[StandInEngine]:
    """The stand-in engine at one tick a second, with ended workflows and two tuning runs in the store."""
    store_trio(engine.store, 0.3, realised_p95_s=25.0)
    store_trio(engine.store)
    engine.tick(workflows=tuple(details.workflow(300 + k) for k in range(5)))
    stop = threading.Event()

    def tick() -> None:
        while not stop.wait(1.0):
            engine.tick()

    thread = threading.Thread(target=tick)
    thread.start()
    yield engine
    stop.set()
    thread.join()


@pytest.fixture
def base(ticking: StandInEngine, url: str) -> Iterator[str]:
    """A dashboard of that store."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", str(APP), f"--server.port={port}"]
    environment = os.environ | {"HEADWAY_DB": url, "HEADWAY_ENGINE": "external"}
    server = subprocess.Popen(command, cwd=APP.parent, env=environment, stdout=subprocess.DEVNULL)
    yield answering(f"http://localhost:{port}")
    server.terminate()
    server.wait(20)


def answering(address: str) -> str:
    """The address, once somebody answers there."""
    for _ in range(300):
        with suppress(OSError), urllib.request.urlopen(f"{address}/api/health", timeout=3.0):
            return address
        time.sleep(0.2)
    raise AssertionError(f"nobody answers at {address}")


@pytest.fixture(
    params=[pytest.param((1440, 900), id="desk"), pytest.param((390, 844), id="phone", marks=pytest.mark.slow)]
)
def page(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A page on a desk and on a phone."""
    width, height = request.param
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        opened = browser.new_page(viewport={"width": width, "height": height})
        opened.set_default_timeout(PATIENCE_MS)
        yield opened
        browser.close()
