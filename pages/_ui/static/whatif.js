// The lines of a fork: the past, then each setting's next minutes. Every line is here, so another setting is drawn
// without asking anybody; the server learns of it once the viewer lets go.

import { compact, text } from "./format.js";
import { spread } from "./marks.js";
import { plotly } from "./plotly.js";
import { faded, themeOf } from "./theme.js";

const CONFIG = { displayModeBar: false, showTips: false, responsive: false };
const HEIGHTS = [296, 148]; // px: the first chart, the small ones
const WATCH_MS = 1000;
const AS_IT_IS = 0;
const SKELETON = `
  <div class="hw-pick"><label for="hw-setting">Setting</label><div class="hw-slide"><input id="hw-setting" type="range" min="0" step="1"><div class="hw-ends"><span></span><span></span></div></div>
    <select aria-label="Setting"></select><p class="hw-said" role="status"></p></div>
  <div class="hw-lines" role="img"></div>
  <p class="hw-legend"><i class="hw-l-past"></i>so far<i class="hw-l-picked"></i>selected, band 80 %<i class="hw-l-same"></i>as it is, band 80 %<i class="hw-l-other"></i>other settings</p>`;

const views = new Map(); // element -> View

setInterval(watch, WATCH_MS);
document.addEventListener("click", clickedRow);

