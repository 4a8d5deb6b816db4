// The first picture of a live chart, until Plotly is there: the same data, axes, marks and labels at the same places,
// as plain SVG. It stands as soon as the data does; the library takes seconds of a small machine to load.

import { clock } from "./format.js";

const TICK_PX = 3;
const LABEL_PX = 11;

/** Draw Plotly traces (stacked areas, a line, a heat map) and a layout as `axes` makes it into `node`. */
export function sketch(node, traces, layout) {
  const { width, height, margin, xaxis, yaxis } = layout;
  const [w, h] = [width - margin.l - margin.r, height - margin.t - margin.b];
  if (w <= 0 || h <= 0) return;
  const along = ([from, to], length) => (value) => ((value - from) / (to - from)) * length;
  const x = along(xaxis.range, w);
  const up = along(yaxis.range, h);
  const place = { x, y: (value) => h - up(value), w, h };
  const inner = `x="${margin.l}" y="${margin.t}" width="${w}" height="${h}"`;
  unsketch(node);
  node.insertAdjacentHTML("beforeend", `<svg class="hw-sketch" width="${width}" height="${height}" aria-hidden="true">
    ${yaxis.tickvals ? valueTicks(yaxis, margin, place) : ""}${timeTicks(xaxis, margin, place)}
    <svg ${inner}>${drawn(traces, xaxis.range, place)}${layout.shapes.map((s) => line(s, place)).join("")}</svg>
    <svg ${inner} overflow="visible">${layout.annotations.map((a) => label(a, place)).join("")}</svg></svg>`);
}

/** Take the picture away: Plotly has drawn its own. */
export function unsketch(node) {
  node.querySelector(".hw-sketch")?.remove();
}

function drawn(traces, range, place) {
  const below = [];
  return traces.map((trace) => {
    if (trace.type === "heatmap") return heat(trace, range, place);
    return trace.stackgroup ? area(trace, below, place) : steps(trace, place);
  }).join("");
}

/** An area upon those drawn before it, whose heights `below` holds. */
function area(trace, below, { x, y }) {
  const at = (k, height) => `${x(trace.x[k]).toFixed(1)},${y(height).toFixed(1)}`;
  const floor = trace.y.map((_, k) => below[k] ?? 0);
  trace.y.forEach((value, k) => { below[k] = floor[k] + value; });
  const top = trace.y.map((_, k) => at(k, below[k])).join("L");
  const bottom = trace.y.map((_, k) => at(k, floor[k])).reverse().join("L");
  return `<path fill="${trace.fillcolor}" d="M${top}L${bottom}Z"/><path fill="none" stroke="${trace.line.color}" stroke-width="${trace.line.width}" d="M${top}"/>`;
}

/** A dashed line that keeps its height until the next row. */
function steps(trace, { x, y }) {
  const known = trace.x.map((at, k) => [x(at).toFixed(1), trace.y[k]]).filter(([, value]) => value !== null);
  const path = known.map(([at, value], k) => (k ? `H${at}V` : `M${at},`) + y(value).toFixed(1)).join("");
  return `<path fill="none" stroke="${trace.line.color}" stroke-width="${trace.line.width}" stroke-dasharray="9,5" d="${path}"/>`;
}

/** A heat map as a small picture, a pixel wide as one on the screen and a pixel high a row, stretched. */
function heat(trace, [from, to], { x, y, w, h }) {
  const [first, last] = [x(trace.x[0]), x(trace.x[trace.x.length - 1])];
  const [left, width] = [Math.max(0, Math.floor(first)), Math.ceil(Math.min(w, last)) - Math.max(0, Math.floor(first))];
  if (width <= 0) return "";
  const canvas = Object.assign(document.createElement("canvas"), { width, height: trace.z.length });
  const pen = canvas.getContext("2d");
  const picture = pen.createImageData(width, trace.z.length);
  const ramp = shades(trace.colorscale);
  for (let px = 0, k = 0; px < width; px += 1) {
    const t = from + ((left + px + 0.5) / w) * (to - from);
    while (k + 1 < trace.x.length && trace.x[k + 1] - t < t - trace.x[k]) k += 1;
    trace.z.forEach((row, i) => {
      if (row[k] === null) return;
      const share = Math.max(0, Math.min(1, (row[k] - trace.zmin) / (trace.zmax - trace.zmin)));
      picture.data.set([...ramp[Math.round(share * (ramp.length - 1))], 255], 4 * ((trace.z.length - 1 - i) * width + px));
    });
  }
  pen.putImageData(picture, 0, 0);
  const gaps = trace.ygap ? trace.y.slice(1).map((i) => `<path stroke="var(--st-background-color)" stroke-width="${trace.ygap}" d="M0,${y(i - 0.5).toFixed(1)}H${w}"/>`) : [];
  return `<image x="${left}" y="0" width="${width}" height="${h}" preserveAspectRatio="none" style="image-rendering:pixelated" href="${canvas.toDataURL()}"/>${gaps.join("")}`;
}

