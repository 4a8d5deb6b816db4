// The instance strip: one row an instance, in two columns where there is room.

import { NOTHING, number, text } from "./format.js";

const STATES = { up: ["●", "up"], dr: ["▼", "drain"], do: ["✕", "down"] };
const HEAD = `<div class="hw-row hw-rowhead"><span>Instance</span><span>GPU</span><span class="hw-n">Queued</span>
  <span class="hw-n">Running</span><span>KV cache</span><span class="hw-n">Power/limit</span><span>State</span></div>`;
const ROW = `<span class="hw-id"><i class="hw-swatch"></i><b></b></span><span></span>
  <span class="hw-n"></span><span class="hw-n"></span>
  <span class="hw-kv"><i class="hw-bar"><i class="hw-cached"></i><i class="hw-used"></i></i><em></em></span>
  <span class="hw-n"></span><span class="hw-state"></span>`;

export class Strip {
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
    const last = (column) => feed.instances[column][i][feed.instances[column][i].length - 1];
    const [id, gpu, queued, running, kv, power, state] = row.children;
    row.dataset.testid = `instance-${fixed.name[i]}`;
    row.dataset.state = feed.now.states[i];
    row.title = `${fixed.name[i]}: ${fixed.model[i]} on ${fixed.gpu[i]}, ${fixed.simulated[i] === false ? "a real server" : "simulated"}, cost profile ${fixed.provenance[i]}, `
      + `power limit ${cap ? "set by a cap" : "of the GPU"}, KV capacity ${text(fixed.kv_capacity_tokens[i], "tokens")}, ${number(feed.now.cached[i])} % cached prefixes`;
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
    node.dataset.level = share >= limits.kv_red ? "red" : share >= limits.kv_amber ? "amber" : "";
    const [cachedBar, usedBar] = node.firstElementChild.children;
    usedBar.style.width = `${Math.min(100, share * 100)}%`;
    cachedBar.style.width = `${Math.min(100, share * 100 + cached)}%`;
    set(node.lastElementChild, used === null ? NOTHING : `${Math.round(share * 100)} %`);
  }
}

function set(node, value) {
  if (node.textContent !== value) node.textContent = value;
}
