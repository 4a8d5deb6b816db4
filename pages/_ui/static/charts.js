// The four live charts: Plotly nodes that live as long as the page; new rows are appended, zoom is kept.

import { axisTime, number } from "./format.js";
import { labels, spread } from "./marks.js";
import { axisStep, CHARTS, seriesOf, valueAt } from "./series.js";
import { faded } from "./theme.js";

const HEIGHT = 190;
export const MARGIN = { l: 40, r: 96, t: 26, b: 20 };
const CONFIG = { displayModeBar: false, doubleClick: false, showTips: false, responsive: false };

export class Charts {
  constructor(nodes, plotly, onZoom) {
    this.nodes = nodes;
    this.plotly = plotly;
    this.onZoom = onZoom;
    this.zoom = null; // [from, to] in axis ms while the viewer looks at a part
    this.steps = CHARTS.map(() => 0);
    this.ready = false;
  }

  /** The range of all x axes, ms. */
  range(feed) {
    const last = feed.at[feed.at.length - 1];
    return this.zoom ?? [axisTime(last - feed.window), axisTime(last)];
  }

  draw(feed, theme, byType) {
    this.theme = theme;
    this.byType = byType;
    this.series = seriesOf(feed);
    this.drawnAt = feed.at[feed.at.length - 1];
    this.steps.fill(0);
    const x = feed.at.map(axisTime);
    CHARTS.forEach((chart, c) => {
      const traces = this.series.map((s) => this.trace(feed, chart, s, x));
      this.plotly.react(this.nodes[c], traces, this.layout(feed, chart, c), CONFIG);
    });
    if (!this.ready) this.nodes.forEach((node) => this.listen(node, feed));
    this.ready = true;
  }

  extend(feed) {
    const from = feed.at.findIndex((t) => t > this.drawnAt);
    if (from < 0) return;
    this.drawnAt = feed.at[feed.at.length - 1];
    const rows = feed.at.slice(from).map((_, k) => from + k);
    const x = rows.map((k) => axisTime(feed.at[k]));
    const index = this.series.map((_, i) => i);
    CHARTS.forEach((chart, c) => {
      const node = this.nodes[c];
      Object.assign(node.layout, this.layout(feed, chart, c));
      const y = this.series.map((s) => rows.map((k) => valueAt(feed, chart, s, k)));
      this.plotly.extendTraces(node, { x: index.map(() => x), y }, index, Math.max(420, feed.window + 60));
    });
  }

  /** Redraw axes and labels with the data as it is: after a zoom or a change of width. */
  relayout(feed) {
    CHARTS.forEach((chart, c) => this.plotly.relayout(this.nodes[c], this.layout(feed, chart, c)));
  }

  reset(feed) {
    this.zoom = null;
    this.onZoom(false);
    this.relayout(feed);
  }

  destroy() {
    if (this.ready) this.nodes.forEach((node) => this.plotly.purge(node));
  }

  listen(node, feed) {
    node.on("plotly_relayout", (change) => {
      if (change["xaxis.range[0]"] === undefined) return;
      this.zoom = [0, 1].map((i) => Date.parse(`${String(change[`xaxis.range[${i}]`]).replace(" ", "T")}Z`));
      this.onZoom(true);
      this.relayout(feed);
    });
    node.on("plotly_doubleclick", () => this.reset(feed));
  }

  trace(feed, chart, series, x) {
    const colour = this.byType.get(series.gpu);
    const y = feed.at.map((_, k) => valueAt(feed, chart, series, k));
    const base = { type: "scatter", mode: "lines", name: series.label, x: [...x], y, hoverinfo: "skip", connectgaps: false };
    if (chart.stacked) return { ...base, stackgroup: "all", fillcolor: faded(colour, 0.55), line: { width: 1, color: colour } };
    return { ...base, line: { width: 1.6, color: colour, dash: ["solid", "dash", "dot"][series.nth % 3] } };
  }