/** Called on every run of the page, and whenever more settings are done, with the same element. */
export async function mount({ parentElement, data, setStateValue }) {
  const root = parentElement.querySelector(".hw-whatif");
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

  /** A slider over α where that is what differs, else a box. */
  offer() {
    const { settings } = this.data;
    const swept = settings.filter((s) => s.alpha !== null && s.index !== AS_IT_IS).sort((a, b) => a.alpha - b.alpha);
    const slides = swept.length > 2 && swept.length >= settings.length - 1;
    this.onSlider = swept.map((s) => s.index);
    this.slider.parentElement.hidden = !slides;
    this.slider.max = String(Math.max(0, swept.length - 1));
    this.slider.setAttribute("aria-label", "α");
    const ends = this.root.querySelectorAll(".hw-ends span");
    [swept[0], swept[swept.length - 1]].forEach((s, i) => { ends[i].textContent = s?.name ?? ""; });
    this.root.querySelector(".hw-pick").dataset.slides = String(slides);
    this.select.replaceChildren(...settings.map((s) => new Option(s.name, String(s.index))));
  }

  pick(index) {
    if (index === undefined || index === this.selected) return;
    this.picked = index;
    this.waiting ??= requestAnimationFrame(() => { this.waiting = null; this.draw(); this.mark(); });
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

  draw() {
    const box = this.root.querySelector(".hw-lines");
    const { charts, settings } = this.data;
    if (box.childElementCount !== charts.length) {
      box.innerHTML = charts.map((_, i) => `<figure class="${i ? "hw-small" : "hw-large"}"><figcaption></figcaption><div></div></figure>`).join("");
    }
    const found = settings.find((s) => s.index === this.selected);
    const theme = themeOf(this.root);
    [this.theme, this.width] = [theme.id, this.root.clientWidth];
    this.select.value = String(this.selected);
    const place = this.onSlider.indexOf(this.selected);
    if (place >= 0) this.slider.value = String(place);
    this.slider.setAttribute("aria-valuetext", found?.name ?? "");
    this.root.querySelector(".hw-said").textContent = found ? `${found.name}: ${found.words}` : "The first setting is being computed.";
    box.setAttribute("aria-label", found ? `${found.name}: ${found.words}` : "No setting yet");
    charts.forEach((chart, i) => this.chart(chart, box.children[i], i ? 1 : 0, theme));
  }

  chart(chart, figure, size, theme) {
    const [caption, node] = figure.children;
    const unit = chart.unit === "calls" ? "" : `, ${chart.unit}`;
    caption.textContent = `${chart.title}${unit}${size ? "" : ", of what ended in the last minutes"}`;
    if (!node.clientWidth) return;
    const names = new Map(this.data.settings.map((s) => [s.index, s.name]));
    const layout = axes(chart, theme, node.clientWidth, HEIGHTS[size], this.data.now);
    layout.annotations.push(...ends(chart, this.selected, names, theme, HEIGHTS[size], layout.margin, size));
    window.Plotly.react(node, traces(chart, this.selected, names, theme), layout, CONFIG);
  }
}

function traces(chart, selected, names, theme) {
  const same = chart.lines[String(AS_IT_IS)];
  const mine = chart.lines[String(selected)];
  const drawn = [others(chart, selected, theme)];
  if (same && selected !== AS_IT_IS) drawn.push(...band(chart, same, faded(theme.muted, 0.14)));
  if (mine) drawn.push(...band(chart, mine, faded(theme.pale, 0.24)));
  drawn.push(line(chart.past.x, chart.past.y, theme.text, 1.5, "so far", chart));
  if (same && selected !== AS_IT_IS) drawn.push({ ...line(chart.x, same.mean, theme.muted, 1.5, "as it is", chart), line: { color: theme.muted, width: 1.5, dash: "dash" } });
  if (mine) drawn.push(line(chart.x, mine.mean, theme.pale, 2.2, names.get(selected) ?? "", chart));
  return drawn;
}

/** All other settings as one trace with holes between: forty lines cost as much as one. */
function others(chart, selected, theme) {
  const [x, y] = [[], []];
  for (const [index, { mean }] of Object.entries(chart.lines)) {
    if ([selected, AS_IT_IS].includes(Number(index))) continue;
    x.push(...chart.x.slice(0, mean.length), null);
    y.push(...mean, null);
  }
  return { type: "scatter", mode: "lines", x, y, line: { color: faded(theme.muted, 0.42), width: 1 }, hoverinfo: "skip" };
}

function band(chart, { low, high }, colour) {
  const edge = { type: "scatter", mode: "lines", x: chart.x, line: { width: 0 }, hoverinfo: "skip" };
  return [{ ...edge, y: low }, { ...edge, y: high, fill: "tonexty", fillcolor: colour }];
}

function line(x, y, color, width, name, chart) {
  const told = y.map((v) => text(v, chart.unit));
  return { type: "scatter", mode: "lines", x, y, name, text: told, line: { color, width }, hovertemplate: `${name}: %{text}<extra></extra>` };
}

function axes(chart, theme, width, height, now) {
  const narrow = width < 420;
  const past = chart.past.x[0] ?? 0;
  const last = chart.x[chart.x.length - 1] ?? 1;
  const axis = { gridcolor: theme.grid, linecolor: theme.grid, zeroline: false, fixedrange: true, tickfont: { size: 11, color: theme.muted } };
  const ticks = [0, 1, 2, 3, 4].map((k) => (chart.top / 4.24) * k);
  const limit = chart.limit ? [mark({ x0: 0, x1: 1, xref: "paper", y0: chart.limit, y1: chart.limit, yref: "y" }, theme.red, "dash")] : [];
  return {
    width, height, margin: { l: 44, r: narrow ? 12 : 104, t: 16, b: 30 }, showlegend: false, hovermode: "x", hoverdistance: 30, dragmode: false,
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { family: theme.font, size: 11, color: theme.text },
    hoverlabel: { bgcolor: theme.background, bordercolor: theme.grid, font: { family: theme.font, size: 11, color: theme.text }, align: "left" },
    xaxis: { ...axis, range: [past, last], showgrid: false, showline: true, nticks: narrow ? 5 : 9, ticks: "outside", ticklen: 3, tickcolor: theme.grid, ticksuffix: " min", hoverformat: ".1f" },
    yaxis: { ...axis, range: [0, chart.top], tickvals: ticks, ticktext: ticks.map(compact) },
    shapes: [mark({ x0: 0, x1: 0, xref: "x", y0: 0, y1: 1, yref: "paper" }, theme.text, "dot"), ...limit],
    annotations: [{ x: 0, y: 1, xref: "x", yref: "paper", yanchor: "bottom", xanchor: past ? "center" : "left", text: now, showarrow: false, font: { size: 11, color: theme.text } }],
  };
}

function mark(where, color, dash) {
  return { type: "line", ...where, line: { color, width: 1, dash } };
}

/** Names and last values of the selected line and of "as it is" at the right edge, never one over the other. */
function ends(chart, selected, names, theme, height, margin, size) {
  if (margin.r < 50) return [];
  const inner = height - margin.t - margin.b;
  const shown = [[selected, theme.pale], ...(selected === AS_IT_IS ? [] : [[AS_IT_IS, theme.muted]])];
  const entries = shown.flatMap(([index, colour]) => {
    const values = chart.lines[String(index)]?.mean.filter((v) => v !== null) ?? [];
    if (!values.length) return [];
    const value = values[values.length - 1];
    const name = size ? "" : `${cut(names.get(index) ?? "")} `;
    return [{ y: inner * (1 - Math.min(1, value / chart.top)), text: `${name}${text(value, chart.unit)}`, colour }];
  });
  return spread(entries, inner).map((e) => ({
    xref: "paper", yref: "paper", x: 1, y: 1 - e.y / inner, xanchor: "left", yanchor: "middle", xshift: 4, showarrow: false, text: e.text,
    font: { size: 11, color: e.colour },
  }));
}

const cut = (name) => (name.length > 10 ? `${name.slice(0, 9)}…` : name);

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
      root.querySelectorAll("figure > div").forEach((node) => window.Plotly?.purge(node));
      views.delete(root);
    } else if (view.data && root.clientWidth && (themeOf(root).id !== view.theme || root.clientWidth !== view.width)) view.draw();
  }
}
