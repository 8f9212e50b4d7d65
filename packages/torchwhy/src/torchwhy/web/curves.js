// @ts-check
// Quantities over time: their values at a moment and within a stretch, what they are written as. Drawing them is in curve_drawing.js.

import { duration, sizeText } from "./amounts.js";
import { addUp, signed } from "./block.js";
import { lowerBound } from "./sorted.js";

/**
 * A quantity that keeps its value until the next point. `means` are the means from each point to the next, which differ
 * from the values where points were left out; `area` is their sum over time before each point.
 * @typedef {{label: string, unit: string, times: Float64Array, values: Float64Array, means: Float64Array,
 *   area: Float64Array, lowest: number, highest: number}} Counter
 */

/**
 * The inverse of what page/block.py writes.
 * @param {import("./block.js").Block} block
 * @returns {Counter[]}
 */
export function readCounters(block) {
  const times = signed(block.column("counterTime", Float64Array));
  const values = signed(block.column("counterValue", Float64Array));
  const means = signed(block.column("counterMean", Float64Array));
  let first = 0;
  let firstMean = 0;
  return block.header.counters.map(
    (/** @type {{label: string, unit: string, points: number, divisor: number, means: number}} */ one) => {
      const last = first + one.points;
      const lastMean = firstMean + one.means;
      const scaled = (/** @type {Float64Array} */ numbers) => addUp(numbers).map((number) => number / one.divisor);
      const read = scaled(values.subarray(first, last));
      const found = curveOf(addUp(times.subarray(first, last)), read, one.means ? scaled(means.subarray(firstMean, lastMean)) : read);
      [first, firstMean] = [last, lastMean];
      return { label: one.label, unit: one.unit, ...found };
    },
  );
}

/** @param {Float64Array} times @param {Float64Array} values @param {Float64Array} means */
export function curveOf(times, values, means) {
  const area = new Float64Array(times.length);
  for (let i = 1; i < times.length; i++) area[i] = area[i - 1] + means[i - 1] * (times[i] - times[i - 1]);
  const [lowest, highest] = extremes(values, 0, values.length);
  return { times, values, means, area, lowest, highest };
}

/** @param {Float64Array} values @param {number} first @param {number} last @returns {[number, number]} */
function extremes(values, first, last) {
  let [least, most] = [Infinity, -Infinity];
  for (let i = first; i < last; i++) {
    least = Math.min(least, values[i]);
    most = Math.max(most, values[i]);
  }
  return last > first ? [least, most] : [0, 0];
}

/** The point whose value holds at a moment; -1 before the first. @param {Counter} curve @param {number} time */
export function pointAt({ times }, time) {
  let point = lowerBound(times, 0, times.length, time);
  while (point < times.length && times[point] === time) point++;
  return point - 1;
}

/**
 * The least, the mean over time and the greatest value within a stretch; null where the curve begins after it.
 * @param {Counter} curve
 * @param {[number, number]} range
 */
export function measuredCurve(curve, [t0, t1]) {
  const { times, values, means, area } = curve;
  if (!times.length || t1 < times[0]) return null;
  const from = Math.max(t0, times[0]);
  const first = pointAt(curve, from);
  const last = Math.max(first, lowerBound(times, 0, times.length, t1) - 1);
  const areaAt = (/** @type {number} */ point, /** @type {number} */ time) => area[point] + means[point] * (time - times[point]);
  const [least, most] = extremes(values, first, last + 1);
  const mean = t1 > from ? (areaAt(last, t1) - areaAt(first, from)) / (t1 - from) : values[first];
  return { least, mean, most };
}

/** A value with its unit. @param {number} value @param {string} unit */
export function amountText(value, unit) {
  if (unit === "B") return sizeText(Math.round(value));
  const text = value.toLocaleString("en", { maximumSignificantDigits: Math.abs(value) < 1e6 ? 4 : 7 });
  return unit === "%" ? `${text}%` : `${text}${unit && ` ${unit}`}`;
}

/** What the axis of a curve begins and ends with: 0, unless all values lie far from it. @param {Counter} curve @returns {[number, number]} */
export function axisOf({ lowest, highest }) {
  if (lowest > highest / 2 && lowest < highest) return [lowest, highest];
  if (highest < lowest / 2 && lowest < highest) return [lowest, highest];
  return [Math.min(0, lowest), Math.max(0, highest)];
}

/** What the heading of a curve says. @param {Counter} curve */
export function headingOfCurve(curve) {
  const { label, unit, lowest, highest } = curve;
  const of = unit && unit !== "%" ? ` (${unit === "B" ? "bytes" : unit})` : "";
  const range = lowest === highest ? `always ${amountText(highest, unit)}` : `${amountText(lowest, unit)} to ${amountText(highest, unit)}`;
  return `${label}${of}: ${range}`;
}

/**
 * What a pointer over a curve shows, in lines.
 * @param {Counter} curve
 * @param {number} time
 */
export function glanceAtCurve(curve, time) {
  const { label, unit, times, values, highest } = curve;
  const point = pointAt(curve, time);
  if (point < 0) return `${label}: not known yet`;
  const change = point ? values[point] - values[point - 1] : 0;
  const lines = [`${label}: ${amountText(values[point], unit)}`];
  if (point) lines.push(`${change < 0 ? "−" : "+"}${amountText(Math.abs(change), unit)} ${duration(time - times[point])} before`);
  if (point + 1 < times.length) lines.push(`for ${duration(times[point + 1] - times[point])}`);
  if (highest > 0) lines.push(`${((values[point] / highest) * 100).toFixed(0)}% of the highest, ${amountText(highest, unit)}`);
  return lines.join("\n");
}
