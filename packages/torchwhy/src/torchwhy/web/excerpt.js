// @ts-check
// Writes a stretch of the timeline as a new trace, in the format of torch.profiler.

import { within } from "./measure.js";

const CATEGORIES = /** @type {Record<number, string>} */ ({
  1: "cpu_op",
  2: "user_annotation",
  3: "cuda_runtime",
  4: "python_function",
  5: "kernel",
  6: "gpu_memcpy",
  7: "gpu_memset",
  8: "gpu_user_annotation",
  10: "overhead",
});

/**
 * @param {import("./timeline.js").Timeline} timeline
 * @param {[number, number]} range nanoseconds
 */
export function traceOf(timeline, range) {
  const { start, end, kind, work, launch } = timeline;
  /** @type {Map<number, number>} */
  const correlation = new Map();
  for (let i = 0; i < work.length; i++) {
    correlation.set(work[i], i + 1);
    correlation.set(launch[i], correlation.get(launch[i]) ?? i + 1);
  }
  /** @type {object[]} */
  const events = [];
  timeline.bands.forEach((band, number) => {
    const owner = band.side === "frames" ? number + 1 : number; // the thread's own band stands below its frames
    const place = ownerOf(band, owner);
    events.push({ ph: "M", name: "thread_name", pid: place.pid, tid: place.tid, args: { name: band.label } });
    for (let row = band.firstRow; row < band.firstRow + band.rows; row++) {
      const [first, last] = within(timeline, row, range);
      for (let i = first; i < last; i++) {
        const args = { ...place.args, ...(correlation.has(i) ? { correlation: correlation.get(i) } : {}) };
        const times = { ts: start[i] / 1000, dur: (end[i] - start[i]) / 1000 };
        events.push({ ph: "X", cat: CATEGORIES[kind[i]], name: timeline.text(i), pid: place.pid, tid: place.tid, ...times, args });
      }
    }
  });
  return JSON.stringify({ schemaVersion: 1, displayTimeUnit: "ms", traceEvents: events });
}

/**
 * Process and thread of a band: of a stream its device and its number.
 * @param {import("./timeline.js").Band} band
 * @param {number} number
 */
function ownerOf(band, number) {
  const found = /GPU (\d+) stream (\d+)/.exec(band.label);
  if (!found) return { pid: 100, tid: 100 + number, args: {} };
  const [device, stream] = [Number(found[1]), Number(found[2])];
  return { pid: device, tid: stream, args: { device, stream } };
}
