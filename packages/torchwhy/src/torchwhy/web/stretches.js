// @ts-check
// Sets of stretches of time: `Intervals` of the Python side.

/** @typedef {import("./timeline.js").Stretches} Stretches */

/**
 * How much of a window several sets cover together, nanoseconds.
 * @param {Stretches[]} sets
 * @param {[number, number]} window
 */
export function unionLength(sets, [first, last]) {
  const all = sets.flatMap(({ start, end }) => Array.from(start, (from, i) => [from, end[i]]));
  all.sort((a, b) => a[0] - b[0]);
  let total = 0;
  let reach = first;
  for (const [from, to] of all) {
    total += Math.max(0, Math.min(to, last) - Math.max(from, reach));
    reach = Math.max(reach, to);
  }
  return total;
}

/**
 * From the first start to the last end of stretches and of events, or null where there are neither.
 * @param {import("./timeline.js").Timeline} timeline
 * @param {Stretches | null} stretches
 * @param {Iterable<number>} events
 * @returns {[number, number] | null}
 */
export function extent(timeline, stretches, events) {
  let first = Infinity;
  let last = -Infinity;
  if (stretches?.start.length) {
    first = stretches.start[0];
    last = stretches.end[stretches.end.length - 1];
  }
  for (const event of events) {
    first = Math.min(first, timeline.start[event]);
    last = Math.max(last, timeline.end[event]);
  }
  return first <= last ? [first, last] : null;
}
