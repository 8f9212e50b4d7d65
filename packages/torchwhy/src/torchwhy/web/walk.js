// @ts-check
// From one event to another: the next that stands out, the neighbour in the row, the one above or below.

import { lowerBound } from "./sorted.js";

/** @typedef {import("./stage.js").Stage} Stage */

/**
 * The next event in time that stands out, from the selected one or from the left edge; round and round.
 * @param {Stage} stage with events that stand out
 * @param {1 | -1} way
 */
export function nextLit({ timeline: { start }, lit, selected, seen }, way) {
  if (!lit) return -1;
  const from = selected < 0 ? seen.t0 : start[selected];
  const before = (/** @type {number} */ a, /** @type {number} */ b) => start[a] < start[b] || (start[a] === start[b] && a < b);
  const past = (/** @type {number} */ event) => {
    if (selected < 0) return way > 0 ? start[event] >= from : start[event] < from;
    return way > 0 ? before(selected, event) : before(event, selected);
  };
  let next = -1; // the nearest past the selected one
  let round = -1; // the first of all, or the last
  for (let event = 0; event < start.length; event++) {
    if (lit.before[event + 1] === lit.before[event]) continue;
    if (round < 0 || (way > 0 ? before(event, round) : before(round, event))) round = event;
    if (past(event) && (next < 0 || (way > 0 ? before(event, next) : before(next, event)))) next = event;
  }
  return next < 0 ? round : next;
}

/**
 * How many that stand out begin no later than an event.
 * @param {Stage} stage
 * @param {number} event
 */
export function placeOf({ timeline: { start }, lit }, event) {
  let count = 1;
  for (let i = 0; lit && i < start.length; i++) {
    if (lit.before[i + 1] > lit.before[i] && (start[i] < start[event] || (start[i] === start[event] && i < event))) count++;
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
