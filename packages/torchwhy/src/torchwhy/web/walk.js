// @ts-check
// From one event to another: the next that stands out, the neighbour in the row, the one above or below.

import { lowerBound } from "./sorted.js";

/** @typedef {import("./stage.js").Stage} Stage */

/**
 * The next event in time that stands out, from the selected one or from the left edge; round and round. Events of one
 * start follow each other by their number.
 * @param {Stage} stage with events that stand out
 * @param {1 | -1} way
 */
export function nextLit({ timeline, lit, selected, seen }, way) {
  if (!lit?.count) return -1;
  const { start, rowBegins } = timeline;
  const from = selected < 0 ? seen.t0 : start[selected];
  const before = (/** @type {number} */ a, /** @type {number} */ b) => start[a] < start[b] || (start[a] === start[b] && a < b);
  const nearer = (/** @type {number} */ one, /** @type {number} */ other) =>
    other < 0 || (way > 0 ? before(one, other) : before(other, one));
  let next = -1; // the nearest past the selected one
  let round = -1; // the first of all, or the last
  for (let row = 0; row + 1 < rowBegins.length; row++) {
    const [first, last] = [rowBegins[row], rowBegins[row + 1]];
    if (lit.before[last] === lit.before[first]) continue;
    const passed = earlier(timeline, row, from, selected);
    // Of the row's events that stand out the first past the selected one, or the last before it.
    const chosen =
      way > 0
        ? litAt(lit, passed < last && passed === selected ? passed + 1 : passed, last)
        : litAt(lit, first, passed, lit.before[passed]);
    const end = way > 0 ? litAt(lit, first, last) : litAt(lit, first, last, lit.before[last]);
    if (chosen >= 0 && nearer(chosen, next)) next = chosen;
    if (nearer(end, round)) round = end;
  }
  return next < 0 ? round : next;
}

/**
 * The place behind a row's events that begin before a moment, and of those that begin at it, before an event.
 * @param {Stage["timeline"]} timeline
 * @param {number} row
 * @param {number} time
 * @param {number} event -1 for none
 */
function earlier({ start, rowBegins }, row, time, event) {
  let place = lowerBound(start, rowBegins[row], rowBegins[row + 1], time);
  while (place < rowBegins[row + 1] && start[place] === time && place < event) place++;
  return place;
}

/**
 * The event in [first, last) that is the `number`th of all that stand out; -1 for none.
 * @param {import("./raster.js").Emphasis} lit
 * @param {number} first
 * @param {number} last
 * @param {number} [number]
 */
function litAt({ before }, first, last, number = before[first] + 1) {
  if (number <= before[first] || number > before[last]) return -1;
  return lowerBound(before, first + 1, last + 1, number) - 1;
}

/**
 * How many that stand out begin no later than an event.
 * @param {Stage} stage
 * @param {number} event
 */
export function placeOf({ timeline, lit }, event) {
  let count = 1;
  for (let row = 0; lit && row + 1 < timeline.rowBegins.length; row++) {
    count += lit.before[earlier(timeline, row, timeline.start[event], event)] - lit.before[timeline.rowBegins[row]];
  }
  return count;
}

/**
 * The neighbour in the row of the selected event; without one the first in view; -1 at the row's ends.
 * @param {Stage} stage
 * @param {1 | -1} way
 */
export function neighbour(stage, way) {
  const { timeline, selected } = stage;
  if (selected < 0) return firstInView(stage);
  const row = timeline.rowOf(selected);
  const next = selected + way;
  return next >= timeline.rowBegins[row] && next < timeline.rowBegins[row + 1] ? next : -1;
}

/**
 * The nearest event in a row above or below the selected one; without one the first in view.
 * @param {Stage} stage
 * @param {1 | -1} way
 */
export function above(stage, way) {
  const { timeline, selected, seen } = stage;
  if (selected < 0) return firstInView(stage);
  const middle = (Math.max(timeline.start[selected], seen.t0) + Math.min(timeline.end[selected], seen.t1)) / 2;
  const rows = openRows(stage);
  for (let place = rows.indexOf(timeline.rowOf(selected)) + way; place >= 0 && place < rows.length; place += way) {
    const row = rows[place];
    let next = timeline.eventAt(row, timeline.start[selected]);
    // Else the first that begins after it.
    if (next < 0) next = lowerBound(timeline.end, timeline.rowBegins[row], timeline.rowBegins[row + 1], timeline.start[selected]);
    if (next < timeline.rowBegins[row + 1] && timeline.start[next] <= Math.max(middle, timeline.end[selected])) return next;
  }
  return -1;
}

/** The first event in view, or -1. @param {Stage} stage */
export function firstInView(stage) {
  const { timeline, seen } = stage;
  for (const row of openRows(stage)) {
    const last = timeline.rowBegins[row + 1];
    const first = lowerBound(timeline.end, timeline.rowBegins[row], last, seen.t0 + 1e-6);
    if (first < last && timeline.start[first] < seen.t1) return first;
  }
  return -1;
}

/** The rows that are neither folded nor hidden, from the top. @param {Stage} stage */
function openRows({ timeline, layout }) {
  return layout.bands
    .filter((placed) => !placed.folded)
    .flatMap(({ band }) => Array.from({ length: timeline.bands[band].rows }, (_, i) => timeline.bands[band].firstRow + i));
}
