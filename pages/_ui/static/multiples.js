// The KV cache of every instance over time, side by side: running calls at the bottom, idle pinned contexts on top of
// them (hatched), what is left above. Plain SVG: sixty-four of them stay cheap and readable.

import { nearest } from "./crosshair.js";
import { csv, isoTime } from "./csv.js";
import { BUTTON, offer } from "./export.js";
import { axisTime, clock, number } from "./format.js";
import { pngOfCells } from "./picture.js";
import { chartTable, seriesOf } from "./series.js";
import { level, STATES } from "./strip.js";

const SKELETON = `
  <section class="hw-panel hw-caches" data-testid="caches"><h2>KV caches <small></small>
    <span class="hw-keys"><i class="hw-key hw-key-used"></i>running<i class="hw-key hw-key-pinned"></i>idle pinned<i class="hw-key hw-key-free"></i>free or other cached</span>${BUTTON}</h2>
    <svg class="hw-defs" aria-hidden="true"><defs><pattern id="hw-hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="5" height="5"/><line y2="5"/></pattern></defs></svg>
    <div class="hw-multiples"></div></section>`;
const NEAR_PX = 6; // a mark this close to the pointer is named
const COLUMNS = [{ column: "kv_used_fraction", unit: "% running", scale: 100 }, { column: "kv_pinned_fraction", unit: "% idle pinned", scale: 100 }];
const CELL = `<p><b></b><em></em></p><svg><path class="hw-pinned"/><path class="hw-used"/><path class="hw-marks"/><path class="hw-limit"/><path class="hw-at"/></svg>`;

export class Multiples {
  constructor(root) {
    root.innerHTML = SKELETON;
    this.root = root;
    this.grid = root.querySelector(".hw-multiples");
    this.sub = root.querySelector("small");
    this.cells = [];
    offer(root.querySelector(".hw-panel"), { csv: () => this.csv(), png: () => this.png() });
    this.at = null; // row under the pointer, null: the newest
    this.grid.addEventListener("pointermove", (event) => this.point(event));
    this.grid.addEventListener("pointerleave", () => this.leave());
    this.resized = new ResizeObserver(() => this.feed?.hasFleet() && this.draw());
    this.resized.observe(this.grid);
  }

  attach(feed) {
    this.feed = feed;
  }

  status() {}

  render(feed) {
    this.feed = feed;
    const names = feed.static.instances.name;
    if (this.cells.length !== names.length) this.build(names.length);
    this.draw();
  }

  build(count) {
    this.grid.dataset.size = this.grid.parentElement.dataset.size = count <= 4 ? "large" : count <= 12 ? "middle" : "small";
    this.cells = Array.from({ length: count }, () => {
      const cell = document.createElement("div");
      cell.className = "hw-multiple";
      cell.setAttribute("role", "img");
      cell.innerHTML = CELL;
      return cell;
    });
    this.grid.replaceChildren(...this.cells);
  }

  /** Running and pinned share of each cache, a column each. */
  csv() {
    const { feed } = this;
    const last = feed.at[feed.at.length - 1];
    const range = [axisTime(last - feed.window), axisTime(last)];
    const [used, pinned] = COLUMNS.map((chart) => chartTable(feed, chart, seriesOf(feed).single, range, isoTime));
    return csv([...used[0], ...pinned[0].slice(1)], used[1].map((row, k) => [...row, ...pinned[1][k].slice(1)]));
  }

  png() {
    const cells = this.cells.map((cell) => ({ name: cell.querySelector("b").textContent, figure: cell.querySelector("em").textContent, svg: cell.lastElementChild }));
    return pngOfCells(this.grid, cells, `KV caches, ${this.sub.textContent}`);
  }

  draw() {
    const { feed } = this;
    const minutes = number(feed.window / 60);
    const when = this.at === null ? "" : ` at ${clock(feed.at[this.at])}${this.named()}`;
    const whose = feed.static.groups ? "% of the fullest cache of each GPU type" : "% of each cache";
    this.sub.textContent = `${whose}${when || `, last ${minutes} min`}, dashed ${100 * feed.static.limits.kv_red} %`;
    const plot = this.cells[0].lastElementChild;
    const size = [plot.clientWidth, plot.clientHeight];
    if (!size[0]) return;
    this.cells.forEach((cell, i) => this.cell(cell, i, size));
  }

