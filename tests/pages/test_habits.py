"""What a watcher does with the charts in a real browser: stand still, find the keys, take the data along."""

import csv
import io
import re
import struct

import pytest

from tests.support.web import CHROMIUM, PATIENCE_MS

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect, Page = playwright.expect, playwright.Page

PLOT = ".hw-plot svg.main-svg"
#: Without the badge's: at the right edge of a phone it grows to the left when it says something longer.
WATCH_SHIFTS = """window.shift = 0; new PerformanceObserver((list) => {
  const badge = ({ node }) => (node?.closest ? node : node?.parentElement)?.closest(".hw-badge");
  for (const entry of list.getEntries()) if (!entry.sources.every(badge)) window.shift += entry.value;
}).observe({ type: "layout-shift" });"""
RANGE = "document.querySelector('.hw-node').layout.xaxis.range"
NEWEST = "document.querySelector('.hw-node').data[0].x.length"

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(240),
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not on the path"),
]


def opened(page: Page, url: str, drawn: str = PLOT) -> Page:
    """The page at that address once its live part is drawn."""
    page.goto(url)
    expect(page.locator(drawn).first).to_be_visible(timeout=PATIENCE_MS)
    return page


def taken(page: Page, name: str) -> tuple[str, bytes]:
    """File name and content of what a click on the button of that name saves."""
    with page.expect_download() as download:
        page.get_by_role("button", name=name, exact=True).click()
    return download.value.suggested_filename, download.value.path().read_bytes()


def rows_of(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode())))


def test_a_pause_holds_the_charts_and_the_end_of_it_catches_up_in_place(base: str, page: Page) -> None:
    opened(page, base)
    page.keyboard.press("p")
    badge = page.get_by_test_id("live-badge")
    expect(badge).to_have_text(re.compile(r"paused, [1-9]\d* s behind"), timeout=PATIENCE_MS)
    held = page.evaluate(NEWEST)
    expect(badge).to_have_text(re.compile(r"paused, ([4-9]|\d\d) s behind"), timeout=PATIENCE_MS)
    assert page.evaluate(NEWEST) == held
    page.evaluate(WATCH_SHIFTS)
    page.get_by_test_id("live-toggle").click()
    expect(badge).to_contain_text("live", timeout=PATIENCE_MS)
    page.wait_for_function(f"{NEWEST} > {held} + 3")
    assert page.evaluate("window.shift") == 0


@pytest.mark.slow
def test_another_time_range_while_paused_still_ends_where_the_charts_stand(base: str, page: Page) -> None:
    opened(page, f"{base}/power")
    last = "document.querySelector('.hw-node').data[0].x.at(-1)"
    page.keyboard.press("p")
    behind = re.compile(r"charts paused, [1-9]\d* s behind")
    expect(page.get_by_test_id("live-badge")).to_have_text(behind, timeout=PATIENCE_MS)
    held = page.evaluate(last)
    page.get_by_test_id("range-900").click()
    page.wait_for_function(f"{RANGE}[1] - {RANGE}[0] == 900000")
    assert page.evaluate(last) == held


def test_keys_are_named_by_the_question_mark_and_mean_nothing_while_typing(base: str, page: Page) -> None:
    opened(page, f"{base}/workflows", ".tbl-listed a")
    page.keyboard.press("?")
    keys = page.get_by_test_id("keys")
    expect(keys).to_contain_text("pause or resume the charts")
    page.keyboard.press("Escape")
    expect(keys).to_have_count(0)
    page.get_by_test_id("keys-open").click()
    expect(keys).to_be_visible()
    page.keyboard.press("Escape")
    page.locator("[data-testid=stTextInput] input").first.press("e")
    expect(page.get_by_test_id("export")).to_have_count(0)


def test_a_table_is_taken_along_as_numbers_with_units_in_the_head(base: str, page: Page) -> None:
    opened(page, f"{base}/kv", ".tbl-caches td")
    page.locator(".st-key-panel-caches .hw-export").focus()
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    assert download.value.suggested_filename.startswith("headway-kv-caches-")
    table = rows_of(download.value.path().read_bytes())
    assert table[0][:4] == ["Instance", "Tier", "Capacity (tok)", "Running (%)"]
    assert [row[0] for row in table[1:]] == ["h100-0", "a100-0", "l4-0"]
    assert float(table[1][3]) == 40.0


@pytest.mark.slow
def test_a_chart_is_taken_along_as_picture_and_as_data(base: str, page: Page) -> None:
    opened(page, base)
    page.locator("[data-testid=chart-power]").hover()
    page.locator("[data-testid=chart-power] .hw-export").click()
    width = page.evaluate("document.querySelector('[data-testid=chart-power] .hw-node').clientWidth")
    name, picture = taken(page, "GPU power as PNG")
    assert re.fullmatch(r"headway-fleet-power-\d{8}-\d{6}\.png", name)
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">I", picture[16:20])[0] == 2 * width
    name, content = taken(page, "GPU power as CSV")
    data = rows_of(content)
    assert name.endswith(".csv")
    assert data[0] == ["time (UTC)", "h100-0 (W)", "a100-0 (W)", "l4-0 (W)"]
    assert data[-1][0].endswith("Z")


@pytest.mark.slow
def test_all_of_a_page_is_offered_by_a_key(base: str, page: Page) -> None:
    opened(page, f"{base}/kv", ".hw-multiple")
    expect(page.locator(".tbl-holders td").first).to_be_visible(timeout=PATIENCE_MS)
    page.keyboard.press("e")
    offers = page.get_by_test_id("export")
    expect(offers).to_contain_text("KV caches")
    expect(offers).to_contain_text("Instances")
    expect(offers).to_contain_text("Who holds most")
    name, picture = taken(page, "KV caches as PNG")
    assert name.startswith("headway-kv-caches-")
    assert picture[:4] == b"\x89PNG"
