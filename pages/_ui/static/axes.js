// Axes, marks and labels of a live chart: everything around the data.

import { axisTime, compact, measure, number, text } from "./format.js";
import { labels, spread } from "./marks.js";
import { isLarge, seriesOf, valueAt } from "./series.js";
import { level } from "./strip.js";

/** px; equal in all charts, so that one time stands at one place. */
export const MARGIN = { l: 40, r: 112, t: 26, b: 20 };
const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900];

/** The Plotly layout of one chart; `charts` holds feed, theme, series and colours. */
export function axes(charts, chart, size, top) {
  const { feed, theme } = charts;
  const range = charts.range(feed);
  const marks = marksOf(feed, range, size.width - MARGIN.l - MARGIN.r);
  return {
    ...size, margin: MARGIN, showlegend: false, hovermode: false, dragmode: "zoom",
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: theme.font, size: 11, color: theme.muted },
    xaxis: timeAxis(feed, theme, range, size.width),
    yaxis: chart.stacked ? valueAxis(theme, top) : { range: [-0.5, top - 0.5], fixedrange: true, visible: false },
    shapes: [...marks.map((m) => markLine(m, theme)), ...dashed(feed, chart, theme, top)],
    annotations: [...marks.filter((m) => m.text).map((m) => markLabel(m, theme)), ...sideLabels(charts, chart, size, top)],
  };
}

function timeAxis(feed, theme, range, width) {
  return {
    type: "date", range: [...range], showgrid: false, zeroline: false, showline: true, linecolor: theme.grid,
    tickformat: range[1] - range[0] < 180000 ? "%H:%M:%S" : "%H:%M", dtick: timeStep(range[1] - range[0], width < 420 ? 4 : 6),
    ticks: "outside", tickcolor: theme.grid, ticklen: 3,
  };
}

/** Step of a time axis in ms: the shortest of a clock's that makes at most `count` of `span`. */
function timeStep(span, count) {
  return 1000 * (STEPS_S.find((step) => step * count * 1000 >= span) ?? STEPS_S[STEPS_S.length - 1]);
}

function valueAxis(theme, top) {
  const ticks = [0, 1, 2, 3, 4].map((i) => (top / 4) * i);
  return {
    range: [0, top], fixedrange: true, tickvals: ticks, ticktext: ticks.map((t) => compact(t)), gridcolor: theme.grid, zeroline: false,
  };
}

/** Marks in sight with the labels that fit, see marks.js. */
function marksOf(feed, [from, to], width) {
  const seen = feed.marks.map((m) => ({ at: axisTime(m[1]), label: m[3] })).filter((m) => m.at >= from && m.at <= to);
  seen.sort((a, b) => a.at - b.at);
  for (const mark of seen) mark.x = ((mark.at - from) / (to - from)) * width;
  const texts = new Map(labels(seen).map((p) => [p.x, p]));
  return seen.map((m) => {
    const label = texts.get(m.x);
    texts.delete(m.x); // of marks at one place the first has it
    return { ...m, text: "", row: 0, ...label };
  });
}

function markLine(mark, theme) {
  return {
    type: "line", xref: "x", yref: "paper", x0: mark.at, x1: mark.at, y0: 0, y1: 1, line: { color: theme.muted, width: 1, dash: "dot" },
  };
}

function markLabel(mark, theme) {
  return {
    xref: "x", yref: "paper", x: mark.at, y: 1, xanchor: "left", yanchor: "bottom", xshift: -2,
    yshift: mark.row * 11, showarrow: false, text: mark.text, font: { size: 10, color: theme.text },
  };
}

function dashed(feed, chart, theme, top) {
  return chart.lines(feed).filter(([y]) => y <= top).map(([y, , colour]) => ({
    type: "line", xref: "paper", yref: "y", x0: 0, x1: 1, y0: y, y1: y, line: { color: theme[colour], width: 1, dash: "dash" },
  }));
}

/** Names and values at the right edge, spread so that none overlaps. */
function sideLabels(charts, chart, size, top) {
  const { feed, theme } = charts;
  const height = size.height - MARGIN.t - MARGIN.b;
  const entries = chart.stacked ? stackLabels(charts, chart) : rowLabels(charts, chart);
  for (const [y, label, colour] of chart.lines(feed)) {
    if (y <= top) entries.push({ value: y, text: `<span style="color:${theme[colour]}">${label} ${number(y)}</span>` });
  }
  if (chart.limit) entries.push(limitLabel(charts, chart));
  const placed = spread(entries.map((e) => ({ ...e, y: height * (1 - e.value / top) })), height);
  return placed.map((e) => ({
    xref: "paper", yref: "paper", x: 1, y: 1 - e.y / height, xanchor: "left", yanchor: "middle", xshift: 3,
    showarrow: false, text: e.text, font: { size: 11, color: theme.text },
  }));
}

function limitLabel(charts, chart) {
  const { feed, theme } = charts;
  const value = feed.fleet[chart.limit][charts.edge(feed)];
  const word = feed.static.instances.power_cap_w.some((cap) => cap !== null) ? "caps" : "TDP";
  return { value: value ?? 0, text: `<span style="color:${theme.amber}">${word} ${text(value, "W")}</span>` };
}

function stackLabels(charts, chart) {
  const k = charts.edge(charts.feed);
  const sums = new Map();
  for (const s of charts.grouped) sums.set(s.gpu, (sums.get(s.gpu) ?? 0) + (valueAt(charts.feed, chart, s, k) ?? 0));
  let base = 0;
  const entries = [];
  for (const [gpu, sum] of sums) {
    if (sum > 0) entries.push({ value: base + sum / 2, text: `${swatch(charts, gpu)} ${gpu} ${chart.whole ? number(sum) : measure(sum)}` });
    base += sum;
  }
  return entries;
}

/** One label a row, in a large fleet one a GPU type with its highest value. */
function rowLabels(charts, chart) {
  const { feed, theme, single } = charts;
  const limits = feed.static.limits;
  const shown = isLarge(feed) ? seriesOf(feed).grouped : single;
  let below = single.length;
  return shown.map((s) => {
    const value = valueAt(feed, chart, s, charts.edge(feed));
    below -= s.members.length;
    const whole = number(value === null ? null : Math.round(value));
    const state = level((value ?? 0) / 100, limits);
    const figure = state ? `<span style="color:${theme[state]}">${state === "red" ? "✕" : "▲"} ${whole} %</span>` : `${whole} %`;
    return { value: below + s.members.length / 2, text: `${swatch(charts, s.gpu)} ${s.label} ${figure}` };
  });
}

function swatch(charts, gpu) {
  return `<span style="color:${charts.byType.get(gpu)}">■</span>`;
}
