// The four live charts: Plotly nodes that live as long as the page; new rows are appended, zoom is kept. Until Plotly is
// there, sketches of the same stand in their places.

import { axes } from "./axes.js";
import { axisTime } from "./format.js";
import { axisStep, seriesOf, valueAt } from "./series.js";
import { sketch, unsketch } from "./sketch.js";
import { faded, occupancyScale } from "./theme.js";

const CONFIG = { displayModeBar: false, doubleClick: false, showTips: false, responsive: false };

export class Charts {
  constructor(nodes, list, onZoom) {
    this.nodes = nodes;
    this.list = list;
    this.plotly = null;
    this.onZoom = onZoom;
    this.zoom = null; // [from, to] in ms while the viewer looks at a part
    this.steps = this.list.map(() => 0);
    this.ready = false;
    this.drawn = new Promise((done) => { this.onDrawn = done; });
  }

  /** Draw with Plotly from now on. */
  upgrade(plotly) {
    this.plotly = plotly;
    if (this.feed) this.draw(this.feed, this.theme, this.byType);
  }

  /** The range of all x axes, ms. */
  range(feed) {
    const last = feed.at[feed.at.length - 1];
    return this.zoom ?? [axisTime(last - feed.window), axisTime(last)];
  }

  /** Index of the row at the right edge: the newest, or the last one of a zoomed range. */
  edge(feed) {
    const after = this.zoom ? feed.at.findIndex((t) => axisTime(t) > this.zoom[1]) : -1;
    return after < 0 ? feed.at.length - 1 : Math.max(0, after - 1);
  }

  seriesOf(chart) {
    return chart.stacked ? this.grouped : this.single;
  }

  draw(feed, theme, byType) {
    this.feed = feed;
    if (feed.key !== this.key) this.dropZoom(); // another run or fleet: what was looked at is gone
    this.key = feed.key;
    this.theme = theme;
    this.byType = byType;
    Object.assign(this, seriesOf(feed));
    this.drawnAt = feed.at[feed.at.length - 1];
    this.steps.fill(0);
    const x = feed.at.map(axisTime);
    const traces = this.list.map((chart) => {
      const drawn = chart.stacked ? this.grouped.map((s) => this.area(chart, s, x)) : [this.heat(chart, x)];
      return chart.limit ? [...drawn, this.limit(chart, x)] : drawn;
    });
    if (this.plotly) this.put(traces, 0, this.round = (this.round ?? 0) + 1);
    else traces.forEach((own, c) => sketch(this.nodes[c], own, this.layout(c)));
  }

  /** Draw chart `c` and those after it; at first one a turn of the browser, so that the first is seen at once. */
  put(traces, c, round) {
    if (round !== this.round) return;
    this.plotly.react(this.nodes[c], traces[c], this.layout(c), CONFIG);
    unsketch(this.nodes[c]);
    const next = () => this.put(traces, c + 1, round);
    if (c + 1 < traces.length) return void (this.ready ? next() : setTimeout(next, 0));
    if (!this.ready) this.nodes.forEach((node) => this.listen(node));
    this.ready = true;
    this.onDrawn();
  }

  extend(feed) {
    if (!this.plotly) return this.draw(feed, this.theme, this.byType);
    this.feed = feed;
    if (!this.ready) return; // the first draw goes on; the next rows bring these along
    const from = feed.at.findIndex((t) => t > this.drawnAt);
    if (from < 0) return;
    this.drawnAt = feed.at[feed.at.length - 1];
    const rows = feed.at.slice(from).map((_, k) => from + k);
    this.list.forEach((chart, c) => (chart.stacked ? this.extendAreas(chart, c, rows) : this.moveHeat(chart, c)));
  }

