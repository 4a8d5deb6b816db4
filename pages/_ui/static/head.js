// The head: title, live badge, alert, time range, and the six numbers that answer "are we fine?".

import { clock, duration, makeup, measure, NOTHING, number, quantity, text, zone } from "./format.js";
import { setTools, showTools, TOOLS } from "./tools.js";

const SAID = "calls"; // in the label already
const SPARK_POINTS = 120;
const SPARK_W = 84;
const SPARK_H = 26;

/** label, column, unit, line below (now, limits, watts, whether servers are real), breach (value, limits) -> "", "amber" or "red". */
const TILES = [
  ["P95 latency", "p95_s", "s", (n, l, w, real) => `P50 ${text(n.p50_s, "s")}, last ${number(n.window_s / 60)} min${real ? "" : " sim"}`, () => ""],
  ["SLO attainment", "slo_attainment", "%", (n, l) => `target ${text(l.attainment_amber, "%")}`, attainment],
  ["SLO debt", "slo_debt_s", "s", (n, l) => `limit ${text(l.debt_s, "s")}`, (v, l) => (v > l.debt_s ? "red" : v > 0.8 * l.debt_s ? "amber" : "")],
  ["Throughput", "throughput_wps", "wf/s", (n) => `${text(n.tokens_per_s, "tokens/s")} generated`, () => ""],
  ["Queued calls", "queued", "calls", (n) => `${number(n.running)} running, ${number(n.active_workflows)} workflows`, () => ""],
  ["Context per joule", "tokens_per_joule", "tokens/J", power, () => ""],
];

function attainment(value, limits) {
  if (value === null || value >= limits.attainment_amber) return "";
  return value < limits.attainment_red ? "red" : "amber";
}

function power(now, limits, watts) {
  return now.power_cap_w ? `${text(watts, "W")} of ${text(now.power_cap_w, "W")} cap` : `${text(watts, "W")} drawn, no cap`;
}

const SKELETON = `
  <div class="hw-title">
    <h1>Fleet</h1><span class="hw-name" data-testid="fleet-name"></span>
    <span class="hw-badge" data-testid="live-badge" role="status">connecting</span>
    <span class="hw-alert" data-testid="live-alert" role="alert"></span>
    <span class="hw-sim" data-testid="sim-time"></span>
    ${TOOLS}
  </div>
  <div class="hw-tiles">${TILES.map(([label, column]) => `
    <div class="hw-tile" data-testid="tile-${column}">
      <div class="hw-label">${label}</div>
      <div class="hw-figure"><b>${NOTHING}</b> <span></span></div>
      <svg viewBox="0 0 ${SPARK_W} ${SPARK_H}" preserveAspectRatio="none" aria-hidden="true"><path vector-effect="non-scaling-stroke"/></svg>
      <div class="hw-sub">&nbsp;</div>
    </div>`).join("")}
  </div>`;

export class Head {
  constructor(root) {
    root.innerHTML = SKELETON;
    this.root = root;
    this.tiles = [...root.querySelectorAll(".hw-tile")];
    this.part = (name) => root.querySelector(`.hw-${name}`);
  }

  /** Called once, when the feed takes this view. */
  attach(feed) {
    setTools(this.root, feed);
  }

  status(feed) {
    showTools(this.root, feed);
    const [kind, badge, alert] = health(feed);
    this.part("badge").dataset.kind = kind;
    setText(this.part("badge"), badge);
    setAlert(this.part("alert"), kind, alert);
  }

  render(feed) {
    const { now, static: fixed } = feed;
    setText(this.part("name"), `${fixed.fleet_name}, ${number(fixed.count)} instances, ${makeup(fixed)}`);
    this.part("name").title = fixed.gateway_url ? `Requests come in at ${fixed.gateway_url}/v1`
      : `Scenario ${fixed.scenario}, seed ${fixed.seed}: every instance is simulated.`;
    const paused = now.paused ? "paused" : `×${number(now.speed)}`;
    setText(this.part("sim"), `${clock(feed.at[feed.at.length - 1])} ${zone()}  ·  ${fixed.gateway_url ? `up ${duration(now.sim_s)}` : `sim ${duration(now.sim_s)} ${paused}`}`);
    TILES.forEach((tile, i) => this.tile(this.tiles[i], tile, feed));
    this.status(feed);
  }

