// @ts-check
// Amounts as people read them, worded as profiler/wording.py does.

const TIMES = /** @type {const} */ ([[60e9, "min"], [1e9, "s"], [1e6, "ms"], [1e3, "us"]]);
const SIZES = /** @type {const} */ ([[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]);

/**
 * Nanoseconds with three significant digits and a fitting unit.
 * @param {number} ns
 */
export function duration(ns) {
  if (!ns) return "0 us";
  const [scale, unit] = TIMES.find(([one]) => Math.abs(ns) >= 0.9995 * one) ?? [1, "ns"];
  return `${threeDigits(ns / scale)} ${unit}`;
}

/**
 * Bytes in powers of 1000.
 * @param {number} bytes
 */
export function sizeText(bytes) {
  const found = SIZES.find(([one]) => Math.abs(bytes) >= 0.9995 * one);
  return found ? `${threeDigits(bytes / found[0])} ${found[1]}` : `${bytes} B`;
}

/** @param {number} share */
export function percent(share) {
  if (share <= 0) return "0%";
  if (share < 0.001) return "<0.1%";
  if (share >= 0.995 && share < 1) return ">99%";
  return share < 0.0995 ? `${(share * 100).toFixed(1)}%` : `${grouped((share * 100).toFixed(0))}%`;
}

/**
 * @param {number} number
 * @param {string} one
 * @param {string} [many]
 */
export function counted(number, one, many = `${one}s`) {
  return `${grouped(String(number))} ${number === 1 ? one : many}`;
}

/** @param {number} number */
function threeDigits(number) {
  const size = Math.abs(number);
  return grouped(number.toFixed(size < 9.995 ? 2 : size < 99.95 ? 1 : 0));
}

/** @param {string} digits */
function grouped(digits) {
  return digits.replace(/\B(?<!\.\d*)(?=(\d{3})+(?!\d))/g, ",");
}
