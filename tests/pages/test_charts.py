"""What live charts show in a real browser: a zoom and its end, an outage, an instance and an engine that are down."""

import re
import time
from typing import Any

import pytest

from tests.support.snapshots import StandInEngine, instance
from tests.support.web import CHROMIUM, PATIENCE_MS

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect, Page = playwright.expect, playwright.Page

PLOT = ".hw-plot svg.main-svg"
CHART = "document.querySelector('[data-testid=chart-queued] .hw-node')"
RANGE = f"{CHART}.layout.xaxis.range"
SIDE = f"{CHART}.layout.annotations.filter((a) => a.xref === 'paper').map((a) => a.text.replace(/<[^>]*>/g, ''))"
#: Of each area its values at both ends of the longest time without a row, in the order of time.
HOLE = f"""(() => {{
  const x = {CHART}.data[0].x;
  const k = x.map((at, i) => [i ? at - x[i - 1] : 0, i]).sort((a, b) => b[0] - a[0])[0][1];
  return [x[k] - x[k - 1], {CHART}.data.map(({{ y }}) => [y[k - 1], y[k]])];
}})()"""

SKETCH = ".hw-sketch"
MARKS_PX = 22  # above this height there are only marks
#: Of each text in a chart its words and where it is: left and middle, px from the chart's corner.
WORDS = """([node, texts]) => {
  const corner = document.querySelector(node).getBoundingClientRect();
  return [...document.querySelectorAll(`${node} :is(${texts})`)].map((one) => {
    const box = one.getBoundingClientRect();
    return [one.textContent, box.left - corner.left, (box.top + box.bottom) / 2 - corner.top];
  }).sort();
}"""

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(240),
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not on the path"),
]


def busy(queued: int) -> list[dict[str, Any]]:
    """Two instances, one of them with `queued` calls that wait."""
    return [instance("h100-0", "H100", 700.0, queued=queued), instance("l4-0", "L4", 72.0, queued=0)]


@pytest.fixture
def history(engine: StandInEngine) -> StandInEngine:
    """200 s of data: a short queue at first, a long one in the end, which stays; two marks at one time."""
    now = time.time()
    lost = {"kind": "server_lost", "text": "l4-0 is out"}, {"kind": "pause", "text": "paused"}
    for ago in range(200, 0, -1):
        engine.tick(now - ago, instances=busy(3 if ago > 60 else 40), events=lost if ago == 100 else ())
    engine.settings["instances"] = busy(40)
    return engine


@pytest.fixture
def outage(engine: StandInEngine) -> StandInEngine:
    """Some seconds of data, then none for half a minute until now."""
    now = time.time()
    for ago in range(40, 30, -1):
        engine.tick(now - ago)
    return engine


def opened(page: Page, url: str, drawn: str = PLOT) -> Page:
    """The page at that address once its live part is drawn."""
    page.goto(url)
    expect(page.locator(drawn).first).to_be_visible(timeout=PATIENCE_MS)
    return page


def zoom(page: Page, start: float, end: float) -> None:
    """Drag over the first chart from one share of its width to another."""
    page.locator("[data-testid=chart-queued]").scroll_into_view_if_needed()
    box = page.locator("[data-testid=chart-queued] .nsewdrag").bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + start * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + end * box["width"], y, steps=6)
    page.mouse.up()


@pytest.mark.parametrize("chart", ["queued", pytest.param("kv", marks=pytest.mark.slow)])
def test_until_plotly_is_there_the_same_picture_stands(
    history: StandInEngine, base: str, page: Page, chart: str
) -> None:
    page.route("**/api/plotly.js", lambda route: route.abort())
    opened(page, base, SKETCH)
    expect(page.locator(SKETCH)).to_have_count(4)
    node = f"[data-testid=chart-{chart}] .hw-node"
    sketched = page.evaluate(WORDS, [node, "text"])
    page.unroute("**/api/plotly.js")
    page.wait_for_selector(f"{node} .main-svg")
    plotted = page.evaluate(WORDS, [node, ".xtick text, .ytick text, .annotation-text"])
    expect(page.locator(SKETCH)).to_have_count(0)
    assert len({(text, left) for text, left, _ in sketched}) == len(sketched) >= 5  # nothing is written twice
    assert standing(plotted) == [[text, *map(near, at)] for text, *at in standing(sketched)]
    assert heights(plotted) == [near(px) for px in heights(sketched)]  # times and marks have moved on with the data


#: Colour of the middle of the first row of a sketched heat map, at its right end.
SHADE = """async () => {
  const image = new Image();
  image.src = document.querySelector("[data-testid=chart-kv] .hw-sketch image").getAttribute("href");
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
  const pen = canvas.getContext("2d");
  pen.drawImage(image, 0, 0);
  return [...pen.getImageData(image.width - 1, 0, 1, 1).data];
}"""


@pytest.mark.slow
@pytest.mark.parametrize(("share", "is_red"), [(1.0, True), (0.96, True), (0.2, False)])
def test_a_full_cache_is_red_in_the_first_picture_too(
    ticking: StandInEngine, base: str, page: Page, share: float, is_red: bool
) -> None:
    ticking.settings["instances"] = [instance("h100-0", "H100", 700.0, kv_used_fraction=share, kv_pinned_fraction=0.0)]
    ticking.tick()
    page.route("**/api/plotly.js", lambda route: route.abort())
    opened(page, base, "[data-testid=chart-kv] .hw-sketch image")
    red, _, blue, opacity = page.evaluate(SHADE)
    assert opacity == 255
    assert (red > blue) is is_red


