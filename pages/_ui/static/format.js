// Numbers and times as an operator reads them; the same rules as control/present/units.py.

export const NOTHING = "–";
const ROUNDS_UP = 0.9995; // of a step, from which three digits say it
const STEPS = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

/** Three significant digits, a true minus; whole numbers keep all digits up to 9,999. */
export function number(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return NOTHING;
  if (Number.isInteger(value) && Math.abs(value) < 10000) return minus(value.toLocaleString("en"));
  const unit = 10 ** (Math.floor(Math.log10(Math.abs(value))) - digits + 1);
  const rounded = Math.round(value / unit) * unit;
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(rounded))));
  return minus(rounded.toLocaleString("en", {
    minimumFractionDigits: Math.min(decimals, 12), maximumFractionDigits: Math.min(decimals, 12),
  }));
}

/** An axis tick: short enough for the margin, with an SI prefix from 10,000; no "m" below 0.01, which reads as minutes. */
export function compact(value) {
  const size = Math.abs(value);
  if (size >= 10000) {
    const [step, prefix] = STEPS.find(([s]) => size >= s);
    return number(value / step) + prefix;
  }
  if (size && size < 0.01) return minus(String(Number(value.toPrecision(2))));
  return number(value);
}

/** A measured value: always three significant digits, so that a figure keeps its width. */
export function measure(value) {
  const plain = value === null || value === undefined || !Number.isFinite(value) || value === 0 || Math.abs(value) >= 100;
  return plain ? number(value) : minus(value.toPrecision(3));
}

/** [figure, unit] with an SI prefix; seconds turn into ms, s, min or h; "%" takes a share. */
export function quantity(value, unit) {
  if (value === null || value === undefined || !Number.isFinite(value)) return [NOTHING, unit];
  if (unit === "s") return seconds(value);
  if (unit === "%") return [measure(value * 100), "%"];
  if (unit === "calls") return [number(value), unit];
  const step = STEPS.find(([s]) => Math.abs(value) >= ROUNDS_UP * s);
  return step ? [measure(value / step[0]), step[1] + (unit.length > 2 ? " " : "") + unit] : [measure(value), unit];
}

export const text = (value, unit) => quantity(value, unit).join(" ").trim();

function seconds(value) {
  const size = Math.abs(value);
  if (size && size < ROUNDS_UP) return [measure(value * 1e3), "ms"];
  if (size < 6000) return [measure(value), "s"];
  return size < 36000 ? [measure(value / 60), "min"] : [measure(value / 3600), "h"];
}

const minus = (s) => s.replace("-", "−");
const two = (n) => String(Math.floor(n)).padStart(2, "0");

/** A duration in seconds as h:mm:ss, from a day on with the days in front. */
export function duration(s) {
  if (!Number.isFinite(s)) return NOTHING;
  const days = Math.floor(s / 86400);
  const clock = `${two((s % 86400) / 3600)}:${two((s % 3600) / 60)}:${two(s % 60)}`;
  return days ? `${days} d ${clock}` : clock;
}

/** Local wall time of epoch seconds. */
export function clock(at) {
  const d = new Date(at * 1000);
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

/** The viewer's time zone as UTC, UTC+2 or UTC−3:30. */
export function zone() {
  const minutes = -new Date().getTimezoneOffset();
  if (!minutes) return "UTC";
  const rest = Math.abs(minutes) % 60 ? `:${two(Math.abs(minutes) % 60)}` : "";
  return `UTC${minutes < 0 ? "−" : "+"}${Math.floor(Math.abs(minutes) / 60)}${rest}`;
}

/** What a fleet is made of, in words; snapshots of earlier versions do not tell. */
export function makeup(fixed) {
  const simulated = fixed.instances.simulated.filter((one) => one !== false).length;
  const real = fixed.instances.name.length - simulated;
  if (!real) return "simulated";
  return simulated ? `${real} real, ${simulated} simulated` : "real servers";
}

/** Epoch seconds as Plotly takes them: ms, which its date axes show in local time. */
export const axisTime = (at) => at * 1000;
