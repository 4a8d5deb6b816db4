// Colours of the current theme, read in the browser, so that a theme switch needs no server.

const GPUS = ["#4A78D6", "#6FD6AE", "#C3B8EE", "#7A7370", "#7A347B"];
const RAMP = ["#1B2326", "#1E2F36", "#203C47", "#224A59", "#245A6D", "#276C84", "#2B809D", "#3B9ABD"];

/** Colours for charts below `root`; `id` changes with the theme. */
export function themeOf(root) {
  const style = getComputedStyle(root);
  const read = (name, otherwise) => style.getPropertyValue(`--st-${name}`).trim() || otherwise;
  const list = (name) => read(name, "").split(",").map((c) => c.trim()).filter((c) => c.startsWith("#"));
  const [gpus, ramp] = [list("chart-categorical-colors"), list("chart-sequential-colors")];
  const background = read("background-color", "#0E1213");
  const [primary, blue] = [read("primary-color", "#1F7BA8"), read("blue-color", "#6BBCE6")];
  const shades = ramp.length >= 8 ? ramp.slice(0, 8) : RAMP;
  return {
    id: background + gpus.join(),
    background,
    primary,
    blue,
    pale: blue === primary ? shades[3] : blue, // stands out from primary in both themes
    text: read("text-color", "#E3E8E7"),
    muted: read("gray-color", "#8C9A9A"),
    grid: read("border-color", "#2A3235"),
    amber: read("orange-color", "#EBA93F"),
    red: read("red-color", "#F0673A"),
    font: read("font", "'IBM Plex Sans', system-ui, sans-serif"),
    violet: gpus[2] ?? GPUS[2],
    fill: read("yellow-color", "#EBA93F"),
    gpus: gpus.length >= 4 ? gpus : GPUS,
    ramp: shades,
  };
}

/** One colour a GPU type, in order of appearance; [type -> colour, colour of each instance]. */
export function gpuColours(gpus, theme) {
  const types = [...new Set(gpus)];
  const byType = new Map(types.map((type, i) => [type, theme.gpus[i % theme.gpus.length]]));
  return [byType, gpus.map((gpu) => byType.get(gpu))];
}

/** Occupancy in %: a blue ramp below `amber`, then amber, then red; each a Plotly colour scale stop. */
export function occupancyScale(theme, amber, red) {
  const ramp = theme.ramp.map((colour, i) => [(amber / 100) * (i / (theme.ramp.length - 1)), colour]);
  return [...ramp, [amber / 100, theme.fill], [red / 100, theme.fill], [red / 100, theme.red], [1, theme.red]];
}

export function faded(hex, alpha) {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  return `rgba(${r},${g},${b},${alpha})`;
}
