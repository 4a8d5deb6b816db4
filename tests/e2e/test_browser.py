"""A page outlives what is behind it: an engine that is killed and comes back, one that was never there."""

import re
import signal
from pathlib import Path

import pytest

from tests.support.browser import Page, badge, expect, move_alpha, visit
from tests.support.running import Running, Start, until
from tests.support.web import health, is_live

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]


@pytest.fixture
def engine(start: Start, db: Path) -> Running:
    """An engine apart from the dashboard."""
    return start("engine", "--db", db, "--speed", 5)


@pytest.fixture
def shown(engine: Running, start: Start, db: Path, port: int, url: str, page: Page) -> Page:
    """The fleet page, live."""
    start("dashboard", "--headless", "--db", db, "--port", port)
    until(lambda: is_live(url), "live data")
    visit(page, url, "Fleet")
    return page


def sim_time(page: Page) -> str:
    """The simulated time shown."""
    return str(page.get_by_test_id("sim-time").inner_text())


def alpha_shown(page: Page) -> str | None:
    """Where the slider of alpha stands."""
    slider = page.locator(".st-key-alpha").get_by_role("slider")
    return slider.get_attribute("aria-valuenow")


def test_an_engine_that_is_killed_is_told_and_its_return_shows_by_itself_with_the_draft_kept(
    shown: Page, engine: Running, start: Start, db: Path, url: str
) -> None:
    shown.evaluate("window.stillTheSamePage = true")
    move_alpha(shown, 7)
    expect(shown.get_by_role("button", name="Apply")).to_be_enabled()
    drafted = alpha_shown(shown)
    engine.signal(signal.SIGKILL)
    engine.wait()
    expect(badge(shown)).to_have_attribute("data-kind", "amber")
    expect(badge(shown)).to_have_attribute("data-kind", "red", timeout=6_500)
    expect(badge(shown)).to_contain_text("engine down")
    until(lambda: health(url)["engine"] == "down", "the engine to be told down", 2.0)
    expect(shown.get_by_test_id("instance-h100-0")).to_be_visible()
    stopped = sim_time(shown)
    start("engine", "--db", db, "--speed", 5)
    expect(badge(shown)).to_contain_text(re.compile("live", re.I))
    until(lambda: sim_time(shown) != stopped, "simulated time going on")
    assert shown.evaluate("window.stillTheSamePage") is True
    assert alpha_shown(shown) == drafted
    shown.get_by_role("button", name="Apply").click()
    expect(shown.locator(".st-key-command-state")).to_contain_text("Applied α 0.57")


@pytest.mark.slow
def test_a_page_opened_before_any_engine_comes_alive_by_itself(
    start: Start, db: Path, port: int, url: str, page: Page
) -> None:
    start("dashboard", "--headless", "--db", db, "--port", port)
    until(lambda: health(url) != {}, "the dashboard")
    page.goto(url)
    expect(page.locator(".face")).to_be_visible()
    start("engine", "--db", db)
    expect(badge(page)).to_contain_text(re.compile("live", re.I))
