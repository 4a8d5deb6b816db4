// One crosshair through all charts: a line in each, the values in the chart under the pointer.

import { axisTime, clock, number, text } from "./format.js";
import { MARGIN } from "./axes.js";
import { valueAt } from "./series.js";

const SHOWN = 8;

export class Crosshair {
  constructor(root, charts, feed) {
    this.charts = charts;
    this.feed = feed;
    this.plots = [...root.querySelectorAll(".hw-plot")];
    this.plots.forEach((plot, i) => {
      plot.addEventListener("pointermove", (event) => this.move(event, i));
      plot.addEventListener("pointerleave", () => this.hide());
    });
    this.readouts = [...root.querySelectorAll(".hw-readout")];
  }

  /** New rows under a pointer that rests: the lines go on reading where it is. */
  follow() {
    if (this.last) this.move(...this.last);
  }

  move(event, under) {
    this.last = [{ clientX: event.clientX }, under];
    const box = this.plots[under].getBoundingClientRect();
    const length = box.width - MARGIN.l - MARGIN.r;
    const share = (event.clientX - box.left - MARGIN.l) / length;
    const feed = this.feed();
    if (share < 0 || share > 1 || !feed?.at.length) return this.hide();
    const [from, to] = this.charts.range(feed);
    const k = nearest(feed.at, from + share * (to - from));
    const at = (axisTime(feed.at[k]) - from) / (to - from);
    this.plots.forEach((plot, i) => this.show(plot, i, at, k, i === under, feed));
    return undefined;
  }

  show(plot, i, share, k, under, feed) {
    const x = MARGIN.l + share * (plot.clientWidth - MARGIN.l - MARGIN.r);
    const [line, tip] = [plot.querySelector(".hw-cross"), plot.querySelector(".hw-tip")];
    line.style.display = share >= 0 && share <= 1 ? "block" : "none";
    line.style.transform = `translateX(${x.toFixed(1)}px)`;
    const values = this.charts.seriesOf(this.charts.list[i]).map((s) => [s, valueAt(feed, this.charts.list[i], s, k)]).filter(([, v]) => v !== null);
    this.readouts[i].textContent = `${clock(feed.at[k])}  ${summary(this.charts.list[i], values)}`;
    tip.style.display = under ? "block" : "none";
    if (!under) return;
    tip.replaceChildren(...values.sort((a, b) => b[1] - a[1]).slice(0, SHOWN).map(([s, v]) => this.line(s, v)));
    tip.style.transform = share < 0.5 ? `translateX(${x + 8}px)` : `translateX(calc(${x - 8}px - 100%))`;
  }

  line(series, value) {
    const row = document.createElement("div");
    const swatch = document.createElement("i");
    swatch.className = "hw-swatch";
    swatch.style.background = this.charts.byType.get(series.gpu);
    const figure = document.createElement("b");
    figure.textContent = number(value);
    row.append(swatch, series.label, figure);
    return row;
  }

  hide() {
    this.last = null;
    this.plots.forEach((plot, i) => {
      plot.querySelector(".hw-cross").style.display = "none";
      plot.querySelector(".hw-tip").style.display = "none";
      this.readouts[i].textContent = "";
    });
  }
}

function summary(chart, values) {
  if (!values.length) return "no data";
  const figures = values.map(([, v]) => v);
  if (chart.stacked) return `total ${text(figures.reduce((a, b) => a + b, 0), chart.unit)}`;
  return `highest ${number(Math.max(...figures))} ${chart.unit}`;
}

/** Index of the row nearest to `ms` on the axis. */
export function nearest(at, ms) {
  let low = 0;
  let high = at.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (axisTime(at[middle]) < ms) low = middle;
    else high = middle;
  }
  return ms - axisTime(at[low]) < axisTime(at[high]) - ms ? low : high;
}
