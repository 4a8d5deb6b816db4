"""One session: a page that is open, and what it receives, shows and keeps."""

import base64
from typing import TYPE_CHECKING, Any

from control.cli.browsing.traffic import AGE_HEADER, LIVE_PATH, Answer, Traffic

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SIZE = (1440, 900)
PATIENCE_MS = 240_000
TEXT_FRAME = 1  # opcode of a text frame (RFC 6455); others come as base64
#: Runs before the page does. A chart has its data in it: a sketch, or a plot of Plotly, which zooms. Times count from
#: the navigation; shifts within 500 ms of an input do not count, as in CLS.
WATCH = """
(() => {
  const times = { live_s: null, chart_s: null, plot_s: null };
  const seen = window.headwaySeen = { shift: 0, moved: [], nodes: [], range: null, ...times };
  const name = (node) => (node?.closest?.("[class]") ?? node?.parentElement)?.className?.toString().slice(0, 60);
  const note = (list) => list.getEntries().filter((entry) => !entry.hadRecentInput).forEach((entry) => {
    seen.shift += entry.value;
    seen.moved.push(...entry.sources.map((source) => name(source.node) ?? "gone"));
  });
  new PerformanceObserver(note).observe({ type: "layout-shift", buffered: true });
  const look = () => {
    const now = performance.now() / 1000;
    if (document.querySelector('.hw-badge[data-kind="live"]')) seen.live_s ??= now;
    if (document.querySelector(".js-plotly-plot :is(.trace, .hm)")) seen.plot_s ??= now;
    if (seen.plot_s !== null || document.querySelector(".hw-sketch")) seen.chart_s ??= now;
    if (seen.live_s === null || (seen.plot_s === null && now < 60)) requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})();
"""
MARK = """() => {
  const seen = window.headwaySeen;
  seen.nodes = [...document.querySelectorAll(".js-plotly-plot")];
  seen.range = String(seen.nodes[0]?._fullLayout.xaxis.range);
  seen.before = seen.shift;
  seen.moved = [];
}"""
LOOK = """() => {
  const { shift, moved, before, live_s, chart_s, plot_s, nodes, range } = window.headwaySeen;
  const same = nodes.every((node) => node.isConnected);
  return {
    live_s, chart_s, plot_s, layout_shift: shift - before, layout_shift_loading: before, moved: [...new Set(moved)],
    nodes: nodes.length, nodes_kept: same,
    range_kept: same && String(nodes[0]?._fullLayout.xaxis.range) === range,
  };
}"""

#: Clicks "Fork now"; s until a line of that fork, not of the one before, stands in the forecast.
FORK = """(patience_ms) => new Promise((resolve) => {
  const board = () => document.querySelector(".st-key-panel-forecast");
  const number = () => board()?.innerText.match(/#(\\d+):/)?.[1] ?? "";
  const line = () => board()?.querySelector(".hw-o-line")?.getAttribute("d") ?? "";
  const before = [number(), line()], begun = performance.now();
  const look = () => {
    const took_ms = performance.now() - begun;
    const drawn = line().startsWith("M") && line() !== before[1];
    if (number() !== before[0] && drawn) resolve(took_ms / 1000);
    else if (took_ms > patience_ms) resolve(null);
    else requestAnimationFrame(look);
  };
  document.querySelector(".st-key-fork button").click();
  requestAnimationFrame(look);
})"""
FORK_MS = 15_000


class Visit:
    """A browser context with one page of the dashboard in it."""

    def __init__(self, browser: "Browser", url: str) -> None:
        self.url, self.traffic, self.is_zoomed = url, Traffic(), False
        self.context = browser.new_context(viewport={"width": SIZE[0], "height": SIZE[1]})
        self.page = self.context.new_page()
        self.page.add_init_script(WATCH)
        self.ages: dict[str, float] = {}  # of answers whose body is still to come, by request
        network = self.context.new_cdp_session(self.page)
        network.on("Network.responseReceived", self._headers)
        network.on("Network.loadingFinished", self._finished)
        network.on("Network.webSocketFrameReceived", self._frame)
        network.send("Network.enable")

    def open(self) -> None:
        """Begin to load the page."""
        self.page.goto(self.url, wait_until="commit", timeout=PATIENCE_MS)

    def await_live(self) -> None:
        """Wait until the badge has said live."""
        self.page.wait_for_function("window.headwaySeen.live_s !== null", timeout=PATIENCE_MS)

    def zoom(self) -> None:
        """Drag over a part of the first chart, where the page has charts that zoom."""
        plot = self.page.locator(".hw-charts .nsewdrag").first
        if not self.page.locator(".hw-charts").count():
            return
        plot.wait_for(timeout=PATIENCE_MS)
        box = plot.bounding_box()
        if box is None:
            return
        y = box["y"] + box["height"] / 2
        self.page.mouse.move(box["x"] + 0.6 * box["width"], y)
        self.page.mouse.down()
        self.page.mouse.move(box["x"] + 0.9 * box["width"], y, steps=4)
        self.page.mouse.up()
        self.page.wait_for_selector(".hw-reset:not([hidden])", timeout=PATIENCE_MS)
        self.is_zoomed = True

    def fork(self) -> float | None:
        """Fork as the form stands; s from the click to the first curve, None where none came within FORK_MS."""
        self.page.wait_for_selector(".st-key-fork button:enabled", timeout=PATIENCE_MS)
        took_s: float | None = self.page.evaluate(FORK, FORK_MS)
        return took_s

    def begin(self) -> None:
        """Count from here on."""
        self.traffic = Traffic()
        self.page.evaluate(MARK)

    def figures(self, seconds: float) -> dict[str, Any]:
        """What was counted over `seconds` s since begin(); None where the page has no such thing."""
        seen = self.page.evaluate(LOOK)
        return self.traffic.figures(seconds) | {
            "layout_shift": seen["layout_shift"],
            "layout_shift_loading": seen["layout_shift_loading"],
            "moved": seen["moved"],
            "first_live_s": seen["live_s"],
            "first_chart_s": seen["chart_s"],
            "first_plot_s": seen["plot_s"],
            "nodes_kept": seen["nodes_kept"] if seen["nodes"] else None,
            "zoom_kept": seen["range_kept"] if self.is_zoomed else None,
        }

    def close(self) -> None:
        """Leave."""
        self.context.close()

    def _headers(self, event: dict[str, Any]) -> None:
        if LIVE_PATH in event["response"]["url"]:
            headers = {name.lower(): value for name, value in event["response"]["headers"].items()}
            self.ages[event["requestId"]] = float(headers.get(AGE_HEADER, "nan"))

    def _finished(self, event: dict[str, Any]) -> None:
        age_s = self.ages.pop(event["requestId"], None)
        if age_s is not None:
            self.traffic.answers.append(Answer(event["timestamp"], event["encodedDataLength"], age_s))

    def _frame(self, event: dict[str, Any]) -> None:
        frame = event["response"]
        text = frame["payloadData"]
        is_text = frame["opcode"] == TEXT_FRAME
        self.traffic.frames_bytes += len(text.encode()) if is_text else len(base64.b64decode(text))
