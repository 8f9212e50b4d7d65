// @ts-check
// What a stretch of time holds: how busy each thread and stream is, and which names take the time.

import { lowerBound } from "./sorted.js";

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
  /** @type {Record<string, Map<number, Share>>} */
  const sides = { device: new Map(), host: new Map(), frames: new Map(), labels: new Map() };
  const bands = timeline.bands.flatMap((band, number) => {
    /** @type {[number, number][]} */
    let union = [];
    let events = 0;
    for (let row = band.firstRow; row < band.firstRow + band.rows; row++) {
      const [first, last] = within(timeline, row, range);
      if (first === last) continue;
      events += last - first;
      union = merged(union, timeline, first, last, range);
      addRow(sides[band.side] ?? sides.host, timeline, row, row + 1 < band.firstRow + band.rows, band.side, range, first, last);
    }
    const busy = union.reduce((sum, [start, end]) => sum + end - start, 0);
    return events ? [{ band: number, busy, events }] : [];
  });
  const sorted = (/** @type {Map<number, Share>} */ shares) => [...shares.values()].sort((a, b) => b.time - a.time);
  return {
    length: range[1] - range[0],
    bands,
    device: sorted(sides.device),
    host: sorted(sides.host),
    frames: sorted(sides.frames),
  };
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
 * @param {Map<number, Share>} shares
 * @param {Timeline} timeline
 * @param {number} row
 * @param {boolean} hasCalls whether the row below has the calls of this one
 * @param {string} side
 * @param {[number, number]} range
 * @param {number} first
 * @param {number} last
 */
function addRow(shares, timeline, row, hasCalls, side, [t0, t1], first, last) {
  const { start, end, name } = timeline;
  const nested = hasCalls && (side === "host" || side === "frames");
  for (let i = first; i < last; i++) {
    const from = Math.max(start[i], t0);
    const to = Math.min(end[i], t1);
    const calls = nested ? coveredBefore(timeline, row + 1, to) - coveredBefore(timeline, row + 1, from) : 0;
    const known = shares.get(name[i]);
    if (known) {
      known.time += to - from - calls;
      known.calls++;
    } else shares.set(name[i], { name: name[i], time: to - from - calls, calls: 1 });
  }
}

/**
 * Stretches in order, with those of a row's events.
 * @param {[number, number][]} union
 * @param {Timeline} timeline
 * @param {number} first
 * @param {number} last
 * @param {[number, number]} range
 * @returns {[number, number][]}
 */
function merged(union, { start, end }, first, last, [t0, t1]) {
  /** @type {[number, number][]} */
  const found = [];
  const add = (/** @type {number} */ from, /** @type {number} */ to) => {
    const before = found[found.length - 1];
    if (before && from <= before[1]) before[1] = Math.max(before[1], to);
    else found.push([from, to]);
  };
  let next = 0;
  for (let i = first; i < last; i++) {
    const from = Math.max(start[i], t0);
    while (next < union.length && union[next][0] <= from) add(...union[next++]);
    add(from, Math.min(end[i], t1));
  }
  while (next < union.length) add(...union[next++]);
  return found;
}
