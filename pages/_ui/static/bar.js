// The bar of every page but Fleet: title, question, live badge and alert, simulated time; over live charts also the
// time range and the pause.

import { clock, duration, makeup, number, zone } from "./format.js";
import { health, setAlert, setText } from "./head.js";
import { HELP, setTools, showTools, TOOLS } from "./tools.js";

// Pages, and the key of their query.
const LINKS = [
  ["workflows", "workflow"], ["tuning", "run"], ["conversations", "conversation"], ["whatif", "fork"],
  ["decisions", "decision"], ["decisions", "run"],
];

const skeleton = (tools) => `
  <div class="hw-title">
    <h1></h1><span class="hw-name"></span>
    <span class="hw-badge" data-testid="live-badge" role="status">connecting</span>
    <span class="hw-alert" data-testid="live-alert" role="alert"></span>
    <span class="hw-sim" data-testid="sim-time"></span>
    ${tools}
  </div>`;

export class Bar {
  constructor(root, data, trigger) {
    root.innerHTML = skeleton(data.ranged ? TOOLS : HELP);
    this.root = root;
    this.ranged = data.ranged;
    this.part = (name) => root.querySelector(`.hw-${name}`);
    root.querySelector("h1").textContent = data.title;
    this.part("name").textContent = data.question;
    this.follow = (event) => follow(event, trigger);
    document.addEventListener("click", this.follow);
  }

  /** Tables are not paused: a pause of the charts ends on a page without any. */
  attach(feed) {
    setTools(this.root, feed);
    if (!this.ranged) feed.setLive(true);
  }

  status(feed) {
    showTools(this.root, feed);
    const [kind, badge, alert] = health(feed, "charts paused");
    this.part("badge").dataset.kind = kind;
    setText(this.part("badge"), badge);
    setAlert(this.part("alert"), kind, alert);
  }

  render(feed) {
    const { now, static: fixed } = feed;
    const pace = now.paused ? "paused" : `×${number(now.speed)}`;
    const when = `${clock(feed.at[feed.at.length - 1])} ${zone()}`;
    const time = fixed.gateway_url ? `up ${duration(now.sim_s)}` : `sim ${duration(now.sim_s)} ${pace}`;
    setText(this.part("sim"), `${fixed.fleet_name}, ${makeup(fixed)}  ·  ${when}  ·  ${time}`);
    this.status(feed);
  }

  destroy() {
    document.removeEventListener("click", this.follow);
    this.root.replaceChildren();
  }
}

/** A plain click on the link of a workflow, run or page opens it in this session; with a modifier the browser follows it. */
function follow(event, trigger) {
  if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const page = event.target.closest?.(".note a:not([href*='?'])");
  const entry = page && document.querySelector(`.st-key-phone-nav a[href$="${CSS.escape(page.getAttribute("href"))}"]`);
  if (entry) {
    event.preventDefault();
    entry.click();
    return;
  }
  const link = event.target.closest?.(LINKS.map(([page, key]) => `a[href^="${page}?${key}="]`).join());
  if (!link) return;
  event.preventDefault();
  const asked = new URL(link.href).searchParams;
  const key = LINKS.map(([, name]) => name).find((name) => asked.has(name));
  trigger(key, Number(asked.get(key)));
}