  tile(node, [, column, unit, below, breach], feed) {
    const values = feed.fleet[column];
    const value = values[values.length - 1];
    const [figure, shown] = standing(value, unit);
    const limits = feed.static.limits;
    setText(node.querySelector("b"), figure);
    setText(node.querySelector(".hw-figure span"), figure === NOTHING || unit === SAID ? "" : shown);
    const watts = feed.fleet.power_w[feed.fleet.power_w.length - 1];
    setText(node.querySelector(".hw-sub"), below(feed.now, limits, watts, Boolean(feed.static.gateway_url)));
    node.dataset.breach = value === null ? "" : breach(value, limits);
    node.querySelector("path").setAttribute("d", spark(values.slice(-SPARK_POINTS)));
  }

  destroy() {
    this.root.replaceChildren();
  }
}

/** A figure of three digits, all as wide as any other, so that the unit behind it stands still: below 1 two decimals. */
function standing(value, unit) {
  if (unit === "s" && value >= 999.5) return value < 59970 ? [measure(value / 60), "min"] : [measure(value / 3600), "h"];
  const [figure, shown] = quantity(value, unit);
  if (unit === SAID || figure === NOTHING) return [figure, shown];
  return [Math.abs(Number(figure)) < 1 ? Number(figure).toFixed(2) : figure, shown];
}

/** [kind, badge, alert] from the age of the data and what the engine said last; `paused` says what stands still. */
export function health(feed, paused = "paused") {
  const age = feed.age();
  if (age === null) return feed.reachable ? ["wait", "connecting", ""] : ["red", "no answer", "The dashboard's server does not answer; trying again."];
  const limits = feed.static.limits;
  const old = age < 600 ? `${Math.floor(age)} s` : text(age, "s");
  if (feed.said.state === "compiling") return ["wait", "compiling", "The engine compiles its kernels; it goes on by itself."];
  if (feed.silence() >= limits.stale_s && feed.ageAtAnswer < limits.stale_s && feed.reachable) {
    return ["amber", `waiting ${old}`, "The dashboard's server is slow to answer. The last data is kept."];
  }
  if (!feed.reachable && age >= limits.stale_s) return ["red", `no answer ${old}`, "The dashboard's server does not answer. The last data is kept; trying again."];
  if (age >= limits.down_s) return ["red", `engine down ${old}`, restart(feed)];
  if (age >= limits.stale_s) return ["amber", `late ${old}`, ""];
  if (!feed.live) return ["still", `${paused}, ${feed.behind()} s behind`, ""];
  if (feed.said.state === "finished") return ["still", `finished ${old}`, ""];
  return feed.said.paused ? ["still", `engine paused ${old}`, ""] : ["live", `live ${old}`, ""];
}

/** What brings an engine back, in a line. */
function restart(feed) {
  const { db } = feed.static;
  return `headway up starts it again by itself; an engine of your own: headway engine${db ? ` --db ${db}` : ""}`;
}

/** Show the alert of `health`; one that does not fit is read by pointing at it. */
export function setAlert(node, kind, alert) {
  setText(node, alert);
  node.title = alert;
  node.dataset.kind = kind;
}

/** SVG path of a sparkline; holes in the data are holes in the line. */
function spark(values) {
  const known = values.filter((v) => v !== null);
  if (known.length < 2) return "";
  const low = Math.min(...known);
  const span = Math.max(...known) - low || 1;
  let pen = "M";
  return values.map((v, i) => {
    if (v === null) { pen = "M"; return ""; }
    const x = (i / (values.length - 1)) * SPARK_W;
    const y = SPARK_H - 2 - ((v - low) / span) * (SPARK_H - 4);
    const step = `${pen}${x.toFixed(1)} ${y.toFixed(1)}`;
    pen = "L";
    return step;
  }).join("");
}

export function setText(node, value) {
  if (node.textContent !== value) node.textContent = value;
}
