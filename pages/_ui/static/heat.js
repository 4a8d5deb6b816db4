// A cell an instance, in rows by GPU type: coloured by its KV cache, with the calls that queue there. Sixty-four of
// them stay readable where rows do not fit.

import { number } from "./format.js";
import { seriesOf } from "./series.js";
import { about, level, newest, set, STATES } from "./strip.js";

const KEY = `<p class="hw-heatkey">figures: queued calls; ground: KV cache<i class="hw-ramp"></i>to 100 %<i data-level="amber"></i>▲ amber<i data-level="red"></i>✕ red; struck out: down, ▼ draining</p>`;

export class Heat {
  constructor(root) {
    this.root = root;
    this.names = "";
  }

  render(feed, colours) {
    const fixed = feed.static.instances;
    const names = fixed.name.join();
    if (names !== this.names) this.build(feed, colours);
    this.names = names;
    for (const type of this.types) this.type(type, feed, colours);
  }

  build(feed, colours) {
    this.root.innerHTML = `${KEY}<div class="hw-heat"></div>`;
    const box = this.root.querySelector(".hw-heat");
    const byType = new Map();
    for (const { gpu, members } of seriesOf(feed).single) byType.set(gpu, [...(byType.get(gpu) ?? []), ...members]);
    this.types = [...byType].map(([gpu, members]) => {
      const row = document.createElement("div");
      row.innerHTML = `<b><i class="hw-swatch"></i></b><em></em><p></p>`;
      row.firstElementChild.append(`${gpu} ×${members.length}`);
      row.querySelector(".hw-swatch").style.background = colours[members[0]];
      const cells = members.map((i) => {
        const cell = document.createElement("i");
        cell.dataset.testid = `instance-${feed.static.instances.name[i]}`;
        cell.setAttribute("role", "img");
        return cell;
      });
      row.lastElementChild.append(...cells);
      box.append(row);
      return { row, members, cells };
    });
  }

  type({ row, members, cells }, feed, colours) {
    row.querySelector(".hw-swatch").style.background = colours[members[0]];
    const sum = (column) => members.reduce((total, i) => total + (newest(feed, column, i) ?? 0), 0);
    set(row.children[1], `${number(sum("queued"))} queued, ${number(Math.round(sum("power_w")))} W`);
    members.forEach((i, k) => this.cell(cells[k], i, feed));
  }

  cell(cell, i, feed) {
    const share = newest(feed, "kv_used_fraction", i);
    const state = feed.now.states[i];
    cell.dataset.state = state;
    cell.dataset.level = level(share ?? 0, feed.static.limits);
    cell.style.setProperty("--kv", `${Math.round(100 * Math.min(1, share ?? 0))}%`);
    set(cell, state === "up" ? number(newest(feed, "queued", i)) : STATES[state]?.[0] ?? "?");
    const now = `${number(newest(feed, "queued", i))} queued, ${number(newest(feed, "running", i))} running, KV ${share === null ? "unknown" : `${Math.round(100 * share)} %`}, `
      + `${number(Math.round(newest(feed, "power_w", i)))} W, ${STATES[state]?.[1] ?? "?"}`;
    cell.title = `${now}. ${about(feed, i)}`;
    cell.setAttribute("aria-label", `${feed.static.instances.name[i]}: ${now}`);
  }
}
