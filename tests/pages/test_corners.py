"""What lies over or beside something else in a real browser: corners of panels, the line of the story, a slider."""

import re
from typing import Any

import pytest

from tests.support import forks
from tests.support.snapshots import StandInEngine
from tests.support.web import CHROMIUM, PATIENCE_MS

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect, Page, Locator = playwright.expect, playwright.Page, playwright.Locator

#: px of the letters of an export button.
LETTERS = "(node) => getComputedStyle(node, '::before').fontSize"

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(240),
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not on the path"),
]


def box(found: Locator) -> dict[str, float]:
    """Where an element is, px."""
    place: dict[str, float] | None = found.bounding_box()
    assert place is not None
    return place


def apart(one: dict[str, float], other: dict[str, float]) -> bool:
    """Whether two elements share no pixel."""
    beside = one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"]
    return beside or one["y"] + one["height"] <= other["y"] or other["y"] + other["height"] <= one["y"]


@pytest.fixture
def told(engine: StandInEngine) -> StandInEngine:
    """An engine in a scenario whose first step has most words."""
    engine.settings |= {"scenario": "demo-mixed", "sim_s": 10.0}
    return engine


@pytest.fixture
def forked(engine: StandInEngine) -> StandInEngine:
    """A fork of the sweep in which nothing is better than α 0.20, as it is."""
    forks.store_fork(engine.store, best=0)
    return engine


@pytest.mark.slow
def test_a_panel_is_exported_and_closed_each_by_its_own_button(base: str, page: Page) -> None:
    page.goto(f"{base}/workflows?workflow=300")
    panel = page.locator(".st-key-panel-selected")
    export, close = panel.locator(".hw-export"), panel.get_by_role("button", name="Close")
    expect(panel.locator(".js-plotly-plot")).to_be_visible(timeout=PATIENCE_MS)
    expect(export).to_have_css("height", "16px")
    assert export.evaluate(LETTERS) == "11px"
    assert apart(box(export), box(close))
    panel.hover()
    export.click()
    expect(page.get_by_test_id("export")).to_be_visible()
    page.keyboard.press("Escape")
    close.click()
    expect(panel).to_have_count(0)


@pytest.mark.slow
def test_an_export_is_written_as_large_in_a_live_panel(base: str, page: Page) -> None:
    page.goto(base)
    export = page.locator(".hw-strip .hw-export")
    expect(export).to_be_attached(timeout=PATIENCE_MS)
    assert export.evaluate(LETTERS) == "11px"


@pytest.mark.slow
def test_the_line_of_the_story_covers_no_chart_and_no_word_of_its_own(
    told: StandInEngine, base: str, page: Page
) -> None:
    page.goto(base)
    strip = page.locator(".st-key-story-strip")
    expect(strip).to_contain_text("Story 1 of 3", timeout=PATIENCE_MS)
    expect(strip.get_by_role("button")).to_have_text("Hide")
    assert strip.locator(".note").evaluate("(node) => node.scrollHeight <= node.clientHeight")
    charts = page.locator(".hw-charts")
    page.wait_for_function("document.querySelector('.hw-charts .js-plotly-plot')")
    if (page.viewport_size or {}).get("width", 0) < 900:  # more than a screen: scrolled down, nothing is covered
        charts.evaluate("(node) => node.closest('.stMain').scrollTo(0, 1e6)")
    expect(strip).to_be_visible()
    assert apart(box(charts), box(strip))


def thumb(page: Page) -> str:
    """Where the slider of the settings stands: its place from the left."""
    return str(page.locator("#hw-setting").input_value())


@pytest.mark.slow
def test_the_thumb_stands_at_the_setting_that_is_selected(forked: StandInEngine, base: str, page: Page) -> None:
    page.goto(f"{base}/whatif")
    said = page.locator(".hw-said")
    rows: Any = page.locator(".tbl-settings tbody tr")
    expect(said).to_contain_text("as it is", timeout=PATIENCE_MS)
    assert thumb(page) == "2"  # 0.20 of 0.00, 0.10, 0.20 ...
    rows.nth(7).click()
    expect(said).to_contain_text("α 0.60")
    assert thumb(page) == "6"
    rows.nth(0).click()
    expect(said).to_contain_text("as it is")
    assert thumb(page) == "2"
    page.reload()
    expect(said).to_contain_text("as it is", timeout=PATIENCE_MS)
    assert thumb(page) == "2"
    page.locator("#hw-setting").click(position={"x": 12, "y": 10})
    expect(said).to_contain_text("α 0.00")


@pytest.mark.slow
def test_a_page_whose_live_part_is_late_has_its_title_and_no_bare_buttons(
    forked: StandInEngine, base: str, page: Page
) -> None:
    page.route(re.compile(r"/ui/(live\.js|live\.css)"), lambda route: route.abort())
    page.goto(f"{base}/whatif?fork=1")
    expect(page.locator(".bar-early")).to_have_text("What-if What would happen if?", timeout=PATIENCE_MS)
    expect(page.locator(".bar-early")).to_be_visible(timeout=PATIENCE_MS)
    expect(page.locator(".panel-title").first).to_be_visible()
    export = page.locator(".st-key-panel-settings .hw-export")
    expect(export).to_have_css("background-color", "rgba(0, 0, 0, 0)")
    expect(export).to_have_css("opacity", "0")
