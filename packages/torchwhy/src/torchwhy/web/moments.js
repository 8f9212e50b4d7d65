// @ts-check
// The moment that a pointer means while it measures: an edge of an event or of a step where one is near.

import { RULER } from "./layout.js";
import { lowerBound } from "./sorted.js";

/** Pixels from an edge within which it is meant. */
const REACH = 6;

/**
 * @param {import("./stage.js").Stage} stage
 * @param {{x: number, y: number}} place in the view
 */
export function momentAt(stage, { x, y }) {
  const time = stage.timeAt(x);
  const reach = (REACH * (stage.seen.t1 - stage.seen.t0)) / stage.width;
  const near = edgesAround(stage, y, time).filter((edge) => Math.abs(edge - time) <= reach);
  return near.length ? near.reduce((one, other) => (Math.abs(other - time) < Math.abs(one - time) ? other : one)) : time;
}

/**
 * Which end of what is measured is at a place: "start", "end" or "".
 * @param {import("./stage.js").Stage} stage
 * @param {number} x
 */
export function endAt({ range, seen, width }, x) {
  if (!range) return "";
  const [left, right] = range.map((time) => Math.abs(((time - seen.t0) / (seen.t1 - seen.t0)) * width - x));
  if (Math.min(left, right) > REACH) return "";
  return left < right ? "start" : "end";
}

/**
 * The edges next to a moment in the row at a height of the view; on the ruler those of the steps.
 * @param {import("./stage.js").Stage} stage
 * @param {number} y
 * @param {number} time
 */
function edgesAround(stage, y, time) {
  const { start, end, rowBegins, steps } = stage.timeline;
  if (y < RULER) return steps.flatMap((step) => [step.start, step.end]);
  const row = stage.rowUnder(y);
  if (row < 0) return [];
  const [first, last] = [rowBegins[row], rowBegins[row + 1]];
  const i = lowerBound(end, first, last, time);
  return [...(i > first ? [end[i - 1]] : []), ...(i < last ? [start[i], end[i]] : [])];
}
