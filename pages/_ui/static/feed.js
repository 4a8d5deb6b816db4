// One poller a page: asks /api/live once a second for what is new and keeps the window as columns.

const POLL_MS = 1000;
const TIMEOUT_MS = 4000;
const LONGEST_S = 1800;
export const WINDOWS = [60, 300, 900, LONGEST_S];

/** The latest data of the page. Views implement attach(feed), render(feed, full) and status(feed). */
export class Feed {
  constructor() {
    this.views = new Set();
    this.window = windowOfUrl();
    this.live = true; // false: the viewer paused the charts
    this.round = 0; // answers to what was asked before the viewer chose anew are dropped
    this.reachable = true;
    this.ageAtAnswer = 0;
    this.answeredAt = performance.now();
    this.reset();
    this.timer = null;
    this.busy = false;
    document.addEventListener("visibilitychange", () => document.hidden || this.poll());
  }

  reset() {
    this.seq = 0;
    this.key = "";
    this.at = [];
    this.fleet = {};
    this.instances = {};
    this.marks = [];
    this.static = null;
    this.now = null; // of the newest rows drawn
    this.said = null; // what the engine said last, drawn or not
    this.newest = null; // epoch s of the newest row there is
    this.heard = 0; // its seq, while paused
  }

  add(view) {
    this.views.add(view);
    view.attach(this);
    view.status(this);
    if (this.hasFleet()) view.render(this, true);
    if (this.timer !== null) return;
    this.timer = setInterval(() => this.tick(), POLL_MS);
    this.poll();
  }

  /** Let go of views that left the page; without any, rest. */
  prune() {
    for (const view of this.views) {
      if (view.root.isConnected) continue;
      this.views.delete(view);
      view.destroy();
    }
    if (this.views.size) return;
    clearInterval(this.timer);
    this.timer = null;
  }

  /** Whether there is something to draw; an engine that compiles has no instances yet. */
  hasFleet() {
    return this.static !== null && this.static.instances.name.length > 0;
  }

  /** Age of the newest data in s, as far as this browser knows; null before the first answer. */
  age() {
    return this.static ? this.ageAtAnswer + (performance.now() - this.answeredAt) / 1000 : null;
  }

  /** Time since the dashboard's server answered last, s. */
  silence() {
    return (performance.now() - this.answeredAt) / 1000;
  }

  tick() {
    this.prune();
    for (const view of this.views) view.status(this);
    if (!document.hidden) this.poll();
  }

  setWindow(seconds) {
    this.window = seconds;
    const url = new URL(location.href);
    url.searchParams.set("window", String(seconds));
    history.replaceState(history.state, "", url);
    this.askAnew();
  }

  /** Stand still, or catch up by one answer that holds the whole window. */
  setLive(live) {
    if (live === this.live || !this.hasFleet()) return;
    this.live = live;
    this.heard = this.seq;
    for (const view of this.views) view.status(this);
    if (live) this.askAnew();
  }

  askAnew() {
    this.round += 1;
    this.seq = this.heard = 0;
    this.busy = false;
    this.poll();
  }

  /** How far (s) the paused charts are behind the newest data. */
  behind() {
    return this.live ? 0 : Math.max(0, Math.round(this.newest - this.at[this.at.length - 1]));
  }

  /** Goes on while paused, so that the badge knows the engine's state and how far the charts are behind. */
  async poll() {
    if (this.busy) return;
    this.busy = true;
    const { round } = this;
    try {
      const [since, span] = this.live ? [this.seq, this.window] : [this.heard, Math.min(LONGEST_S, this.window + this.behind())];
      const url = new URL(`api/live?since=${since}&window=${span}`, document.baseURI);
      const answer = await fetch(url, { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) });
      const body = answer.ok ? await answer.json() : null;
      if (round !== this.round) return;
      this.reachable = answer.ok;
      if (body?.seq) this.take(body, Number(answer.headers.get("X-Data-Age")));
    } catch {
      if (round !== this.round) return;
      this.reachable = false;
    }
    this.busy = false;
    for (const view of this.views) view.status(this);
  }

  take(body, age) {
    this.ageAtAnswer = age;
    this.answeredAt = performance.now();
    this.said = body.now;
    this.newest = body.rows.at[body.rows.at.length - 1] ?? this.newest;
    if (!this.live) {
      this.heard = body.seq;
      if (body.full && body.key === this.key) this.refill(body);
      return;
    }
    if (!body.full && body.key !== this.key) {
      this.seq = 0; // another fleet: ask for everything
      return;
    }
    const added = body.rows.at.length;
    if (body.full) this.fill(body);
    else if (added) this.append(body);
    this.seq = body.seq;
    this.now = body.now;
    if (this.live && this.hasFleet() && (body.full || added)) for (const view of this.views) view.render(this, body.full);
  }

  /** Another time range while paused: the charts still end where they stand. */
  refill(body) {
    const end = this.at[this.at.length - 1];
    this.fill(body);
    const later = this.at.findIndex((t) => t > end);
    if (later > 0) for (const column of this.columns()) column.splice(later);
    for (const view of this.views) view.render(this, true);
  }

  columns() {
    return [this.at, ...Object.values(this.fleet), ...Object.values(this.instances).flat()];
  }

  fill(body) {
    this.key = body.key;
    this.static = body.static;
    this.at = body.rows.at;
    this.fleet = body.rows.fleet;
    this.instances = body.rows.instances;
    this.marks = body.marks;
  }

  append(body) {
    this.at.push(...body.rows.at);
    for (const [name, column] of Object.entries(body.rows.fleet)) this.fleet[name].push(...column);
    for (const [name, columns] of Object.entries(body.rows.instances)) {
      columns.forEach((column, i) => this.instances[name][i].push(...column));
    }
    const known = new Set(this.marks.map((m) => m[0]));
    this.marks.push(...body.marks.filter((m) => !known.has(m[0])));
    this.trim();
  }

  /** Drop what left the window; in blocks, so that arrays are not shifted every second. */
  trim() {
    const start = this.at[this.at.length - 1] - this.window;
    const old = this.at.findIndex((t) => t >= start);
    if (old < 60) return;
    for (const column of this.columns()) column.splice(0, old);
    this.marks = this.marks.filter((m) => m[1] >= start);
  }
}

function windowOfUrl() {
  const asked = Number(new URL(location.href).searchParams.get("window"));
  return WINDOWS.includes(asked) ? asked : 300;
}
