// The lines of a fork: the past, then each setting's next minutes. Every line is here, so another setting is drawn
// without asking anybody; the server learns of it once the viewer lets go. Plotly draws what stays while the slider
// moves; the picked line lies over it as a plain path, which costs next to nothing.

import { compact, text } from "./format.js";
import { spread } from "./marks.js";
import { plotly } from "./plotly.js";
import { axisStep } from "./series.js";
import { faded, themeOf } from "./theme.js";

const CONFIG = { displayModeBar: false, showTips: false, responsive: false };
const HEIGHTS = [296, 148]; // px: the first chart, the small ones
const WATCH_MS = 1000;
const SETTLED_MS = 250; // without another pick: what the pointer reads follows
const AS_IT_IS = 0;
const SKELETON = `
  <div class="hw-pick"><label for="hw-setting">Setting</label><div class="hw-slide"><input id="hw-setting" type="range" min="0" step="1" aria-label="α"><div class="hw-ends"><span></span><span></span></div></div>
    <select aria-label="Setting"></select><p class="hw-said" role="status"></p></div>
  <div class="hw-lines" role="img"></div>
  <p class="hw-legend"><i class="hw-l-past"></i>so far<i class="hw-l-picked"></i>selected, band 80 %<i class="hw-l-same"></i>as it is, band 80 %<i class="hw-l-other"></i>other settings</p>`;
const CHART = `<figcaption></figcaption><div class="hw-under"></div><svg class="hw-over" aria-hidden="true"><path class="hw-o-band"/><path class="hw-o-line"/><g></g></svg>`;

const views = new Map(); // element -> View

setInterval(watch, WATCH_MS);
document.addEventListener("click", clickedRow);

/** Called on every run of the page, and whenever more settings are done, with the same element. */
export async function mount({ parentElement, data, setStateValue }) {
  const root = parentElement.querySelector(".hw-whatif");
  if (data.run === null) return void plotly(); // before the first fork: loaded once it is needed
  if (!views.has(root)) views.set(root, new View(root));
  const view = views.get(root);
  view.tell = setStateValue;
  await plotly();
  view.take(data);
}

class View {
  constructor(root) {
    root.innerHTML = SKELETON;
    this.root = root;
    this.slider = root.querySelector("input");
    this.select = root.querySelector("select");
    this.slider.addEventListener("input", () => this.pick(this.onSlider[Number(this.slider.value)]));
    this.slider.addEventListener("change", () => this.report());
    this.slider.addEventListener("click", () => this.atThumb());
    this.select.addEventListener("change", () => { this.pick(Number(this.select.value)); this.report(); });
    this.text = "";
    this.picked = null; // index the viewer picked, null: the server's choice
  }

  take(data) {
    const fresh = JSON.stringify(data);
    if (fresh !== this.text) {
      if (data.run !== this.data?.run) this.picked = null;
      this.text = fresh;
      this.data = data;
      this.offer();
      this.draw();
    }
    this.mark();
  }

  get selected() {
    const wanted = this.picked ?? this.data.selected;
    return this.data.settings.some((s) => s.index === wanted) ? wanted : this.data.settings[0]?.index ?? AS_IT_IS;
  }

  /** A slider over α where that is all that differs, else a box. */
  offer() {
    const { settings, sweep } = this.data;
    const swept = settings.filter((s) => s.alpha !== null && s.index !== AS_IT_IS).sort((a, b) => a.alpha - b.alpha);
    this.onSlider = swept.map((s) => s.index);
    this.inForce = nearest(swept, this.data.alpha);
    this.slider.max = String(Math.max(0, swept.length - 1));
    this.slider.disabled = swept.length < 2;
    const ends = this.root.querySelectorAll(".hw-ends span");
    [swept[0], swept[swept.length - 1]].forEach((s, i) => { ends[i].textContent = s?.name ?? " "; });
    this.root.querySelector(".hw-pick").dataset.slides = String(sweep);
    this.select.replaceChildren(...settings.map((s) => new Option(s.name, String(s.index))));
  }

  /** Only the paths move at once; what the pointer reads follows when the viewer rests. */
  pick(index) {
    if (index === undefined || index === this.selected) return;
    this.picked = index;
    this.say();
    this.overlay();
    this.mark();
    clearTimeout(this.settling);
    this.settling = setTimeout(() => this.draw(), SETTLED_MS);
  }

  /** A click on a thumb that stands at the value in force picks the setting there: nothing moved, so nothing else tells. */
  atThumb() {
    if (this.onSlider.includes(this.selected)) return;
    this.pick(this.onSlider[Number(this.slider.value)]);
    this.report();
  }

  report() {
    this.tell?.("picked", [this.data.run, this.selected]);
  }

  /** Show which row of the table is selected; the table is drawn anew now and then. */
  mark() {
    document.querySelectorAll(".tbl-settings tbody tr").forEach((row, k) => {
      row.classList.toggle("picked", this.data.rows[k] === this.selected);
    });
  }