  cell(cell, i, [width, height]) {
    const { feed } = this;
    const fixed = feed.static.instances;
    const used = feed.instances.kv_used_fraction[i];
    const pinned = feed.instances.kv_pinned_fraction[i];
    const last = feed.at[feed.at.length - 1];
    const x = (k) => (1 - (last - feed.at[k]) / feed.window) * width;
    const y = (share) => height - Math.min(1, share) * height;
    const k = this.at ?? feed.at.length - 1;
    const both = used.map((v, j) => (v === null ? null : v + (pinned[j] ?? 0)));
    const [head, svg] = cell.children;
    const [pinnedPath, usedPath, marks, limit, at] = svg.children;
    usedPath.setAttribute("d", area(used, x, y, height));
    pinnedPath.setAttribute("d", area(both, x, y, height));
    marks.setAttribute("d", feed.marks.filter((m) => m[1] >= last - feed.window && m[1] <= last)
      .map((m) => `M${((1 - (last - m[1]) / feed.window) * width).toFixed(1)},0V${height}`).join(""));
    limit.setAttribute("d", `M0,${y(feed.static.limits.kv_red).toFixed(1)}H${width}`);
    at.setAttribute("d", this.at === null ? "" : `M${x(k).toFixed(1)},0V${height}`);
    cell.dataset.level = level(used[k] ?? 0, feed.static.limits);
    const sign = { red: "✕ ", amber: "▲ " }[cell.dataset.level] ?? "";
    const name = this.grid.dataset.size === "small" ? fixed.name[i] : `${fixed.name[i]} ${fixed.role?.[i] === "mixed" ? "" : fixed.role?.[i] ?? ""}`;
    set(head.firstElementChild, name.trim());
    const down = this.downWord(i);
    set(head.lastElementChild, down || (used[k] === null || used[k] === undefined ? "–" : `${sign}${percent(used[k])} + ${percent(pinned[k] ?? 0)} %`));
    cell.title = `${fixed.name[i]}: ${down || `${percent(used[k] ?? 0)} % running, ${percent(pinned[k] ?? 0)} % idle pinned`}`;
    cell.setAttribute("aria-label", cell.title);
  }

  /** "✕ down" of an instance that is down now; "" of all others, of GPU types, and of the past, whose states nobody told. */
  downWord(i) {
    const { now, static: fixed } = this.feed;
    return this.at === null && !fixed.groups && now.states[i] === "do" ? STATES.do.join(" ") : "";
  }

  /** What was done where the pointer is. */
  named() {
    const { feed } = this;
    const near = (NEAR_PX / this.cells[0].lastElementChild.clientWidth) * feed.window;
    const marks = feed.marks.filter((m) => Math.abs(m[1] - feed.at[this.at]) <= near).map((m) => m[3]);
    if (!marks.length) return "";
    return `: ${marks.slice(0, 2).join(", ")}${marks.length > 2 ? ` +${marks.length - 2}` : ""}`;
  }

  point(event) {
    const plot = event.target.closest?.(".hw-multiple")?.lastElementChild;
    if (!plot || !this.feed?.hasFleet()) return;
    const box = plot.getBoundingClientRect();
    const last = this.feed.at[this.feed.at.length - 1];
    const share = Math.max(0, Math.min(1, (event.clientX - box.left) / box.width));
    this.at = nearest(this.feed.at, axisTime(last - (1 - share) * this.feed.window));
    this.draw();
  }

  leave() {
    this.at = null;
    if (this.feed?.hasFleet()) this.draw();
  }

  destroy() {
    this.resized.disconnect();
    this.root.replaceChildren();
  }
}

/** The area below a line as a path; a hole in the data is a hole in the area. */
function area(values, x, y, height) {
  let path = "";
  let start = -1;
  for (let k = 0; k <= values.length; k += 1) {
    const there = k < values.length && values[k] !== null && values[k] !== undefined;
    if (there && start < 0) start = k;
    if (there || start < 0) continue;
    path += `M${x(start).toFixed(1)},${height}`;
    for (let j = start; j < k; j += 1) path += `L${x(j).toFixed(1)},${y(values[j]).toFixed(1)}`;
    path += `L${x(k - 1).toFixed(1)},${height}Z`;
    start = -1;
  }
  return path;
}

const percent = (share) => number(Math.round(100 * share));

function set(node, value) {
  if (node.textContent !== value) node.textContent = value;
}