  extendAreas(chart, c, rows) {
    const node = this.nodes[c];
    const x = rows.map((k) => axisTime(this.feed.at[k]));
    const y = this.grouped.map((s) => rows.map((k) => this.height(chart, s, k)));
    if (chart.limit) y.push(rows.map((k) => this.feed.fleet[chart.limit][k]));
    const index = y.map((_, i) => i);
    Object.assign(node.layout, this.layout(c)); // drawn by the same pass as the new rows
    this.plotly.extendTraces(node, { x: index.map(() => x), y }, index, Math.max(420, this.feed.window + 60));
  }

  moveHeat(chart, c) {
    const { x, z } = this.heat(chart, this.feed.at.map(axisTime));
    this.plotly.update(this.nodes[c], { x: [x], z: [z] }, this.layout(c), [0]);
  }

  /** Axes and labels anew with the data as it is: after a zoom or a change of size. */
  relayout() {
    this.list.forEach((_, c) => this.plotly.relayout(this.nodes[c], this.layout(c)));
  }

  reset() {
    this.dropZoom();
    this.relayout();
  }

  dropZoom() {
    this.zoom = null;
    this.onZoom(false);
  }

  destroy() {
    this.round = null;
    if (this.ready) this.nodes.forEach((node) => this.plotly.purge(node));
  }

  listen(node) {
    node.on("plotly_relayout", (change) => {
      if (change["xaxis.range[0]"] === undefined) return;
      this.zoom = [0, 1].map((i) => Date.parse(String(change[`xaxis.range[${i}]`]).replace(" ", "T")));
      this.onZoom(true);
      this.relayout();
    });
    node.on("plotly_doubleclick", () => this.reset());
  }

  area(chart, series, x) {
    const colour = this.byType.get(series.gpu);
    const y = this.feed.at.map((_, k) => this.height(chart, series, k));
    return {
      type: "scatter", mode: "lines", name: series.label, x: [...x], y, hoverinfo: "skip", stackgroup: "all",
      fillcolor: faded(colour, 0.55), line: { width: 1, color: colour },
    };
  }

  /** What an area adds to the stack: nothing in a hole, which Plotly would bridge by a slope. */
  height(chart, series, k) {
    return valueAt(this.feed, chart, series, k) ?? 0;
  }

  /** What all together may draw: a step wherever a cap was set. */
  limit(chart, x) {
    return {
      type: "scatter", mode: "lines", x: [...x], y: [...this.feed.fleet[chart.limit]], hoverinfo: "skip",
      line: { width: 1.4, color: this.theme.amber, dash: "dash", shape: "hv" },
    };
  }

  /** One row a series, the first on top. */
  heat(chart, x) {
    const { kv_amber: amber, kv_red: red } = this.feed.static.limits;
    const rows = [...this.single].reverse();
    return {
      type: "heatmap", x, y: rows.map((_, i) => i), z: rows.map((s) => x.map((_, k) => valueAt(this.feed, chart, s, k))),
      zmin: 0, zmax: 100, zsmooth: false, ygap: rows.length > 20 ? 0 : 2, showscale: false, hoverinfo: "skip",
      colorscale: occupancyScale(this.theme, 100 * amber, 100 * red),
    };
  }

  layout(c) {
    const node = this.nodes[c];
    const size = { width: node.clientWidth, height: node.clientHeight };
    return axes(this, this.list[c], size, this.top(this.list[c], c));
  }

  /** Top of the y axis: grows at once, shrinks only when less than a third is used, so it does not jump. */
  top(chart, c) {
    if (!chart.stacked) return this.single.length;
    let high = 0;
    this.feed.at.forEach((_, k) => {
      const sum = this.grouped.reduce((total, s) => total + (valueAt(this.feed, chart, s, k) ?? 0), 0);
      high = Math.max(high, sum, (chart.limit && this.feed.fleet[chart.limit][k]) || 0);
    });
    const step = axisStep(high * 1.08, chart.whole);
    if (step > this.steps[c] || high < (this.steps[c] * 4) / 3) this.steps[c] = step;
    return this.steps[c] * 4;
  }
}
