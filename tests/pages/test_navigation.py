"""The pages in a real browser: one session from page to page, links to any view, nothing jumps, figures stay."""

import pytest

from storage import commands
from storage.open import Store
from tests.support import forks
from tests.support.web import CHROMIUM, PATIENCE_MS

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect, Page = playwright.expect, playwright.Page

WATCH_SHIFTS = """window.shift = 0; new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.shift += entry.value;
}).observe({ type: "layout-shift" });"""

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(240),
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not on the path"),
]


def follow(page: Page, title: str) -> None:
    """Go to a page by the navigation that this width shows."""
    links = page.locator("[data-testid=stTopNavLink]:visible, .st-key-phone-nav a:visible")
    links.filter(has_text=title).click()
    expect(page.locator(".hw-title h1")).to_have_text(title, timeout=PATIENCE_MS)


def expect_selected(page: Page, title: str) -> None:
    """The panel of what is selected has that title alone; while it takes a place it may still hold what was there."""
    expect(page.locator(".st-key-panel-selected h2")).to_have_text([title], timeout=PATIENCE_MS)


def test_a_workflow_is_followed_from_its_queue_to_its_story_without_a_reload(base: str, page: Page) -> None:
    page.goto(base)
    expect(page.locator(".hw-title h1")).to_have_text("Fleet", timeout=PATIENCE_MS)
    page.evaluate("window.stillTheSamePage = true")
    follow(page, "Queues")
    page.locator(".tbl-queue a").first.click()
    expect_selected(page, "Workflow #100")
    page.locator('.tbl-listed a[href$="=304"]').click()
    expect(page.locator(".st-key-panel-selected svg.main-svg").first).to_be_visible(timeout=PATIENCE_MS)
    assert page.url.endswith("/workflows?workflow=304")
    assert page.evaluate("window.stillTheSamePage") is True
    follow(page, "Tuning")


def test_a_prediction_opens_its_twin_runs_and_closes_without_a_reload(base: str, page: Page) -> None:
    page.goto(f"{base}/tuning")
    page.locator(".tbl-history a").first.click(timeout=PATIENCE_MS)
    expect_selected(page, "Twin run 4")
    assert page.url.endswith("/tuning?run=4")
    page.evaluate("window.stillTheSamePage = true")
    page.locator(".tbl-history a").last.click()
    expect_selected(page, "Twin run 1")
    page.get_by_role("button", name="Close").click()
    expect(page.locator(".st-key-panel-selected")).to_have_count(0, timeout=PATIENCE_MS)
    assert page.url.endswith("/tuning")
    assert page.evaluate("window.stillTheSamePage") is True


@pytest.mark.slow
def test_curve_and_promise_are_of_one_height(base: str, page: Page) -> None:
    page.goto(f"{base}/tuning")
    for name in ("curve", "promise"):
        expect(page.locator(f".st-key-panel-{name} svg.main-svg").first).to_be_visible(timeout=PATIENCE_MS)
    boxes = [page.locator(f".st-key-panel-{name}").bounding_box() for name in ("curve", "promise")]
    assert len({box and box["height"] for box in boxes}) == 1


def choose(page: Page, box: int, name: str) -> None:
    """Pick an option of the box of that number; a redraw of the filters may close the list once before."""
    for _ in range(3):
        page.locator("[data-testid=stSelectbox]").nth(box).click()
        try:
            page.get_by_role("option", name=name).click(timeout=5000)
            return
        except playwright.TimeoutError:
            page.keyboard.press("Escape")
    raise AssertionError(f"option {name} cannot be chosen")


def test_a_filter_is_in_the_link_and_the_link_opens_it(base: str, page: Page) -> None:
    page.goto(f"{base}/queues?instance=l4-0")
    expect(page.locator(".tbl-queue .group")).to_contain_text(["l4-0"], timeout=PATIENCE_MS)
    choose(page, 1, "support")
    page.wait_for_url("**/queues?instance=l4-0&tenant=support")


@pytest.mark.slow
def test_figures_live_on_and_nothing_jumps_while_tables_refresh(base: str, page: Page) -> None:
    page.goto(f"{base}/tuning")
    expect(page.locator(".hw-drawn svg.main-svg").first).to_be_visible(timeout=PATIENCE_MS)
    page.wait_for_timeout(3000)
    page.evaluate("window.drawn = document.querySelector('.hw-drawn svg')")
    page.evaluate(WATCH_SHIFTS)
    page.wait_for_timeout(8000)
    assert page.evaluate("window.drawn.isConnected") is True
    assert page.evaluate("window.shift") == 0


