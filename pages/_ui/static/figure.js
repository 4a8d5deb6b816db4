// A figure that the server drew: Plotly in the theme's colours, redrawn for new data, another theme or size.

import { plotly } from "./plotly.js";
import { faded, themeOf } from "./theme.js";

const CONFIG = { displayModeBar: false, showTips: false, responsive: false };
const WATCH_MS = 1000;
const shown = new Map(); // node -> { figure, theme, width }

setInterval(watch, WATCH_MS);

/** Called on every run of the page with the same element. */
export async function mount({ parentElement, data }) {
  const node = parentElement.querySelector(".hw-drawn");
  const text = JSON.stringify(data.figure);
  if (shown.get(node)?.text === text) return;
  shown.set(node, { figure: data.figure, text, theme: "", width: 0 });
  node.setAttribute("aria-label", data.label);
  const library = await plotly();
  draw(node, library);
}

function watch() {
  for (const [node, state] of shown) {
    if (!node.isConnected) {
      window.Plotly?.purge(node);
      shown.delete(node);
    } else if (window.Plotly && (themeOf(node).id !== state.theme || node.clientWidth !== state.width)) draw(node, window.Plotly);
  }
}

function draw(node, library) {
  const state = shown.get(node);
  if (!state || !node.clientWidth) return;
  const theme = themeOf(node);
  state.theme = theme.id;
  state.width = node.clientWidth;
  const { data, layout, height } = coloured(state.figure, theme);
  library.react(node, data, dressed(layout, theme, node.clientWidth, height), CONFIG);
}

/** The same figure with "@name" and "@name/opacity" replaced by colours. */
function coloured(value, theme) {
  if (Array.isArray(value)) return value.map((v) => coloured(v, theme));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, coloured(v, theme)]));
  }
  if (typeof value !== "string" || !value.startsWith("@")) return value;
  const [name, opacity] = value.slice(1).split("/");
  return opacity ? faded(theme[name], Number(opacity)) : theme[name];
}

/** Fonts, grids and ticks of the house around the figure's own layout. */
function dressed(layout, theme, width, height) {
  const axis = { gridcolor: theme.grid, linecolor: theme.grid, zeroline: false, fixedrange: true, automargin: false, tickfont: { size: 11, color: theme.muted } };
  const narrow = width < 520;
  const margin = { ...layout.margin, l: Math.min(layout.margin.l, narrow ? 138 : Infinity) };
  const titled = (own) => ({ ...axis, ...own, title: own.title && { ...own.title, standoff: 6, font: { size: 11, color: theme.muted } } });
  const annotations = (layout.annotations ?? []).map((a) => ({ ...a, font: { size: 11, color: theme.muted, ...a.font } }));
  return {
    ...layout, width, height, margin, annotations,
    paper_bgcolor: "transparent", plot_bgcolor: "transparent", dragmode: false, hovermode: "closest",
    font: { family: theme.font, size: 11, color: theme.text },
    hoverlabel: { bgcolor: theme.background, bordercolor: theme.grid, font: { family: theme.font, size: 11, color: theme.text }, align: "left" },
    xaxis: titled(layout.xaxis), yaxis: titled(layout.yaxis),
  };
}
