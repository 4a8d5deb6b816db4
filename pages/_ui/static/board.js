// The board: the instance strip and the four charts with one crosshair through all of them.

import { Charts } from "./charts.js";
import { Crosshair } from "./crosshair.js";
import { plotly } from "./plotly.js";
import { csv, isoTime } from "./csv.js";
import { BUTTON, offer } from "./export.js";
import { makeup } from "./format.js";
import { setText } from "./head.js";
import { pngOfPlot } from "./picture.js";
import { chartTable, CHARTS, WATTS } from "./series.js";
import { Strip, stripTable } from "./strip.js";
import { gpuColours, themeOf } from "./theme.js";

const STRIP = `
  <section class="hw-panel hw-strip" data-testid="instances"><h2>Instances <small></small>${BUTTON}</h2><div></div></section>`;
const skeleton = (list) => `
  <div class="hw-charts" data-count="${list.length}">${list.map((c) => `
    <section class="hw-panel" data-testid="chart-${c.key}"><h2>${c.title} <small></small><span class="hw-readout"></span>${BUTTON}</h2>
      <div class="hw-plot"><div class="hw-node" role="img" aria-label="${c.title}"></div><i class="hw-cross"></i><div class="hw-tip"></div></div>
    </section>`).join("")}
  </div>
  <button type="button" class="hw-reset" data-testid="zoom-reset" hidden>Zoomed: back to live</button>`;

export class Board {
  constructor(root, data) {
    this.list = data.part === "watts" ? WATTS : CHARTS;
    const withStrip = this.list === CHARTS;
    root.innerHTML = (withStrip ? STRIP : "") + skeleton(this.list);
    this.root = root;
    this.strip = withStrip ? new Strip(root.querySelector(".hw-strip > div")) : null;
    this.nodes = [...root.querySelectorAll(".hw-node")];
    this.subs = [...root.querySelectorAll(".hw-charts small")];
    const reset = root.querySelector(".hw-reset");
    this.charts = new Charts(this.nodes, this.list, (zoomed) => { reset.hidden = !zoomed; });
    this.crosshair = new Crosshair(root, this.charts, () => this.feed);
    reset.addEventListener("click", () => this.charts.reset());
    this.offers();
    this.resized = new ResizeObserver(() => this.resize());
    this.resized.observe(root);
  }

  /** What each panel exports: the chart as drawn, its data in sight, the strip as a table. */
  offers() {
    if (this.strip) offer(this.root.querySelector(".hw-strip"), { csv: () => csv(...stripTable(this.feed)) });
    this.nodes.forEach((node, c) => offer(node.closest(".hw-panel"), {
      csv: () => csv(...chartTable(this.feed, this.list[c], this.charts.seriesOf(this.list[c]), this.charts.range(this.feed), isoTime)),
      png: () => this.charts.drawn.then(() => pngOfPlot(node, `${this.list[c].title}, ${this.list[c].sub(this.feed)}`)),
    }));
  }

  render(feed, full) {
    this.feed = feed;
    const theme = themeOf(this.root);
    const [byType, colours] = gpuColours(feed.static.instances.gpu, theme);
    this.strip?.render(feed, colours);
    if (this.strip) setText(this.root.querySelector(".hw-strip h2 small"), `${makeup(feed.static)}; est. = cost profile estimated, not measured`);
    this.nodes.forEach((node, c) => node.setAttribute("aria-label", `${this.list[c].title}, ${this.list[c].sub(feed)}`));
    this.list.forEach((chart, c) => { if (this.subs[c].textContent !== chart.sub(feed)) this.subs[c].textContent = chart.sub(feed); });
    if (full || theme.id !== this.charts.theme?.id) this.charts.draw(feed, theme, byType);
    else this.charts.extend(feed);
    this.crosshair.follow();
    this.load();
  }

  /** Plotly once the first picture is seen: it keeps the browser busy for a second or two. */
  load() {
    if (this.pending) return;
    this.pending = true;
    const seen = new Promise((done) => { requestAnimationFrame(() => setTimeout(done, 0)); });
    seen.then(plotly).then((library) => this.root.isConnected && this.charts.upgrade(library)).catch(() => { this.pending = false; });
  }

  attach(feed) {
    this.feed = feed;
  }

  /** A theme switch shows within a second, also while the picture stands still; the end of a pause ends a zoom. */
  status(feed) {
    const resumed = this.held && feed.live;
    this.held = !feed.live;
    if (!this.charts.ready) return;
    if (resumed && this.charts.zoom) this.charts.reset();
    const theme = themeOf(this.root);
    if (theme.id !== this.charts.theme.id) this.render(feed, true);
  }

  resize() {
    if (this.charts.ready && this.nodes[0].clientWidth) this.charts.relayout();
  }

  destroy() {
    this.resized.disconnect();
    this.charts.destroy();
    this.root.replaceChildren();
  }
}
