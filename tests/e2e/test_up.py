"""`headway up` from its first line to its last process."""

import os
import signal
from pathlib import Path

import pytest

from control.cli.processes import is_free
from tests.support.running import Running, Start, command_line, descendants, living, until
from tests.support.web import fetch, health, is_live

pytestmark = pytest.mark.e2e


@pytest.fixture
def up(start: Start, db: Path, port: int, url: str) -> Running:
    """A whole Headway that is live."""
    whole = start("up", "--headless", "--port", port, "--db", db, "--speed", 5)
    until(lambda: is_live(url), "live data")
    until(lambda: url in whole.stdout, "the URL on standard output")
    return whole


def the(name: str, whole: Running) -> int:
    """The process below `whole` that runs that part, 0 while there is none."""
    marks = {"engine": "control.cli engine", "dashboard": "streamlit run"}
    return next((pid for pid in descendants(whole.pid) if marks[name] in command_line(pid)), 0)


def test_one_command_opens_the_dashboard(up: Running, url: str) -> None:
    assert up.stdout.splitlines() == [f"Headway is live at {url}  (ctrl-C ends it)"]
    assert up.complaints == []
    status, body = fetch(url)
    assert status == 200
    assert b"<title>" in body
    status, body = fetch(f"{url}/api/live?since=0")
    assert status == 200
    assert b'"rows"' in body


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, *(pytest.param(s, marks=pytest.mark.slow) for s in (signal.SIGINT, signal.SIGHUP))]
)
def test_ending_it_ends_everything(up: Running, port: int, number: int) -> None:
    below = descendants(up.pid)
    assert len(below) >= 2
    up.signal(number)
    assert up.wait(10.0) == 0
    assert living(below) == []
    assert is_free("127.0.0.1", port)
    assert up.complaints == []


def test_children_end_with_a_parent_that_was_killed(up: Running, port: int) -> None:
    below = descendants(up.pid)
    up.signal(signal.SIGKILL)
    up.wait()
    until(lambda: living(below) == [], "the end of its children", 5.0)
    assert is_free("127.0.0.1", port)


def test_a_killed_engine_comes_back_by_itself(up: Running, url: str) -> None:
    engine = the("engine", up)
    os.kill(engine, signal.SIGKILL)
    until(lambda: the("engine", up) not in (0, engine), "a new engine", 5.0)
    until(lambda: is_live(url), "live data again", 20.0)
    assert up.is_alive()
    assert "the engine ended unexpectedly (exit code -9); starting it again" in up.stderr


def test_a_killed_dashboard_comes_back_by_itself(up: Running, url: str) -> None:
    os.kill(the("dashboard", up), signal.SIGKILL)
    until(lambda: health(url) == {}, "silence", 5.0)
    until(lambda: is_live(url), "the dashboard again", 30.0)


def test_a_store_in_use_is_told_once_and_ends_it(up: Running, start: Start, db: Path) -> None:
    second = start("up", "--headless", "--db", db)
    assert second.wait(30.0) == 3
    assert any("another engine drives this store" in line for line in second.complaints)
    assert "Traceback" not in second.stderr
    assert up.is_alive()


@pytest.mark.slow
def test_halves_started_apart_find_each_other(start: Start, db: Path, port: int, url: str) -> None:
    start("dashboard", "--headless", "--db", db, "--port", port)
    until(lambda: health(url).get("engine") == "down", "a dashboard without an engine")
    engine = start("engine", "--db", db)
    until(lambda: is_live(url), "live data")
    engine.signal(signal.SIGKILL)
    engine.wait()
    until(lambda: health(url)["engine"] == "down", "the engine told down", 6.0)


def test_plain_streamlit_starts_an_engine_and_ends_it(streamlit_alone: Running, url: str) -> None:
    until(lambda: is_live(url), "live data")
    below = descendants(streamlit_alone.pid)
    assert any("control.cli engine" in command_line(pid) for pid in below)
    streamlit_alone.signal(signal.SIGTERM)
    streamlit_alone.wait(10.0)
    until(lambda: living(below) == [], "the end of its engine", 5.0)


def test_an_engine_ends_with_a_plain_streamlit_that_was_killed(streamlit_alone: Running, url: str) -> None:
    until(lambda: is_live(url), "live data")
    below = descendants(streamlit_alone.pid)
    streamlit_alone.signal(signal.SIGKILL)
    streamlit_alone.wait()
    until(lambda: living(below) == [], "the end of its engine", 5.0)
