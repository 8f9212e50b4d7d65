// @ts-check
// The events of a timeline as columns, row by row, and what stands beside them: the inverse of page/block.py.

import { addUp, addUpSigned, signed } from "./block.js";
import { readCounters } from "./curves.js";
import { lowerBound } from "./sorted.js";

/**
 * Stretches of time in order, nanoseconds.
 * @typedef {{start: Float64Array, end: Float64Array}} Stretches
 */

/**
 * The rows of one thread or stream. `side` is "frames" (Python frames), "host", "labels" (annotations) or "device".
 * @typedef {{label: string, side: string, rows: number, source: string, firstRow: number, events: number}} Band
 */

/** @typedef {{name: string, start: number, end: number, deviceEnd: number}} Step */

/**
 * What a finding points at, and what its fix can save at most, nanoseconds; 0 where there is nothing to fix.
 * @typedef {{title: string, stake: number, stretches: Stretches, evidence: Uint32Array[]}} Finding
 */

/** What a kind is called, by its number. */
export const KIND_NAMES = Object.freeze({
  1: "operator",
  2: "annotation",
  3: "runtime call",
  4: "Python frame",
  5: "kernel",
  6: "copy",
  7: "fill",
  8: "annotation on the device",
  10: "profiler",
});

/** What several of a kind are called. */
export const KIND_PLURALS = Object.freeze({
  1: "operators",
  2: "annotations",
  3: "runtime calls",
  4: "Python frames",
  5: "kernels",
  6: "copies",
  7: "fills",
  8: "annotations on the device",
  10: "the profiler's own",
});

export class Timeline {
  /** @param {import("./block.js").Block} block */
  constructor(block) {
    const { header } = block;
    this.count = /** @type {number} */ (header.events);
    this.names = this.count ? block.text("names").split("\0") : [];
    this.shortNames = this.count ? block.text("shortNames").split("\0") : [];
    /** The kind of device work of each name, "" for what runs on the host. */
    this.category = this.count ? block.text("category").split("\0") : [];
    this.longestName = /** @type {number} */ (header.longestName);
    this.notes = /** @type {string[]} */ (header.notes);
    this.window = /** @type {[number, number]} */ (header.window);
    this.rowBegins = rowBegins(block.column("rows", Uint32Array));
    /** @type {Band[]} */
    this.bands = [];
    let row = 0;
    for (const band of header.bands) {
      const events = this.rowBegins[row + band.rows] - this.rowBegins[row];
      this.bands.push({ ...band, firstRow: row, events });
      row += band.rows;
    }
    const { start, end, covered, span } = readTimes(block, this.rowBegins);
    this.start = start;
    this.end = end;
    /** Time in events before each, over all rows: what a stretch of a row is covered by is a difference of two. */
    this.covered = covered;
    /** From the first start to the last end, nanoseconds. */
    this.span = span;
    this.name = block.column("name", Uint32Array);
    this.kind = kindsOf(block, this.name);
    this.work = addUp(block.column("work", Uint32Array));
    this.launch = addUpSigned(block.column("launch", Float64Array));
    /** Operators of the backward pass, and those of the forward pass that led to them. */
    this.backward = addUp(block.column("backward", Uint32Array));
    this.forward = addUpSigned(block.column("forward", Float64Array));
    /** @type {Step[]} */
    this.steps = header.steps.map(
      (/** @type {[string, number, number, number]} */ [name, start, end, deviceEnd]) => ({ name, start, end, deviceEnd }),
    );
    /** @type {{label: string, events: Uint32Array, values: Uint32Array, texts: string[]}[]} */
    this.arguments = readArguments(block);
    const { findings, parts } = readTargets(block);
    this.findings = findings;
    this.parts = parts;
    this.path = readPath(block);
    this.counters = readCounters(block);
  }

  /** @param {number} event */
  text(event) {
    return this.names[this.name[event]];
  }

  /** The name as it is written on an event: of kernels the short one. @param {number} event */
  label(event) {
    return this.shortNames[this.name[event]] || this.names[this.name[event]];
  }

