"""The dashboard's process finds or starts an engine, and takes down only the one it started."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from streamlit.web.server.app_discovery import discover_asgi_app

import app
from storage import lease
from storage.open import Store
from tests.support.snapshots import StandInEngine


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    calls: list[list[str]] = []
    monkeypatch.setattr(app.subprocess, "Popen", lambda command, **_: calls.append(command))
    monkeypatch.delenv("HEADWAY_ENGINE", raising=False)
    return calls


def test_a_store_without_an_engine_gets_one(url: str, started: list[list[str]]) -> None:
    app.start_engine()
    assert started == [[sys.executable, "-m", "control.cli", "engine", f"--parent={os.getpid()}"]]


def test_a_live_engine_is_left_alone(engine: StandInEngine, started: list[list[str]]) -> None:
    assert app.start_engine() is None
    assert started == []


def test_a_lease_whose_engine_is_gone_does_not_stop_a_start(engine_store: Store, started: list[list[str]]) -> None:
    lease.acquire(engine_store, "gone", now=1.0)
    app.start_engine()
    assert len(started) == 1


def test_an_external_engine_is_never_started_here(
    url: str, started: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWAY_ENGINE", "external")
    assert app.start_engine() is None
    assert started == []


def test_an_engine_that_does_not_listen_is_ended_all_the_same() -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    app.stop_engine(child, grace_s=0.2)
    assert child.poll() is not None
    child.stdout.close()


def test_the_dashboard_ends_once_its_parent_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(app.os, "kill", lambda pid, number: sent.append((pid, number)))
    asyncio.run(app.end_with(os.getppid() + 1))
    assert sent == [(os.getpid(), signal.SIGTERM)]


def test_streamlit_run_takes_the_app_with_its_routes() -> None:
    found = discover_asgi_app(Path(app.__file__))
    assert found.is_asgi_app
    assert found.app_name == "app"
