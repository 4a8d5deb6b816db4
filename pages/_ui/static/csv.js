// Tables, charts and columns as CSV. A column whose cells all carry one kind of unit becomes numbers in that unit's
// base, named in the head: "320 ms" and "1.20 min" under "Waits" become .32 and 72 under "Waits (s)".

import { NOTHING } from "./format.js";

const TIMES = { ms: 1e-3, s: 1, min: 60, h: 3600 };
const PREFIXES = { k: 1e3, M: 1e6, G: 1e9, T: 1e12 };

/** Rows of cells as text, lines ended as RFC 4180 wants them. */
export function csv(heads, rows) {
  return [heads, ...rows].map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
}

/** One field: a number as it is; text with a plain minus, quoted where needed, never a formula of a spreadsheet. */
export function field(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
  let text = value.trim().replaceAll("−", "-");
  if (/^[=+\-@\t]/.test(text) && !/^[+-]?[\d.,]+( ?[\w%/]+)*$/.test(text)) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Epoch seconds as ISO 8601 in UTC. */
export const isoTime = (at) => new Date(at * 1000).toISOString();

/** [number, unit] of "1.23 kW" or "✕ −4.5 s"; null where text is no such thing. */
export function figure(text) {
  const found = /^(?:[✕▲] )?([+−-]?)([\d,]*\.?\d+)(?: ?([\p{L}%/ ]*))?$/u.exec(text.trim());
  if (!found) return null;
  const [, sign, digits, rest = ""] = found;
  const [unit, factor] = scale(rest.trim());
  const size = Number((Number(digits.replaceAll(",", "")) * factor).toPrecision(12));
  return [sign === "−" || sign === "-" ? -size : size, unit];
}

function scale(unit) {
  if (unit in TIMES) return ["s", TIMES[unit]];
  const found = /^([kMGT])(?: (.+)|([WJB]))$/.exec(unit);
  if (found) return [found[2] ?? found[3], PREFIXES[found[1]]];
  return unit in PREFIXES ? ["", PREFIXES[unit]] : [unit, 1];
}

/** A drawn table; rows that head a group become a first column of their own. */
export function ofTable(table) {
  const heads = [...table.querySelectorAll("thead th")].map((cell) => cell.textContent);
  const grouped = table.querySelector("tr.group") !== null;
  const rows = [];
  let group = "";
  for (const row of table.querySelectorAll("tbody tr")) {
    if (row.classList.contains("group")) group = row.firstElementChild.firstChild.textContent;
    else rows.push([...(grouped ? [group] : []), ...[...row.cells].map(read)]);
  }
  if (grouped) heads.unshift("Group");
  return columns(heads, rows);
}

/** The text of a cell, or the exact number it says it stands for. */
const read = (cell) => cell.dataset.value ?? cell.textContent;

function columns(heads, rows) {
  const width = Math.max(heads.length, ...rows.map((row) => row.length));
  const kept = Array.from({ length: width }, (_, i) => column(heads[i] ?? "", rows.map((row) => row[i] ?? "")))
    .filter(({ head, cells }) => head || cells.some((cell) => cell !== null));
  return csv(kept.map((c) => c.head), rows.map((_, k) => kept.map((c) => c.cells[k])));
}

function column(head, cells) {
  const texts = cells.map((cell) => (cell.trim() === NOTHING ? "" : cell.trim()));
  const figures = texts.map((text) => (text ? figure(text) : null));
  const units = new Set(figures.filter((f) => f && (f[1] || f[0])).map((f) => f[1]));
  if (units.size > 1 || texts.some((text, k) => text && !figures[k])) return { head, cells: texts.map((text) => text || null) };
  const unit = [...units][0];
  return { head: unit ? `${head} (${unit})`.trim() : head, cells: figures.map((f) => f && f[0]) };
}

/** Stacked bars by group: the line's name, its total, and the share of each group in it. */
export function ofBars(bars) {
  const groups = [...(bars.parentElement.querySelectorAll(".legend span") ?? [])].map((g) => g.textContent);
  const lines = [...bars.querySelectorAll("code")].map((name) => {
    const [track, total] = [name.nextElementSibling, name.nextElementSibling.nextElementSibling];
    const parts = new Map([...track.children].map((part) => [part.className, parseFloat(part.style.width)]));
    const whole = [...parts.values()].reduce((a, b) => a + b, 0) || 1;
    return [name.textContent, figure(total.textContent)?.[0] ?? null, ...groups.map((_, k) => Math.round((100 * (parts.get(`c${k % 5}`) ?? 0)) / whole))];
  });
  return csv(["Name", "Total", ...groups.map((group) => `${group} (%)`)], lines);
}

/** What a Plotly figure of the server draws: a line a point. */
export function ofPlot(plot) {
  const parts = ["x", "y", "z", "base", "text"].filter((key) => plot.data.some((trace) => Array.isArray(trace[key])));
  const title = (axis, otherwise) => plain(plot.layout[axis]?.title?.text ?? "") || otherwise;
  const heads = { x: title("xaxis", "x"), y: title("yaxis", "y"), z: "z", base: "from", text: "text" };
  const rows = plot.data.flatMap((trace, i) => {
    const length = Math.max(0, ...parts.map((key) => trace[key]?.length ?? 0));
    return Array.from({ length }, (_, k) => [trace.name ?? `trace ${i + 1}`, ...parts.map((key) => cellOf(trace[key]?.[k]))]);
  });
  return csv(["series", ...parts.map((key) => heads[key])], rows);
}

const plain = (text) => text.replaceAll(/<[^>]*>/g, " ").trim();
const cellOf = (value) => (value === null || value === undefined || typeof value === "number" ? value ?? null : plain(String(value)));
