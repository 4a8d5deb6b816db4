// Export: every table a CSV, every chart a PNG and its data as CSV, named headway-<page>-<panel>-<time>.

import { ofBars, ofPlot, ofTable } from "./csv.js";
import { show } from "./dialog.js";
import { pngOfPlot } from "./picture.js";

export const BUTTON = '<button type="button" class="hw-export" aria-label="Export this panel" title="Export; key e for the whole page"></button>';
const PANELS = '.hw-panel, [class*="st-key-panel-"], .hw-whatif';
const offers = new WeakMap(); // panel -> { csv, png } of a live chart, which knows its data better than the DOM does

/** What a live panel offers: functions of no argument, `csv` gives text, `png` a promise of a data URL. */
export function offer(panel, what) {
  offers.set(panel, what);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.(".hw-export");
  if (button) choose(partsOf(button.closest(PANELS)), "Nothing to export in this panel yet.");
});

/** Everything of the page to choose from. */
export function exportPage() {
  const panels = [...document.querySelectorAll(PANELS)].filter((panel) => panel.offsetWidth);
  choose(panels.flatMap(partsOf), "Nothing to export on this page yet.");
}

/** One offer is saved at once; of more, the viewer chooses. */
function choose(parts, otherwise) {
  const formats = parts.flatMap((part) => Object.keys(part.formats).map((format) => [part, format]));
  if (formats.length === 1) return save(...formats[0]);
  const list = document.createElement("div");
  list.className = "hw-offers";
  if (!parts.length) list.textContent = otherwise;
  for (const part of parts) {
    const name = document.createElement("span");
    name.textContent = part.title;
    list.append(name, ...["csv", "png"].map((format) => (part.formats[format] ? button(part, format) : document.createElement("i"))));
  }
  return show("Export", "export", list);
}

function button(part, format) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = format.toUpperCase();
  made.setAttribute("aria-label", `${part.title} as ${made.textContent}`);
  made.addEventListener("click", () => save(part, format));
  return made;
}

/** [{title, name, formats}] of a panel: what it offers itself, its tables, bars and figures. */
function partsOf(panel) {
  const title = (panel.querySelector("h2")?.firstChild?.textContent ?? nameOf(panel)).trim();
  const parts = offers.has(panel) ? [{ kind: "", formats: offers.get(panel) }] : [];
  for (const table of panel.querySelectorAll("table")) parts.push({ kind: kindOf(table), formats: { csv: () => ofTable(table) } });
  for (const bars of panel.querySelectorAll(".bars")) parts.push({ kind: "", formats: { csv: () => ofBars(bars) } });
  for (const plot of panel.querySelectorAll(".js-plotly-plot:not(.hw-node)")) {
    const heading = plot.closest("figure")?.querySelector("figcaption")?.textContent ?? "";
    parts.push({ kind: heading, formats: { csv: () => ofPlot(plot), png: () => pngOfPlot(plot, heading || title) } });
  }
  return parts.map((part, k) => {
    const several = parts.length > 1;
    const again = parts.slice(0, k).filter((p) => p.kind === part.kind).length;
    const kind = several ? `${part.kind || "chart"}${again ? ` ${again + 1}` : ""}` : "";
    return { title: kind ? `${title}: ${kind}` : title, name: slug(kind ? `${nameOf(panel)} ${kind}` : nameOf(panel)), formats: part.formats };
  });
}

const kindOf = (table) => /tbl-(\S+)/.exec(table.className)?.[1] ?? "table";

function nameOf(panel) {
  const own = /st-key-panel-([\w-]+)/.exec(panel.className)?.[1] ?? panel.dataset.testid ?? panel.className.replace("hw-", "");
  return own.replace(/^chart-/, "");
}

const slug = (text) => text.toLowerCase().replaceAll(/[^\p{L}\p{N}]+/gu, "-").replaceAll(/^-|-$/g, "");

/** Hand the file to the browser. */
async function save(part, format) {
  const page = location.pathname.split("/").filter(Boolean).pop() ?? "fleet";
  const made = await part.formats[format]();
  const link = document.createElement("a");
  link.href = format === "csv" ? URL.createObjectURL(new Blob([made], { type: "text/csv;charset=utf-8" })) : made;
  link.download = `headway-${page}-${part.name}-${stamp(new Date())}.${format}`;
  link.click();
  if (format === "csv") setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

const two = (n) => String(n).padStart(2, "0");
const stamp = (d) => `${d.getFullYear()}${two(d.getMonth() + 1)}${two(d.getDate())}-${two(d.getHours())}${two(d.getMinutes())}${two(d.getSeconds())}`;
