// Charts as PNG: twice the size on the screen, on the theme's ground, with their title.

import { plotly } from "./plotly.js";
import { themeOf } from "./theme.js";

const SCALE = 2;
const TITLE_PX = 26;
const PAD_PX = 8;

/** A data URL of a drawn Plotly chart. */
export async function pngOfPlot(plot, title) {
  const [library, theme] = [await plotly(), themeOf(plot)];
  const [width, height] = [plot.clientWidth, plot.clientHeight + TITLE_PX];
  const { margin } = plot.layout;
  const heading = { text: title, x: 0, xref: "container", xanchor: "left", y: 1, yref: "container", yanchor: "top", pad: { l: PAD_PX, t: PAD_PX }, font: { size: 14, color: theme.text } };
  const layout = {
    ...plot.layout, width, height, title: heading, margin: { ...margin, t: (margin?.t ?? 0) + TITLE_PX },
    paper_bgcolor: theme.background, plot_bgcolor: theme.background,
  };
  return library.toImage({ data: plot.data, layout }, { format: "png", scale: SCALE, width, height });
}

/** A data URL of small multiples: [{ name, figure, svg }], placed as on the screen. */
export function pngOfCells(grid, cells, title) {
  const theme = themeOf(grid);
  const origin = grid.getBoundingClientRect();
  const canvas = document.createElement("canvas");
  canvas.width = (origin.width + 2 * PAD_PX) * SCALE;
  canvas.height = (grid.scrollHeight + TITLE_PX + 2 * PAD_PX) * SCALE;
  const pen = canvas.getContext("2d");
  pen.scale(SCALE, SCALE);
  pen.fillStyle = theme.background;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.fillStyle = theme.text;
  pen.font = `600 14px ${theme.font}`;
  pen.fillText(title, PAD_PX, PAD_PX + 14);
  for (const cell of cells) {
    const box = cell.svg.getBoundingClientRect();
    pen.save();
    pen.translate(box.left - origin.left + PAD_PX, box.top - origin.top + grid.scrollTop + TITLE_PX + PAD_PX);
    drawCell(pen, cell, box, theme);
    pen.restore();
  }
  return canvas.toDataURL("image/png");
}

function drawCell(pen, { name, figure, svg }, { width, height }, theme) {
  pen.font = `11px ${theme.font}`;
  pen.fillStyle = theme.text;
  pen.textAlign = "left";
  pen.fillText(name, 0, -4);
  pen.textAlign = "right";
  pen.fillText(figure, width, -4);
  pen.fillStyle = getComputedStyle(svg).backgroundColor;
  pen.fillRect(0, 0, width, height);
  for (const path of svg.children) {
    const style = getComputedStyle(path);
    const shape = new Path2D(path.getAttribute("d") ?? "");
    pen.fillStyle = style.fill.startsWith("url") ? hatch(pen, theme) : style.fill;
    if (style.fill !== "none") pen.fill(shape);
    if (style.stroke === "none") continue;
    pen.globalAlpha = Number(style.opacity);
    pen.strokeStyle = style.stroke;
    pen.setLineDash(style.strokeDasharray.split(",").map(parseFloat).filter((n) => n > 0));
    pen.stroke(shape);
    pen.globalAlpha = 1;
  }
}

/** Lines across a pale ground, as the pattern on the screen. */
function hatch(pen, theme) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const brush = tile.getContext("2d");
  brush.fillStyle = theme.ramp[2];
  brush.fillRect(0, 0, 6, 6);
  brush.strokeStyle = theme.primary;
  brush.beginPath();
  brush.moveTo(0, 6);
  brush.lineTo(6, 0);
  brush.stroke();
  return pen.createPattern(tile, "repeat");
}