  /** What a band is called in full, or a curve: those are counted on behind the bands. @param {number} number */
  bandLabel(number) {
    if (number >= this.bands.length) return this.counters[number - this.bands.length].label;
    const band = this.bands[number];
    const what = { frames: "Python frames of ", labels: "annotations on " }[band.side] ?? "";
    return `${band.source ? `${band.source}, ` : ""}${what}${band.label}`;
  }

  /** How many events a name has, and how long they take together, nanoseconds. @param {number} name */
  totalsOf(name) {
    if (!this.totals) {
      const [count, time] = [new Uint32Array(this.names.length), new Float64Array(this.names.length)];
      for (let i = 0; i < this.count; i++) {
        count[this.name[i]]++;
        time[this.name[i]] += this.end[i] - this.start[i];
      }
      this.totals = { count, time };
    }
    return { count: this.totals.count[name], time: this.totals.time[name] };
  }

  /** The row of an event. @param {number} event */
  rowOf(event) {
    return lowerBound(this.rowBegins, 0, this.rowBegins.length, event + 1) - 1;
  }

  /** The band of a row. @param {number} row */
  bandOf(row) {
    let low = 0;
    let high = this.bands.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.bands[middle].firstRow <= row) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /** The event of a row that is running at a time, or -1. @param {number} row @param {number} time */
  eventAt(row, time) {
    const high = this.rowBegins[row + 1];
    let i = lowerBound(this.end, this.rowBegins[row], high, time);
    if (i < high && this.end[i] === time && this.start[i] < time) i++;
    return i < high && this.start[i] <= time ? i : -1;
  }

  /**
   * What runs around an event in the rows of a band, from the innermost.
   * @param {number} event
   * @param {Band} band its own, or that of the same thread's Python frames
   */
  around(event, band) {
    const found = [];
    for (let row = Math.min(this.rowOf(event), band.firstRow + band.rows) - 1; row >= band.firstRow; row--) {
      const above = this.eventAt(row, this.start[event]);
      if (above >= 0 && this.end[above] >= this.end[event]) found.push(above);
    }
    return found;
  }

  /** The Python frames around an event of a thread, from the innermost. @param {number} event */
  stack(event) {
    const number = this.bandOf(this.rowOf(event));
    const band = this.bands[number];
    if (band.side === "frames") return this.around(event, band);
    const above = this.bands[number - 1];
    return band.side === "host" && above?.side === "frames" ? this.around(event, above) : [];
  }

  /** What a call put on the device. @param {number} event */
  worksOf(event) {
    const found = [];
    for (let i = 0; i < this.launch.length; i++) if (this.launch[i] === event) found.push(this.work[i]);
    return found;
  }

  /** What is known of an event's arguments: a label and a text each. @param {number} event @returns {[string, string][]} */
  argumentsOf(event) {
    return this.arguments.flatMap(({ label, events, values, texts }) => {
      const i = lowerBound(events, 0, events.length, event);
      return events[i] === event ? [/** @type {[string, string]} */ ([label, texts[values[i]]])] : [];
    });
  }

  /** The operator of the forward pass that led to one of the backward pass, or -1. @param {number} event */
  forwardOf(event) {
    const i = lowerBound(this.backward, 0, this.backward.length, event);
    return this.backward[i] === event ? this.forward[i] : -1;
  }

  /** What an operator of the forward pass led to in the backward pass. @param {number} event */
  backwardsOf(event) {
    const found = [];
    for (let i = 0; i < this.forward.length; i++) if (this.forward[i] === event) found.push(this.backward[i]);
    return found;
  }

  /** The call that put an event on the device, or -1. @param {number} event */
  launchOf(event) {
    const i = lowerBound(this.work, 0, this.work.length, event);
    return this.work[i] === event ? this.launch[i] : -1;
  }
}

/** @param {Uint32Array} sizes */
function rowBegins(sizes) {
  const begins = new Uint32Array(sizes.length + 1);
  for (let row = 0; row < sizes.length; row++) begins[row + 1] = begins[row] + sizes[row];
  return begins;
}

