// @ts-check
// Times as they are written on the ruler.

/**
 * Round times within a stretch, and how they are written.
 * @param {number} t0
 * @param {number} t1
 * @param {number} most about how many
 */
export function ticks(t0, t1, most) {
  const raw = (t1 - t0) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5, 10].find((one) => one * power >= raw) ?? 10);
  const largest = Math.max(Math.abs(t0), Math.abs(t1));
  const [scale, unit] = unitOf(largest);
  const digits = Math.min(9, Math.max(0, Math.ceil(-Math.log10(step / scale) - 1e-9)));
  const found = [];
  for (let i = Math.ceil(t0 / step); i * step <= t1; i++) {
    found.push({ time: i * step, text: `${((i * step) / scale).toFixed(digits)} ${unit}` });
  }
  return found;
}

/** A time, to a thousandth of the length in view. @param {number} time @param {number} seen */
export function exactly(time, seen) {
  const [scale, unit] = unitOf(Math.abs(time));
  const digits = Math.min(9, Math.max(0, Math.ceil(-Math.log10(seen / 1000 / scale))));
  return `${(time / scale).toFixed(digits)} ${unit}`;
}

/** @param {number} ns @returns {[number, string]} */
function unitOf(ns) {
  return ns >= 1e9 ? [1e9, "s"] : ns >= 1e6 ? [1e6, "ms"] : ns >= 1e3 ? [1e3, "us"] : [1, "ns"];
}
