"""An operator at the dashboard: live numbers, a change that takes effect, an engine that goes and comes back."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import commands, readers
from storage.open import Store, open_store
from tests.support.running import Running, Start, until
from tests.support.web import health, is_live

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect, Page = playwright.expect, playwright.Page

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]
FLAGS = """--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
--disable-component-update --disable-sync --disable-dev-shm-usage"""
PATIENCE_MS = 60_000


@pytest.fixture
def page(chromium: str) -> Iterator[Page]:
    """A page of 1440 x 900 that keeps what its console said."""
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS.split())
        opened = browser.new_page(viewport={"width": 1440, "height": 900})
        opened.set_default_timeout(PATIENCE_MS)
        yield opened
        browser.close()


@pytest.fixture
def engine(start: Start, db: Path) -> Running:
    """An engine apart from the dashboard."""
    return start("engine", "--db", db, "--speed", 5)


@pytest.fixture
def shown(engine: Running, start: Start, db: Path, port: int, url: str, page: Page) -> Page:
    """The fleet page, live."""
    start("dashboard", "--headless", "--db", db, "--port", port)
    until(lambda: is_live(url), "live data")
    page.goto(url)
    expect(badge(page)).to_contain_text(re.compile("live", re.I), timeout=PATIENCE_MS)
    return page


@pytest.fixture
def store(db: Path) -> Iterator[Store]:
    """The test's own view of the store."""
    opened = open_store(str(db))
    yield opened
    opened.close()


def badge(page: Page) -> playwright.Locator:
    """The live badge."""
    return page.get_by_test_id("live-badge")


def command_state(page: Page) -> playwright.Locator:
    """The lines that tell what is applied and what became of the last command."""
    return page.locator(".st-key-command-state")


def sim_time(page: Page) -> str:
    """The simulated time shown."""
    return str(page.get_by_test_id("sim-time").inner_text())


def move_alpha(page: Page, steps: int) -> None:
    """Move the slider by arrow keys, a hundredth each."""
    slider = page.locator(".st-key-alpha").get_by_role("slider")
    slider.focus()
    for _ in range(abs(steps)):
        slider.press("ArrowRight" if steps > 0 else "ArrowLeft")


def test_alpha_moved_with_the_keyboard_is_applied(shown: Page, store: Store) -> None:
    move_alpha(shown, 7)
    shown.get_by_role("button", name="Apply").click()
    expect(command_state(shown)).to_contain_text("applied", timeout=15_000)
    expect(command_state(shown)).to_contain_text("Applied α 0.57")
    (row,) = commands.recent(store, 9)
    assert (row["kind"], row["payload"], row["expected"], row["state"]) == ("alpha", {"alpha": 0.57}, 0.5, "applied")
    (event,) = [event for event in readers.events(store, 0.0, 99) if event["command_id"] == row["id"]]
    assert (event["kind"], event["old"], event["new"]) == ("alpha", 0.5, 0.57)
    until(lambda: readers.decisions(store, 1)[0]["alpha"] == 0.57, "a decision under the new alpha", 10.0)
    after = [made for made in readers.decisions(store, 10_000) if made["sim_s"] > row["sim_s"]]
    assert {made["alpha"] for made in after} == {0.57}
    expect(shown.locator(".st-key-panel-changes")).to_contain_text("α 0.50 → 0.57", timeout=15_000)


@pytest.mark.slow
def test_two_changes_in_quick_succession_are_both_applied(shown: Page, store: Store) -> None:
    for _ in range(2):
        move_alpha(shown, 4)
        shown.wait_for_timeout(300)
        shown.get_by_role("button", name="Apply").click()
    until(lambda: len(commands.recent(store, 9)) == 2 and not commands.pending(store), "both commands decided", 20.0)
    last, first = commands.recent(store, 2)
    assert [row["state"] for row in (first, last)] == ["applied", "applied"]
    assert last["expected"] == first["payload"]["alpha"]
    expect(command_state(shown)).not_to_contain_text("Someone else")


def test_a_change_made_elsewhere_meanwhile_refuses_ours(shown: Page, store: Store) -> None:
    move_alpha(shown, 3)
    commands.submit(store, "alpha", {"alpha": 0.9}, "another operator")
    expect(command_state(shown)).to_contain_text("Someone else changed it meanwhile", timeout=15_000)
    shown.get_by_role("button", name="Apply").click()
    until(lambda: len(commands.recent(store, 9)) == 2 and not commands.pending(store), "both commands decided", 15.0)
    ours = commands.recent(store, 1)[0]
    assert (ours["state"], ours["author"]) == ("refused", "dashboard")
    assert "it is 0.9 now" in ours["reason"]


@pytest.mark.slow
def test_pause_stops_simulated_time_and_resume_lets_it_go(shown: Page, store: Store) -> None:
    shown.get_by_role("button", name="Pause", exact=True).click()
    resume = shown.get_by_role("button", name="Resume", exact=True)
    expect(resume).to_be_visible(timeout=15_000)
    until(lambda: readers.latest_snapshot(store)["payload"]["paused"], "the pause", 10.0)  # type: ignore[index]
    resume.click()
    expect(shown.get_by_role("button", name="Pause", exact=True)).to_be_visible(timeout=15_000)
    until(lambda: not readers.latest_snapshot(store)["payload"]["paused"], "the end of the pause", 10.0)  # type: ignore[index]


def test_killing_an_instance_asks_first_and_shows_it_down(shown: Page, store: Store) -> None:
    shown.get_by_role("button", name="Kill", exact=True).click()
    shown.get_by_role("button", name="Kill h100-0").click()
    expect(shown.get_by_test_id("instance-h100-0")).to_have_attribute("data-state", "do", timeout=15_000)
    (row,) = commands.recent(store, 9)
    assert (row["kind"], row["payload"], row["state"]) == ("kill", {"instance": "h100-0"}, "applied")


def test_an_engine_that_goes_is_told_within_five_seconds_and_its_return_shows_by_itself(
    shown: Page, engine: Running, start: Start, db: Path, url: str
) -> None:
    shown.evaluate("window.stillTheSamePage = true")
    engine.signal(signal.SIGKILL)
    engine.wait()
    expect(badge(shown)).to_have_attribute("data-kind", re.compile("down|red"), timeout=6_500)
    until(lambda: health(url)["engine"] == "down", "the engine to be told down", 2.0)
    expect(shown.get_by_test_id("instance-h100-0")).to_be_visible()
    stopped = sim_time(shown)
    start("engine", "--db", db)
    expect(badge(shown)).to_contain_text(re.compile("live", re.I), timeout=20_000)
    until(lambda: sim_time(shown) != stopped, "simulated time going on", 10.0)
    assert shown.evaluate("window.stillTheSamePage") is True


def test_a_page_opened_before_any_engine_comes_alive_by_itself(
    start: Start, db: Path, port: int, url: str, page: Page
) -> None:
    start("dashboard", "--headless", "--db", db, "--port", port)
    until(lambda: health(url) != {}, "the dashboard")
    page.goto(url)
    expect(page.locator(".face")).to_be_visible()
    start("engine", "--db", db)
    expect(badge(page)).to_contain_text(re.compile("live", re.I), timeout=PATIENCE_MS)