/**
 * @param {import("./block.js").Block} block
 * @param {Uint32Array} rowBegins
 */
function readTimes(block, rowBegins) {
  const { unit, origin } = block.header;
  const start = block.column("gap", Float64Array);
  const end = block.column("duration", Float64Array);
  const covered = new Float64Array(start.length + 1);
  let first = Infinity;
  let last = -Infinity;
  for (let row = 0; row + 1 < rowBegins.length; row++) {
    let time = origin;
    for (let i = rowBegins[row]; i < rowBegins[row + 1]; i++) {
      const begins = time + start[i];
      time = begins + end[i];
      start[i] = begins * unit;
      end[i] = time * unit;
      covered[i + 1] = covered[i] + end[i] - start[i];
      if (start[i] < first) first = start[i];
      if (end[i] > last) last = end[i];
    }
  }
  const span = /** @type {[number, number]} */ (start.length ? [first, last] : [0, 0]);
  return { start, end, covered, span };
}

/** @param {import("./block.js").Block} block */
function readTargets(block) {
  const { header } = block;
  const gaps = signed(block.column("stretchGap", Float64Array));
  const lengths = block.column("stretchLength", Float64Array);
  const evidence = block.column("evidence", Uint32Array);
  let stretch = 0;
  let event = 0;
  const stretches = (/** @type {number} */ count) => {
    stretch += count;
    return fromGaps(gaps.subarray(stretch - count, stretch), lengths.subarray(stretch - count, stretch));
  };
  const events = (/** @type {number} */ count) => {
    event += count;
    return addUp(evidence.subarray(event - count, event));
  };
  /** @type {Finding[]} */
  const findings = header.findings.map(
    (/** @type {{title: string, stake: number, stretches: number, evidence: number[]}} */ one) => ({
      title: one.title,
      stake: one.stake,
      stretches: stretches(one.stretches),
      evidence: one.evidence.map(events),
    }),
  );
  /** @type {Map<string, Stretches>} */
  const parts = new Map();
  for (const [name, count] of header.parts) parts.set(name, stretches(count));
  return { findings, parts };
}

/**
 * @param {import("./block.js").Block} block
 * @param {Uint32Array} name
 */
function kindsOf(block, name) {
  const usual = block.column("kind", Uint8Array);
  const kind = new Uint8Array(name.length);
  for (let i = 0; i < name.length; i++) kind[i] = usual[name[i]];
  const unusual = addUp(block.column("unusual", Uint32Array));
  const kinds = block.column("unusualKind", Uint8Array);
  for (let i = 0; i < unusual.length; i++) kind[unusual[i]] = kinds[i];
  return kind;
}

/**
 * @param {Float64Array} gaps
 * @param {Float64Array} lengths
 * @returns {Stretches}
 */
function fromGaps(gaps, lengths) {
  const start = new Float64Array(gaps.length);
  const end = new Float64Array(gaps.length);
  let time = 0;
  for (let i = 0; i < gaps.length; i++) {
    start[i] = time + gaps[i];
    end[i] = time = start[i] + lengths[i];
  }
  return { start, end };
}

/** @param {import("./block.js").Block} block */
function readArguments(block) {
  const events = block.column("argumentEvent", Uint32Array);
  const values = block.column("argumentValue", Uint32Array);
  const texts = block.text("argumentTexts").split("\0");
  let event = 0;
  let text = 0;
  return block.header.arguments.map((/** @type {[string, number, number]} */ [label, count, different]) => {
    event += count;
    text += different;
    return {
      label,
      events: addUp(events.subarray(event - count, event)),
      values: values.subarray(event - count, event),
      texts: texts.slice(text - different, text),
    };
  });
}

/** @param {import("./block.js").Block} block */
function readPath(block) {
  const when = fromGaps(signed(block.column("pathGap", Float64Array)), block.column("pathLength", Float64Array));
  return { ...when, event: addUpSigned(block.column("pathEvent", Float64Array)) };
}
