// What the four charts draw: one series an instance, or one a GPU type in a large fleet.

import { text } from "./format.js";

/** Above this many instances single lines cannot be told apart. */
const SINGLE_UP_TO = 12;

/** key, title, column, stacked areas or rows of a heat map, unit, sub title, dashed lines. */
export const CHARTS = [
  { key: "queued", title: "Queued calls", column: "queued", stacked: true, unit: "calls", whole: true, sub: (feed) => `calls, ${stacking(feed)}`, lines: () => [] },
  {
    key: "debt", title: "SLO debt", column: "slo_debt_s", stacked: true, unit: "s",
    sub: (feed) => `s overdue now, ${stacking(feed)}, fleet limit ${text(feed.static.limits.debt_s, "s")}`,
    lines: (feed) => [[feed.static.limits.debt_s, "limit", "red"]],
  },
  {
    key: "kv", title: "KV occupancy", column: "kv_used_fraction", stacked: false, unit: "%", scale: 100,
    sub: (feed) => `% of each KV cache${feed.static.groups ? ", highest of each GPU type" : ""}, amber from ${100 * feed.static.limits.kv_amber}, red from ${100 * feed.static.limits.kv_red}`,
    lines: () => [],
  },
  {
    key: "power", title: "GPU power", column: "power_w", stacked: true, unit: "W", sub: (feed) => `W, ${stacking(feed)}`,
    lines: (feed) => (feed.now.power_cap_w ? [[feed.now.power_cap_w, "cap", "amber"]] : []),
  },
];

/** The one chart of the page Power: what all draw against what they may draw, over time. */
export const WATTS = [
  {
    key: "watts", title: "Power against caps", column: "power_w", stacked: true, unit: "W", limit: "power_limit_w",
    sub: (feed) => `W, ${stacking(feed)}; dashed: caps of all together, TDP where there is none`, lines: () => [],
  },
];

const stacking = (feed) => (isLarge(feed) || feed.static.groups ? "stacked by GPU type" : "stacked by instance");
/** A fleet sent by GPU type (static.groups) has few series, however large it is. */
export const isLarge = (feed) => feed.static.instances.name.length > SINGLE_UP_TO;

/** {single, grouped}: a series an instance, equal GPU types side by side, and what the areas stack. */
export function seriesOf(feed) {
  const { name, gpu } = feed.static.instances;
  const types = [...new Set(gpu)];
  const members = (type) => name.map((_, i) => i).filter((i) => gpu[i] === type);
  const single = types.flatMap((type) => members(type).map((i) => ({ label: name[i], gpu: type, members: [i] })));
  const grouped = types.map((type) => ({ label: type, gpu: type, members: members(type) }));
  return { single, grouped: isLarge(feed) ? grouped : single };
}

/** Value of a series at row `k`: the sum of its members where stacked, else the highest; null in a hole. */
export function valueAt(feed, chart, series, k) {
  const columns = feed.instances[chart.column];
  let value = null;
  for (const i of series.members) {
    const one = columns[i][k];
    if (one === null || one === undefined) continue;
    value = value === null ? one : chart.stacked ? value + one : Math.max(value, one);
  }
  return value === null ? null : value * (chart.scale ?? 1);
}

/** Step of an axis with four steps from 0 to above `high`: 1, 2, 2.5 or 5 times a power of ten, no less than 0.01 (`whole`: 1). */
export function axisStep(high, whole) {
  const least = Math.max(high, whole ? 4 : 0.04) / 4;
  const decade = 10 ** Math.floor(Math.log10(least));
  const factors = whole && decade < 10 ? [1, 2, 5, 10] : [1, 2, 2.5, 5, 10];
  return decade * factors.find((f) => f * decade >= least - 1e-12);
}

/** A chart's drawn series from `from` to `to` (ms) as heads and rows for a CSV. */
export function chartTable(feed, chart, series, [from, to], time) {
  const unit = chart.unit;
  const heads = ["time (UTC)", ...series.map((s) => `${s.label} (${unit})`), ...(chart.limit ? [`limit (${unit})`] : [])];
  const seen = feed.at.map((_, k) => k).filter((k) => feed.at[k] * 1000 >= from && feed.at[k] * 1000 <= to);
  const rows = seen.map((k) => [time(feed.at[k]), ...series.map((s) => exact(valueAt(feed, chart, s, k))), ...(chart.limit ? [feed.fleet[chart.limit][k]] : [])]);
  return [heads, rows];
}

const exact = (value) => (value === null ? null : Number(value.toPrecision(8)));
