// Colours of the current theme, read in the browser, so that a theme switch needs no server.

const FALLBACK = ["#4A78D6", "#6FD6AE", "#C3B8EE", "#7A7370", "#7A347B"];

/** Colours for charts below `root`; `id` changes with the theme. */
export function themeOf(root) {
  const style = getComputedStyle(root);
  const read = (name, otherwise) => style.getPropertyValue(`--st-${name}`).trim() || otherwise;
  const listed = read("chart-categorical-colors", "").split(",").map((c) => c.trim()).filter((c) => c.startsWith("#"));
  const background = read("background-color", "#0E1213");
  return {
    id: background + listed.join(),
    text: read("text-color", "#E3E8E7"),
    muted: read("gray-color", "#8C9A9A"),
    grid: read("border-color", "#2A3235"),
    amber: read("orange-color", "#EBA93F"),
    red: read("red-color", "#F0673A"),
    font: read("font", "'IBM Plex Sans', system-ui, sans-serif"),
    gpus: listed.length >= 4 ? listed : FALLBACK,
  };
}

/** One colour a GPU type, in order of appearance; [type -> colour, colour of each instance]. */
export function gpuColours(gpus, theme) {
  const types = [...new Set(gpus)];
  const byType = new Map(types.map((type, i) => [type, theme.gpus[i % theme.gpus.length]]));
  return [byType, gpus.map((gpu) => byType.get(gpu))];
}

export function faded(hex, alpha) {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  return `rgba(${r},${g},${b},${alpha})`;
}
