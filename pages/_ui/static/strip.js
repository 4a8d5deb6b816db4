// The instance strip: a row an instance in a small fleet, a cell an instance coloured by its KV cache in a larger one,
// and a row a GPU type in a fleet whose feed is sent by type.

import { Heat } from "./heat.js";
import { NOTHING, number, text } from "./format.js";
import { isLarge } from "./series.js";
import { Types } from "./types.js";

export const STATES = { up: ["●", "up"], dr: ["▼", "drain"], do: ["✕", "down"] };
const HEAD = `<div class="hw-row hw-rowhead"><span>Instance</span><span>GPU</span><span class="hw-n">Queued</span>
  <span class="hw-n">Running</span><span>KV cache</span><span class="hw-n">Power/limit</span><span>State</span></div>`;
const ROW = `<span class="hw-id"><i class="hw-swatch"></i><b></b></span><span></span>
  <span class="hw-n"></span><span class="hw-n"></span>
  <span class="hw-kv"><i class="hw-bar"><i class="hw-cached"></i><i class="hw-used"></i></i><em></em></span>
  <span class="hw-n"></span><span class="hw-state"></span>`;

/** The view that fits the fleet; it changes with the fleet alone. */
export class Strip {
  constructor(root) {
    this.root = root;
    this.kind = null;
  }

  render(feed, colours) {
    const kind = feed.static.groups ? Types : isLarge(feed) ? Heat : Rows;
    if (kind !== this.kind) {
      this.kind = kind;
      this.view = new kind(this.root);
    }
    this.view.render(feed, colours);
  }
}

class Rows {
  constructor(root) {
    this.root = root;
    this.rows = [];
  }

  render(feed, colours) {
    const fixed = feed.static.instances;
    if (this.rows.length !== fixed.name.length) this.build(fixed.name.length);
    this.rows.forEach((row, i) => this.row(row, i, feed, colours));
  }

  build(count) {
    this.root.innerHTML = (count > 1 ? `<div class="hw-heads">${HEAD}${HEAD}</div>` : `<div class="hw-heads">${HEAD}</div>`) + '<div class="hw-rows"></div>';
    const rows = this.root.querySelector(".hw-rows");
    this.rows = Array.from({ length: count }, () => {
      const row = document.createElement("div");
      row.className = "hw-row";
      row.innerHTML = ROW;
      rows.append(row);
      return row;
    });
  }

  row(row, i, feed, colours) {
    const fixed = feed.static.instances;
    const cap = fixed.power_cap_w[i];
    const last = (column) => newest(feed, column, i);
    const [id, gpu, queued, running, kv, power, state] = row.children;
    row.dataset.testid = `instance-${fixed.name[i]}`;
    row.dataset.state = feed.now.states[i];
    row.title = about(feed, i);
    id.firstElementChild.style.background = colours[i];
    set(id.lastElementChild, fixed.name[i]);
    set(gpu, fixed.provenance[i] === "estimated" ? `${fixed.gpu[i]} est.` : fixed.gpu[i]);
    set(queued, number(last("queued")));
    set(running, `${number(last("running"))}/${fixed.max_num_seqs[i]}`);
    this.kv(kv, last("kv_used_fraction"), feed.now.cached[i], feed.static.limits);
    set(power, `${number(Math.round(last("power_w")))}/${number(cap ?? fixed.tdp_w[i])} W`);
    const [sign, word] = STATES[feed.now.states[i]] ?? ["?", NOTHING];
    set(state, `${sign} ${word}`);
  }

  kv(node, used, cached, limits) {
    const share = used ?? 0;
    node.dataset.level = level(share, limits);
    const [cachedBar, usedBar] = node.firstElementChild.children;
    usedBar.style.width = `${Math.min(100, share * 100)}%`;
    cachedBar.style.width = `${Math.min(100, share * 100 + cached)}%`;
    set(node.lastElementChild, used === null ? NOTHING : `${Math.round(share * 100)} %`);
  }
}

/** What does not change every second, in words. */
export function about(feed, i) {
  const fixed = feed.static.instances;
  return `${fixed.name[i]}: ${fixed.model[i]} on ${fixed.gpu[i]}, ${fixed.simulated[i] === false ? "a real server" : "simulated"}, cost profile ${fixed.provenance[i]}, `
    + `power limit ${fixed.power_cap_w[i] ? "set by a cap" : "of the GPU"}, KV capacity ${text(fixed.kv_capacity_tokens[i], "tokens")}, ${number(feed.now.cached[i])} % cached prefixes`;
}

/** The newest value of an instance's column. */
export function newest(feed, column, i) {
  const values = feed.instances[column][i];
  return values[values.length - 1];
}

/** "red", "amber" or "" of a share of a KV cache, judged as it is written: in whole percent. */
export function level(share, limits) {
  const percent = Math.round(100 * share);
  return percent >= 100 * limits.kv_red ? "red" : percent >= 100 * limits.kv_amber ? "amber" : "";
}

export function set(node, value) {
  if (node.textContent !== value) node.textContent = value;
}

/** What the strip shows now, as heads and rows for a CSV. */
export function stripTable(feed) {
  const fixed = feed.static.instances;
  const heads = ["Instance", "GPU", "Instances", "Queued", "Running", "Seats", "KV cache (%)", "Power (W)", "Limit (W)", "State"];
  const rows = fixed.name.map((name, i) => {
    const share = newest(feed, "kv_used_fraction", i);
    return [
      name, fixed.gpu[i], fixed.count?.[i] ?? 1, newest(feed, "queued", i), newest(feed, "running", i), fixed.max_num_seqs[i],
      share === null ? null : Number((100 * share).toPrecision(4)), newest(feed, "power_w", i), fixed.power_cap_w[i] ?? fixed.tdp_w[i], (STATES[feed.now.states[i]] ?? ["?", "?"])[1],
    ];
  });
  return [heads, rows];
}
