// A row a GPU type: how many, least, median and greatest of what they do, and the worst state among them.

import { number, text } from "./format.js";
import { level, set, STATES } from "./strip.js";

const HEADS = ["GPU type", "Instances", "Queued", "Running", "KV cache", "Power each", "Power", "State"];
const STATE_KEYS = { down: "do", draining: "dr", up: "up" };

export class Types {
  constructor(root) {
    this.root = root;
    this.names = "";
  }

  render(feed, colours) {
    const fixed = feed.static.instances;
    const names = fixed.name.join();
    if (names !== this.names) this.build(fixed.name);
    this.names = names;
    this.rows.forEach((row, i) => this.row(row, i, feed, colours));
  }

  build(names) {
    const head = HEADS.map((name, i) => `<span title="${i > 1 && i < 6 ? "least / median / greatest of one instance" : ""}">${name}</span>`).join("");
    this.root.innerHTML = `<div class="hw-types"><div class="hw-rowhead">${head}</div></div>`;
    this.rows = names.map((name) => {
      const row = document.createElement("div");
      row.dataset.testid = `type-${name}`;
      row.innerHTML = '<span class="hw-id"><i class="hw-swatch"></i><b></b></span>' + "<span></span>".repeat(HEADS.length - 1);
      this.root.firstElementChild.append(row);
      return row;
    });
  }

  row(row, i, feed, colours) {
    const fixed = feed.static.instances;
    const now = feed.now.groups[i];
    const [id, count, queued, running, kv, each, power, state] = row.children;
    id.firstElementChild.style.background = colours[i];
    set(id.lastElementChild, fixed.name[i]);
    set(count, number(fixed.count[i]));
    set(queued, spread(now.queued, number));
    set(running, spread(now.running, number));
    set(kv, now.kv ? `${spread(now.kv, (share) => String(Math.round(100 * share)))} %` : "–");
    kv.dataset.level = level(now.kv?.[2] ?? 0, feed.static.limits);
    set(each, now.power ? `${spread(now.power, (w) => number(Math.round(w)))} W` : "–");
    const drawn = feed.instances.power_w[i];
    set(power, `${text(drawn[drawn.length - 1], "W")} of ${text(fixed.power_cap_w[i] ?? fixed.tdp_w[i], "W")}`);
    row.dataset.state = feed.now.states[i];
    set(state, Object.entries(now.states).map(([name, n]) => `${STATES[STATE_KEYS[name]]?.[0] ?? "?"} ${number(n)} ${STATES[STATE_KEYS[name]]?.[1] ?? name}`).join("  "));
  }
}

const spread = (values, shown) => (values ? values.map((v) => shown(v)).join(" / ") : "–");