  say() {
    const found = this.data.settings.find((s) => s.index === this.selected);
    const said = found ? `${found.name}: ${found.words}` : "The first setting is being computed.";
    this.select.value = String(this.selected);
    const place = this.onSlider.indexOf(this.selected);
    this.slider.value = String(place >= 0 ? place : this.inForce);
    this.slider.setAttribute("aria-valuetext", found?.name ?? "");
    this.root.querySelector(".hw-said").textContent = said;
    this.root.querySelector(".hw-lines").setAttribute("aria-label", said);
  }

  draw() {
    const box = this.root.querySelector(".hw-lines");
    const { charts } = this.data;
    if (box.childElementCount !== charts.length) {
      box.innerHTML = charts.map((_, i) => `<figure class="${i ? "hw-small" : "hw-large"}">${CHART}</figure>`).join("");
    }
    this.colours = themeOf(this.root);
    [this.theme, this.width] = [this.colours.id, this.root.clientWidth];
    this.say();
    this.under(charts[0], box.children[0], 0);
    this.overlay(); // the large curve is there; the small charts' axes follow in the next frame
    cancelAnimationFrame(this.rest);
    this.rest = requestAnimationFrame(() => charts.slice(1).forEach((chart, i) => this.under(chart, box.children[i + 1], 1)));
  }

  under(chart, figure, size) {
    const [caption, node] = figure.children;
    const unit = chart.unit === "calls" ? "" : `, ${chart.unit}`;
    caption.textContent = `${chart.title}${unit}${size ? "" : ", of what ended in the last minutes"}`;
    if (!node.clientWidth) return;
    const plot = frame(chart, node.clientWidth, HEIGHTS[size]);
    const name = this.data.settings.find((s) => s.index === this.selected)?.name ?? "";
    window.Plotly.react(node, traces(chart, this.selected, name, this.colours), axes(chart, plot, this.colours, this.data.now), CONFIG);
  }

  /** Band, line and names of the picked setting, over what Plotly drew. */
  overlay() {
    const { charts, settings } = this.data;
    const names = new Map(settings.map((s) => [s.index, s.name]));
    charts.forEach((chart, i) => {
      const figure = this.root.querySelector(".hw-lines").children[i];
      const [, node, svg] = figure.children;
      if (!node.clientWidth) return;
      const plot = frame(chart, node.clientWidth, HEIGHTS[i ? 1 : 0]);
      const [area, path, labels] = svg.children;
      const line = chart.lines[String(this.selected)];
      area.setAttribute("d", line ? band(chart.x, line, plot) : "");
      path.setAttribute("d", line ? stroke(chart.x, line.mean, plot) : "");
      labels.replaceChildren(...ends(chart, this.selected, names, plot, i > 0));
    });
  }
}

/** Place of the setting whose α is nearest to the one in force; 0 where none is. */
function nearest(swept, alpha) {
  const away = swept.map((s) => Math.abs(s.alpha - alpha));
  return alpha === null ? 0 : Math.max(0, away.indexOf(Math.min(...away)));
}

/** Where a chart's values lie in px: size, margins, ends of both axes. */
function frame(chart, width, height) {
  const margin = { l: 44, r: width < 420 ? 12 : 104, t: 16, b: 30 };
  const [from, to] = [chart.past.x[0] ?? 0, chart.x[chart.x.length - 1] ?? 1];
  const top = 4 * axisStep(chart.high, chart.unit === "calls");
  const x = (v) => margin.l + ((v - from) / (to - from)) * (width - margin.l - margin.r);
  const y = (v) => margin.t + (1 - Math.min(1, Math.max(0, v / top))) * (height - margin.t - margin.b);
  return { width, height, margin, from, to, top, x, y };
}

const point = (x, y, plot) => `${plot.x(x).toFixed(1)},${plot.y(y).toFixed(1)}`;

/** A line as a path; a hole in the values is a hole in the line. */
function stroke(x, values, plot) {
  let path = "";
  let pen = "M";
  values.forEach((v, k) => {
    if (v === null) pen = "M";
    else [path, pen] = [`${path}${pen}${point(x[k], v, plot)}`, "L"];
  });
  return path;
}

function band(x, { low, high }, plot) {
  const there = x.map((_, k) => k).filter((k) => low[k] !== null && high[k] !== null && k < low.length);
  if (there.length < 2) return "";
  const up = there.map((k) => point(x[k], high[k], plot));
  const back = there.reverse().map((k) => point(x[k], low[k], plot));
  return `M${[...up, ...back].join("L")}Z`;
}

/** Names and last values of the picked line and of "as it is" at the right edge, never one over the other. */
function ends(chart, selected, names, plot, small) {
  if (plot.margin.r < 50) return [];
  const entries = [...new Set([selected, AS_IT_IS])].flatMap((index) => {
    const values = chart.lines[String(index)]?.mean.filter((v) => v !== null) ?? [];
    if (!values.length) return [];
    const value = values[values.length - 1];
    const name = small ? "" : `${cut(names.get(index) ?? "")} `;
    return [{ y: plot.y(value) - plot.margin.t, text: `${name}${text(value, chart.unit)}`, kind: index === selected ? "mine" : "same" }];
  });
  return spread(entries, plot.height - plot.margin.t - plot.margin.b).map((e) => {
    const label = document.createElementNS("http://www.w3.org/2000/svg", "text");
    label.setAttribute("x", String(plot.width - plot.margin.r + 5));
    label.setAttribute("y", (e.y + plot.margin.t + 4).toFixed(1));
    label.setAttribute("class", `hw-o-${e.kind}`);
    label.textContent = e.text;
    return label;
  });
}