@pytest.mark.slow
def test_a_mode_and_a_run_are_asked_for_and_taken(base: str, page: Page, engine_store: Store) -> None:
    page.goto(f"{base}/tuning")
    tuner = page.locator(".st-key-panel-tuner")
    tuner.get_by_text("Auto", exact=True).click()
    expect(tuner).to_contain_text("✓ applied (tuning auto)", timeout=15_000)
    tuner.get_by_role("button", name="Run tuning").click()
    expect(tuner).to_contain_text("✓ begun (run tuning)", timeout=15_000)
    expect(tuner.get_by_role("button", name="Run tuning")).to_be_disabled()
    assert [row["kind"] for row in commands.recent(engine_store, 9)] == ["tune", "tuning_mode"]


def test_a_list_of_some_changes_leads_to_all_of_them_without_a_reload(base: str, page: Page) -> None:
    page.goto(f"{base}/power")
    page.evaluate("window.stillTheSamePage = true")
    page.get_by_role("link", name="All changes").click(timeout=PATIENCE_MS)
    expect(page.locator(".hw-title h1")).to_have_text("Audit", timeout=PATIENCE_MS)
    assert page.evaluate("window.stillTheSamePage") is True


def test_a_filter_that_only_one_page_has_does_not_reach_the_next(base: str, page: Page) -> None:
    page.goto(f"{base}/conversations?state=held")
    expect(page.locator(".tbl-pins tbody tr")).to_have_count(1, timeout=PATIENCE_MS)
    follow(page, "Workflows")
    expect(page.locator(".tbl-listed a").first).to_be_visible(timeout=PATIENCE_MS)
    assert "state=" not in page.url


@pytest.mark.slow
def test_who_holds_most_is_followed_to_its_turns_and_its_workflow(base: str, page: Page) -> None:
    page.goto(f"{base}/kv")
    expect(page.locator(".hw-multiple")).to_have_count(3, timeout=PATIENCE_MS)
    page.evaluate("window.stillTheSamePage = true")
    page.locator(".tbl-holders a").first.click()
    expect(page.locator(".st-key-panel-selected h2")).to_have_text("Conversation #312", timeout=PATIENCE_MS)
    expect(page.locator(".st-key-panel-selected svg.main-svg").first).to_be_visible(timeout=PATIENCE_MS)
    assert page.url.endswith("/conversations?conversation=312")
    page.locator(".st-key-panel-selected a").click()
    expect(page.locator(".st-key-panel-selected h2")).to_have_text("Workflow #312", timeout=PATIENCE_MS)
    assert page.evaluate("window.stillTheSamePage") is True


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kv", "power"])
def test_live_pictures_jump_nowhere(base: str, page: Page, name: str) -> None:
    page.goto(f"{base}/{name}")
    expect(page.locator(".hw-multiple, .hw-plot svg.main-svg").first).to_be_visible(timeout=PATIENCE_MS)
    page.wait_for_timeout(8000)  # a busy machine is still drawing at first
    page.evaluate(WATCH_SHIFTS)
    page.wait_for_timeout(8000)
    assert page.evaluate("window.shift") == 0


@pytest.mark.slow
def test_a_setting_is_picked_by_slider_and_by_row_and_offered_to_apply(
    base: str, page: Page, engine_store: Store
) -> None:
    forks.store_fork(engine_store)
    page.goto(f"{base}/whatif")
    expect(page.locator(".hw-said")).to_contain_text("α 0.60: P95 10.0 s", timeout=PATIENCE_MS)
    expect(page.locator(".hw-lines svg.main-svg").first).to_be_visible(timeout=PATIENCE_MS)
    before = page.locator(".hw-o-line").first.get_attribute("d")
    page.locator(".hw-slide input").press("ArrowLeft")
    expect(page.locator(".hw-said")).to_contain_text("α 0.50: P95 10.2 s")
    assert page.locator(".hw-o-line").first.get_attribute("d") != before
    expect(page.locator(".st-key-apply-fork button")).to_have_text("Apply α 0.50", timeout=PATIENCE_MS)
    page.locator(".tbl-settings tbody tr").nth(3).click()
    expect(page.locator(".st-key-apply-fork button")).to_have_text("Apply α 0.20", timeout=PATIENCE_MS)
    expect(page.locator(".tbl-settings tr.picked td").first).to_have_text("α 0.20")