  layout(feed, chart, c) {
    const { theme } = this;
    const range = this.range(feed);
    const top = this.top(feed, chart, c);
    const ticks = [0, 1, 2, 3, 4].map((i) => (top / 4) * i);
    const width = this.nodes[c].clientWidth;
    const marks = this.marks(feed, range, width - MARGIN.l - MARGIN.r);
    return {
      width, height: HEIGHT, margin: MARGIN, showlegend: false, hovermode: false, dragmode: "zoom",
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: theme.font, size: 11, color: theme.muted },
      xaxis: { type: "date", range: [...range], showgrid: false, zeroline: false, linecolor: theme.grid, showline: true,
        tickformat: feed.window <= 60 ? "%H:%M:%S" : "%H:%M", nticks: width < 420 ? 4 : 6, ticks: "outside", tickcolor: theme.grid, ticklen: 3 },
      yaxis: { range: [0, top], fixedrange: true, tickvals: ticks, ticktext: ticks.map((t) => number(t)),
        gridcolor: theme.grid, zeroline: false, tickfont: { size: 11 } },
      shapes: [...marks.map((m) => this.markLine(m.at)), ...this.dashed(feed, chart, top)],
      annotations: [...marks.filter((m) => m.text).map((m) => this.markLabel(m)), ...this.sideLabels(feed, chart, top)],
    };
  }

  /** Top of the y axis: grows at once, shrinks only when less than a third is used, so it does not jump. */
  top(feed, chart, c) {
    if (chart.top) return chart.top;
    let high = 0;
    feed.at.forEach((_, k) => {
      const values = this.series.map((s) => valueAt(feed, chart, s, k) ?? 0);
      high = Math.max(high, values.reduce((a, b) => a + b, 0));
    });
    const step = axisStep(high * 1.08, chart.whole);
    if (step > this.steps[c] || high < (this.steps[c] * 4) / 3) this.steps[c] = step;
    return this.steps[c] * 4;
  }

  marks(feed, range, width) {
    const [from, to] = range;
    const seen = feed.marks.map((m) => ({ at: axisTime(m[1]), label: m[3] })).filter((m) => m.at >= from && m.at <= to)
      .sort((a, b) => a.at - b.at);
    const px = (at) => ((at - from) / (to - from)) * width;
    const placed = labels(seen.map((m) => ({ x: px(m.at), label: m.label })));
    const byX = new Map(placed.map((p) => [p.x, p]));
    return seen.map((m) => ({ at: m.at, ...(byX.get(px(m.at)) ?? { text: "" }), late: px(m.at) > width - 30 }));
  }

  markLine(at) {
    return { type: "line", xref: "x", yref: "paper", x0: at, x1: at, y0: 0, y1: 1, line: { color: this.theme.muted, width: 1, dash: "dot" } };
  }

  markLabel(mark) {
    return { xref: "x", yref: "paper", x: mark.at, y: 1, xanchor: mark.late ? "right" : "left", yanchor: "bottom",
      yshift: 1 + mark.row * 11, xshift: mark.late ? 0 : -2, showarrow: false, text: mark.text, font: { size: 10, color: this.theme.text } };
  }

  dashed(feed, chart, top) {
    return chart.lines(feed).filter(([y]) => y <= top).map(([y, , colour]) => ({
      type: "line", xref: "paper", yref: "y", x0: 0, x1: 1, y0: y, y1: y, line: { color: this.theme[colour], width: 1, dash: "dash" },
    }));
  }

  /** Names and current values at the right edge, spread so that none overlaps. */
  sideLabels(feed, chart, top) {
    const height = HEIGHT - MARGIN.t - MARGIN.b;
    const k = feed.at.length - 1;
    const entries = chart.stacked ? this.stackLabels(feed, chart, k) : this.lineLabels(feed, chart, k);
    for (const [y, label, colour] of chart.lines(feed)) {
      if (label && y <= top) entries.push({ value: y, text: `<span style="color:${this.theme[colour]}">${label} ${number(y)}</span>` });
    }
    const placed = spread(entries.map((e) => ({ ...e, y: height * (1 - e.value / top) })), height);
    return placed.map((e) => ({ xref: "paper", yref: "paper", x: 1, y: 1 - e.y / height, xanchor: "left", yanchor: "middle",
      xshift: 3, showarrow: false, text: e.text, font: { size: 11, color: this.theme.text } }));
  }

  stackLabels(feed, chart, k) {
    const sums = new Map();
    for (const s of this.series) sums.set(s.gpu, (sums.get(s.gpu) ?? 0) + (valueAt(feed, chart, s, k) ?? 0));
    let base = 0;
    const entries = [];
    for (const [gpu, sum] of sums) {
      if (sum > 0) entries.push({ value: base + sum / 2, text: this.swatch(gpu, gpu, sum) });
      base += sum;
    }
    return entries;
  }

  lineLabels(feed, chart, k) {
    return this.series.map((s) => ({ s, value: valueAt(feed, chart, s, k) })).filter((e) => e.value !== null)
      .map(({ s, value }) => ({ value, text: this.swatch(s.gpu, s.label, Math.round(value)) }));
  }

  swatch(gpu, label, value) {
    return `<span style="color:${this.byType.get(gpu)}">■</span> ${label} ${number(value)}`;
  }
}