/** [r, g, b] at every half percent of a Plotly colour scale. */
function shades(scale) {
  const colours = scale.map(([at, hex]) => [at, [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16))]);
  return Array.from({ length: 201 }, (_, i) => {
    const share = i / 200;
    const above = colours.findIndex(([at]) => at > share);
    const next = above < 0 ? colours.length - 1 : Math.max(1, above);
    const [[a, low], [b, high]] = [colours[next - 1], colours[next]];
    return low.map((c, j) => Math.round(c + (high[j] - c) * (b > a ? Math.min(1, (share - a) / (b - a)) : 1)));
  });
}

function valueTicks(axis, margin, { y, w }) {
  return axis.tickvals.map((value, i) => {
    const at = margin.t + y(value);
    const rule = i && i < axis.tickvals.length - 1 ? `<path stroke="${axis.gridcolor}" d="M${margin.l},${Math.round(at) - 0.5}h${w}"/>` : "";
    return `${rule}<text class="hw-tick" text-anchor="end" x="${margin.l - 1}" y="${at + 4}">${axis.ticktext[i]}</text>`;
  }).join("");
}

function timeTicks(axis, margin, { x, w, h }) {
  const bottom = margin.t + h;
  const offset = new Date(axis.range[1]).getTimezoneOffset() * 60000; // steps count in local time
  const ticks = [];
  for (let t = Math.ceil((axis.range[0] - offset) / axis.dtick) * axis.dtick + offset; t <= axis.range[1]; t += axis.dtick) ticks.push(t);
  const word = (t) => (axis.tickformat.endsWith("S") ? clock(t / 1000) : clock(t / 1000).slice(0, 5));
  return `<path stroke="${axis.linecolor}" d="M${margin.l},${bottom + 0.5}h${w}"/>${ticks.map((t) => {
    const at = margin.l + x(t);
    return `<path stroke="${axis.tickcolor}" d="M${Math.round(at) - 0.5},${bottom + 1}v${TICK_PX}"/><text class="hw-tick" text-anchor="middle" x="${at}" y="${bottom + TICK_PX + LABEL_PX + 3.2}">${word(t)}</text>`;
  }).join("")}`;
}

function line(shape, { x, y, w, h }) {
  const [a, b] = [shape.x0, shape.x1].map((v) => (shape.xref === "paper" ? v * w : x(v)));
  const [c, d] = [shape.y0, shape.y1].map((v) => (shape.yref === "paper" ? h - v * h : y(v)));
  const dash = shape.line.dash === "dot" ? "3,3" : "9,9";
  return `<path stroke="${shape.line.color}" stroke-width="${shape.line.width}" stroke-dasharray="${dash}" d="M${a},${c}L${b},${d}"/>`;
}

/** A label with the coloured parts that Plotly's markup names. */
function label(note, { x, w, h }) {
  const left = (note.xref === "paper" ? note.x * w : x(note.x)) + note.xshift + 2;
  const top = h - note.y * h - (note.yshift ?? 0) + (note.yanchor === "middle" ? 4 : -5);
  const parts = note.text.split(/<span style="color:([^"]*)">(.*?)<\/span>/);
  const text = parts.map((part, i) => (i % 3 === 1 ? `<tspan fill="${safe(part)}">` : i % 3 === 2 ? `${safe(part)}</tspan>` : safe(part))).join("");
  return `<text x="${left.toFixed(1)}" y="${top.toFixed(1)}" fill="${note.font.color}" font-size="${note.font.size}">${text}</text>`;
}

const safe = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