def moves(word: list[Any]) -> bool:
    """Whether a text moves with the data: a time below a chart, a mark above it."""
    return ":" in word[0] or word[2] < MARKS_PX


def standing(words: list[list[Any]]) -> list[list[Any]]:
    """The texts of a chart that stay where they are."""
    return [word for word in words if not moves(word)]


def heights(words: list[list[Any]]) -> list[float]:
    """Where the others are, px from the top."""
    return sorted({round(word[2], 1) for word in words if moves(word)})


def near(px: float) -> Any:
    """A place that the eye does not tell from this one."""
    return pytest.approx(px, abs=1.0)


@pytest.mark.slow
def test_the_end_of_a_pause_ends_a_zoom_and_a_zoom_is_labelled_with_its_own_values(
    history: StandInEngine, base: str, page: Page
) -> None:
    opened(page, base)
    page.wait_for_function(f"{SIDE}.includes('■ H100 40')")
    page.keyboard.press("p")
    expect(page.get_by_test_id("live-badge")).to_contain_text("paused")
    zoom(page, 0.40, 0.55)
    page.wait_for_function(f"{RANGE}[1] - {RANGE}[0] < 100000")
    assert page.evaluate(SIDE) == ["■ H100 3"]
    expect(page.get_by_test_id("zoom-reset")).to_be_visible()
    page.keyboard.press("p")
    expect(page.get_by_test_id("live-badge")).to_contain_text("live", timeout=PATIENCE_MS)
    page.wait_for_function(f"{RANGE}[1] - {RANGE}[0] == 300000")
    expect(page.get_by_test_id("zoom-reset")).to_be_hidden()
    page.wait_for_function(f"{SIDE}.includes('■ H100 40')")
    stood = page.evaluate(f"{RANGE}[1]")
    page.wait_for_function(f"{RANGE}[1] > {stood}")


@pytest.mark.slow
def test_a_run_that_begins_ends_the_lines_of_the_one_before(history: StandInEngine, base: str, page: Page) -> None:
    opened(page, base)
    page.wait_for_function(f"Math.max(...{CHART}.data[0].y) == 40")
    history.settings |= {"instances": busy(3), "sim_s": 0.0}
    page.wait_for_function(f"Math.max(...{CHART}.data[0].y) == 3")
    assert page.evaluate(f"{CHART}.layout.yaxis.range[1]") < 40
    page.wait_for_function(f"{CHART}.data[0].x.length > 2")


@pytest.mark.slow
def test_a_time_without_data_is_a_gap_in_a_page_that_is_opened_later(
    outage: StandInEngine, base: str, page: Page
) -> None:
    opened(page, base)
    length_ms, ends = page.evaluate(HOLE)
    assert length_ms > 25_000
    assert ends == [[0, 0]] * 3


@pytest.mark.slow
def test_a_time_without_data_is_a_gap_in_a_page_that_watches(ticking: StandInEngine, base: str, page: Page) -> None:
    opened(page, base)
    page.wait_for_function(f"{CHART}.data[0].x.length > 2")
    tick, ticking.tick = ticking.tick, lambda *_, **__: None  # type: ignore[method-assign]
    expect(page.get_by_test_id("live-badge")).to_have_text(re.compile(r"engine down \d+ s"), timeout=PATIENCE_MS)
    ticking.tick = tick  # type: ignore[method-assign]
    page.wait_for_function(f"{HOLE}[0] > 3500")
    assert page.evaluate(HOLE)[1] == [[0, 0]] * 3


@pytest.mark.slow
def test_an_engine_that_is_down_is_said_to_come_back_or_how_to_bring_it(
    ticking: StandInEngine, url: str, base: str, page: Page
) -> None:
    opened(page, f"{base}/kv", ".hw-multiple")
    ticking.tick = lambda *_, **__: None  # type: ignore[method-assign]
    alert = page.get_by_test_id("live-alert")
    expect(alert).to_contain_text("headway up starts it again by itself", timeout=PATIENCE_MS)
    expect(alert).to_contain_text(f"headway engine --db {url.removeprefix('sqlite:///')}")
    assert alert.evaluate("(node) => node.title === node.textContent")


@pytest.mark.slow
def test_the_cache_of_an_instance_that_is_down_says_so(ticking: StandInEngine, base: str, page: Page) -> None:
    gone = {"state": "down", "kv_used_fraction": 0.0, "kv_pinned_fraction": 0.0, "running": 0, "queued": 0}
    ticking.settings["instances"] = [instance("h100-0", "H100", 700.0), instance("l4-0", "L4", 72.0, **gone)]
    opened(page, f"{base}/kv", ".hw-multiple")
    cells = page.locator(".hw-multiple")
    expect(cells.nth(1).locator("em")).to_have_text("✕ down")
    expect(cells.nth(1)).to_have_attribute("aria-label", "l4-0: ✕ down")
    expect(cells.nth(0).locator("em")).to_have_text("46 + 7 %")
