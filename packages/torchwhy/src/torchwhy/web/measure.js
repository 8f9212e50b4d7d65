// @ts-check
// What a stretch of time holds: how busy each thread and stream is, and which names take the time.

import { gallop, lowerBound } from "./sorted.js";

/** @typedef {import("./timeline.js").Timeline} Timeline */

/**
 * A name and its time in the stretch: of device work all of it, of calls on the host what their own calls don't take.
 * @typedef {{name: number, time: number, calls: number}} Share
 */

/**
 * @typedef {object} Measured
 * @property {number} length nanoseconds
 * @property {{band: number, busy: number, events: number}[]} bands that have events in it
 * @property {Share[]} device the most time first
 * @property {Share[]} host likewise: operators, annotations and runtime calls
 * @property {Share[]} frames likewise: Python frames
 */

/**
 * @param {Timeline} timeline
 * @param {[number, number]} range
 * @returns {Measured}
 */
export function measured(timeline, range) {
  const sides = /** @type {Record<string, Sums>} */ ({});
  const sumsOf = (/** @type {string} */ side) => (sides[side] ??= sumsOver(timeline.names.length));
  const bands = timeline.bands.flatMap((band, number) => {
    /** @type {number[]} */
    let union = [];
    let events = 0;
    for (let row = band.firstRow; row < band.firstRow + band.rows; row++) {
      const [first, last] = within(timeline, row, range);
      if (first === last) continue;
      events += last - first;
      if (!isInside(union, timeline, first, last, range)) union = merged(union, timeline, first, last, range);
      addRow(sumsOf(band.side), timeline, row, row + 1 < band.firstRow + band.rows, band.side, range, first, last);
    }
    let busy = 0;
    for (let i = 0; i < union.length; i += 2) busy += union[i + 1] - union[i];
    return events ? [{ band: number, busy, events }] : [];
  });
  const [device, host, frames] = ["device", "host", "frames"].map((side) => sharesOf(sumsOf(side)));
  return { length: range[1] - range[0], bands, device, host, frames };
}

/**
 * Time and calls of each name.
 * @typedef {{time: Float64Array, calls: Uint32Array}} Sums
 */

/** @param {number} names @returns {Sums} */
function sumsOver(names) {
  return { time: new Float64Array(names), calls: new Uint32Array(names) };
}

/** The names that have calls, the most time first. @param {Sums} sums @returns {Share[]} */
function sharesOf({ time, calls }) {
  /** @type {Share[]} */
  const found = [];
  for (let name = 0; name < calls.length; name++) if (calls[name]) found.push({ name, time: time[name], calls: calls[name] });
  return found.sort((a, b) => b.time - a.time);
}

/**
 * The events of a row that reach into a stretch: from the first to before the last.
 * @param {Timeline} timeline
 * @param {number} row
 * @param {[number, number]} range
 * @returns {[number, number]}
 */
export function within({ start, end, rowBegins }, row, [t0, t1]) {
  const high = rowBegins[row + 1];
  const first = lowerBound(end, rowBegins[row], high, t0 + 1e-6);
  return [first, Math.max(first, lowerBound(start, first, high, t1))];
}

/** How many events reach into a stretch. @param {Timeline} timeline @param {[number, number]} range */
export function countWithin(timeline, range) {
  let events = 0;
  for (let row = 0; row + 1 < timeline.rowBegins.length; row++) {
    const [first, last] = within(timeline, row, range);
    events += last - first;
  }
  return events;
}

/**
 * Time in calls of a row before a moment, over all rows up to this one.
 * @param {Timeline} timeline
 * @param {number} row
 * @param {number} time
 */
export function coveredBefore({ start, end, covered, rowBegins }, row, time) {
  const i = lowerBound(end, rowBegins[row], rowBegins[row + 1], time);
  const inside = i < rowBegins[row + 1] ? Math.max(0, time - start[i]) : 0;
  return covered[i] + inside;
}

/**
 * @param {Sums} sums
 * @param {Timeline} timeline
 * @param {number} row
 * @param {boolean} hasCalls whether the row below has the calls of this one
 * @param {string} side
 * @param {[number, number]} range
 * @param {number} first
 * @param {number} last
 */
function addRow({ time, calls }, timeline, row, hasCalls, side, [t0, t1], first, last) {
  const { start, end, name, covered, rowBegins } = timeline;
  const below = hasCalls && (side === "host" || side === "frames") ? rowBegins[row + 2] : 0;
  let next = below && lowerBound(end, rowBegins[row + 1], below, t0);
  const before = (/** @type {number} */ moment) => {
    next = gallop(end, next, below, moment);
    return covered[next] + (next < below ? Math.max(0, moment - start[next]) : 0);
  };
  for (let i = first; i < last; i++) {
    const from = Math.max(start[i], t0);
    const to = Math.min(end[i], t1);
    calls[name[i]]++;
    time[name[i]] += to - from;
    if (below) {
      const inside = before(from);
      time[name[i]] -= before(to) - inside;
    }
  }
}

/**
 * Whether the events of a row lie in stretches that are known already.
 * @param {number[]} union starts and ends, one after the other
 * @param {Timeline} timeline
 * @param {number} first
 * @param {number} last
 * @param {[number, number]} range
 */
function isInside(union, { start, end }, first, last, [t0, t1]) {
  let i = 0;
  for (let event = first; event < last; event++) {
    const to = Math.min(end[event], t1);
    while (i < union.length && union[i + 1] < to) i += 2;
    if (i >= union.length || union[i] > Math.max(start[event], t0)) return false;
  }
  return true;
}

/**
 * Stretches in order, with those of a row's events.
 * @param {number[]} union starts and ends, one after the other
 * @param {Timeline} timeline
 * @param {number} first
 * @param {number} last
 * @param {[number, number]} range
 */
function merged(union, { start, end }, first, last, [t0, t1]) {
  /** @type {number[]} */
  const found = [];
  const add = (/** @type {number} */ from, /** @type {number} */ to) => {
    const at = found.length - 1;
    if (at > 0 && from <= found[at]) found[at] = Math.max(found[at], to);
    else found.push(from, to);
  };
  let next = 0;
  for (let i = first; i < last; i++) {
    const from = Math.max(start[i], t0);
    for (; next < union.length && union[next] <= from; next += 2) add(union[next], union[next + 1]);
    add(from, Math.min(end[i], t1));
  }
  for (; next < union.length; next += 2) add(union[next], union[next + 1]);
  return found;
}