const cut = (name) => (name.length > 10 ? `${name.slice(0, 9)}…` : name);

/** What Plotly draws: all settings thin, "as it is" with its band, the past; the picked one only for the pointer. */
function traces(chart, selected, name, theme) {
  const [same, mine] = [AS_IT_IS, selected].map((index) => chart.lines[String(index)]);
  const drawn = [all(chart, theme)];
  if (same) drawn.push(...filled(chart, same, faded(theme.muted, 0.14)));
  drawn.push(line(chart.past.x, chart.past.y, "so far", chart, { color: theme.text, width: 1.5 }));
  if (chart.since?.x.length) drawn.push(line(chart.since.x, chart.since.y, "what came", chart, { color: theme.text, width: 1.5 }));
  if (same) drawn.push(line(chart.x, same.mean, "as it is", chart, { color: theme.muted, width: 1.5, dash: "dash" }));
  if (mine && selected !== AS_IT_IS) drawn.push(line(chart.x, mine.mean, name, chart, { color: theme.blue, width: 2 }));
  return drawn;
}

/** All settings as one trace with holes between: forty lines cost as much as one. */
function all(chart, theme) {
  const [x, y] = [[], []];
  for (const [index, { mean }] of Object.entries(chart.lines)) {
    if (Number(index) === AS_IT_IS) continue;
    x.push(...chart.x.slice(0, mean.length), null);
    y.push(...mean, null);
  }
  return { type: "scatter", mode: "lines", x, y, line: { color: faded(theme.muted, 0.42), width: 1 }, hoverinfo: "skip" };
}

function filled(chart, { low, high }, colour) {
  const edge = { type: "scatter", mode: "lines", x: chart.x, line: { width: 0 }, hoverinfo: "skip" };
  return [{ ...edge, y: low }, { ...edge, y: high, fill: "tonexty", fillcolor: colour }];
}

function line(x, y, name, chart, look) {
  const told = y.map((v) => text(v, chart.unit));
  return { type: "scatter", mode: "lines", x, y, name, text: told, line: look, hovertemplate: `${name}: %{text}<extra></extra>` };
}

function axes(chart, plot, theme, now) {
  const axis = { gridcolor: theme.grid, linecolor: theme.grid, zeroline: false, fixedrange: true, tickfont: { size: 11, color: theme.muted } };
  const ticks = [0, 1, 2, 3, 4].map((k) => (plot.top / 4) * k);
  const limit = chart.limit ? [mark({ x0: 0, x1: 1, xref: "paper", y0: chart.limit, y1: chart.limit, yref: "y" }, theme.red, "dash")] : [];
  return {
    width: plot.width, height: plot.height, margin: plot.margin, showlegend: false, hovermode: "x", hoverdistance: 30, dragmode: false,
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { family: theme.font, size: 11, color: theme.text },
    hoverlabel: { bgcolor: theme.background, bordercolor: theme.grid, font: { family: theme.font, size: 11, color: theme.text }, align: "left" },
    xaxis: { ...axis, range: [plot.from, plot.to], showgrid: false, showline: true, nticks: plot.width < 420 ? 5 : 9, ticks: "outside", ticklen: 3, tickcolor: theme.grid, ticksuffix: " min", hoverformat: ".1f" },
    yaxis: { ...axis, range: [0, plot.top], tickvals: ticks, ticktext: ticks.map(compact) },
    shapes: [mark({ x0: 0, x1: 0, xref: "x", y0: 0, y1: 1, yref: "paper" }, theme.text, "dot"), ...limit],
    annotations: [{ x: 0, y: 1, xref: "x", yref: "paper", yanchor: "bottom", xanchor: plot.from ? "center" : "left", text: now, showarrow: false, font: { size: 11, color: theme.text } }],
  };
}

function mark(where, color, dash) {
  return { type: "line", ...where, line: { color, width: 1, dash } };
}

function clickedRow(event) {
  const row = event.target.closest?.(".tbl-settings tbody tr");
  if (!row || event.target.closest("a")) return;
  for (const view of views.values()) {
    const index = view.data?.rows[[...row.parentElement.children].indexOf(row)];
    if (!view.root.isConnected || !view.data.settings.some((s) => s.index === index)) continue;
    view.pick(index);
    view.report();
  }
}

function watch() {
  for (const [root, view] of views) {
    if (!root.isConnected) {
      clearTimeout(view.settling);
      root.querySelectorAll(".hw-under").forEach((node) => window.Plotly?.purge(node));
      views.delete(root);
    } else if (view.data && root.clientWidth && (themeOf(root).id !== view.theme || root.clientWidth !== view.width)) view.draw();
  }
}
