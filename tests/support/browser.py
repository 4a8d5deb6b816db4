"""A real browser at a dashboard, and what an operator does in it. Skips its importer where playwright is missing."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from storage import readers
from storage.open import Store

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect, Page, Browser, Locator = playwright.expect, playwright.Page, playwright.Browser, playwright.Locator

FLAGS = """--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
--disable-component-update --disable-sync --disable-dev-shm-usage"""
PATIENCE_MS = 60_000
DESK = (1440, 900)
expect.set_options(timeout=PATIENCE_MS)


@contextmanager
def launched(executable: str) -> Iterator[Browser]:
    """A browser that ends with the block."""
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=FLAGS.split())
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def viewer(browser: Browser, size: tuple[int, int] = DESK) -> Iterator[Page]:
    """A page in a session of its own: another viewer."""
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, accept_downloads=True)
    context.set_default_timeout(PATIENCE_MS)
    try:
        yield context.new_page()
    finally:
        context.close()


def visit(page: Page, address: str, title: str) -> None:
    """Open a page by its address, as a bookmark would, and see its title and live data."""
    page.goto(address)
    expect(page.locator(".hw-title h1")).to_have_text(title)
    expect(badge(page)).to_contain_text(re.compile("live", re.I))


def badge(page: Page) -> Locator:
    """The live badge."""
    return page.get_by_test_id("live-badge")


def panel(page: Page, name: str) -> Locator:
    """A bordered panel by its key."""
    return page.locator(f".st-key-panel-{name}")


def follow(page: Page, title: str) -> None:
    """Go to a page by the navigation that this width shows."""
    links = page.locator("[data-testid=stTopNavLink]:visible, .st-key-phone-nav a:visible")
    links.filter(has_text=title).click()
    expect(page.locator(".hw-title h1")).to_have_text(title)


def choose(page: Page, box: Locator, name: str) -> None:
    """Pick an option of a select box; a redraw may close its list once before."""
    for _ in range(3):
        box.click()
        try:
            page.get_by_role("option", name=name, exact=True).click(timeout=5000)
            return
        except playwright.TimeoutError:
            page.keyboard.press("Escape")
    raise AssertionError(f"option {name} cannot be chosen")


def move_alpha(page: Page, steps: int) -> None:
    """Move the slider by arrow keys, a hundredth each."""
    slider = page.locator(".st-key-alpha").get_by_role("slider")
    slider.focus()
    for _ in range(abs(steps)):
        slider.press("ArrowRight" if steps > 0 else "ArrowLeft")


def now(store: Store) -> dict[str, Any]:
    """What the engine told last."""
    newest = readers.latest_snapshot(store)
    assert newest is not None
    payload: dict[str, Any] = newest["payload"]
    return payload


def away_from(alpha: float) -> int:
    """Steps of a hundredth that lead from alpha to a value inside the slider."""
    return 7 if alpha < 0.5 else -7
