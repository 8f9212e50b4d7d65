// @ts-check
// The whole trace in one strip: how busy the device is, the steps, the findings' stretches, and what the stage shows.

import { coveredBefore } from "./measure.js";
import { gallop } from "./sorted.js";

const HEIGHT = 46;
const MARK = 3;
const MARKED = 4;
/** Pixels around an edge of the view that take hold of it. */
const GRIP = 6;

export class Minimap {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {import("./timeline.js").Timeline} timeline
   * @param {(t0: number, t1: number) => void} look shows a stretch of time
   * @param {() => import("./raster.js").Seen} seen
   */
  constructor(canvas, timeline, look, seen) {
    this.canvas = canvas;
    this.timeline = timeline;
    this.look = look;
    this.seen = seen;
    this.width = 1;
    this.backdrop = document.createElement("canvas");
    /** Where events stand out, of which of them. @type {{lit: import("./raster.js").Emphasis | null, flags: Uint8Array} | null} */
    this.hitsOf = null;
    /** @type {"start" | "end" | "both"} */
    let held = "both";
    const move = (/** @type {PointerEvent} */ event) => {
      const { t0, t1 } = this.seen();
      if (!event.buttons) canvas.style.cursor = this.edgeAt(event.offsetX) === "both" ? "grab" : "ew-resize";
      else if (held === "start") this.look(Math.min(this.time(event.offsetX), t1), t1);
      else if (held === "end") this.look(t0, Math.max(this.time(event.offsetX), t0));
      else {
        const middle = this.time(event.offsetX);
        this.look(middle - (t1 - t0) / 2, middle + (t1 - t0) / 2);
      }
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      held = this.edgeAt(event.offsetX);
      move(event);
    });
    canvas.addEventListener("pointermove", move);
  }

  /** Which edge of the view is at a place; "both" for none. @param {number} x */
  edgeAt(x) {
    const { t0, t1 } = this.seen();
    if (Math.abs(x - this.x(t0)) <= GRIP) return "start";
    return Math.abs(x - this.x(t1)) <= GRIP ? "end" : "both";
  }

  /** @param {number} x */
  time(x) {
    const [first, last] = this.timeline.span;
    return first + (x / this.width) * (last - first);
  }

  /** @param {number} time */
  x(time) {
    const [first, last] = this.timeline.span;
    return ((time - first) / (last - first || 1)) * this.width;
  }

  /**
   * Draw what doesn't change with the view.
   * @param {number} width
   * @param {number} ratio device pixels of a CSS pixel
   * @param {import("./colours.js").Colours} colours
   */
  prepare(width, ratio, colours) {
    this.width = width;
    this.colours = colours;
    for (const canvas of [this.canvas, this.backdrop]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(HEIGHT * ratio);
    }
    const context = /** @type {CanvasRenderingContext2D} */ (this.backdrop.getContext("2d"));
    context.scale(ratio, ratio);
    context.fillStyle = colours.look.shade;
    this.timeline.steps.forEach((step, i) => {
      if (i % 2) context.fillRect(this.x(step.start), 0, this.x(step.end) - this.x(step.start), HEIGHT);
    });
    const rows = busiestRows(this.timeline);
    context.fillStyle = colours.css(rows.kind);
    const room = HEIGHT - MARK * MARKED - 2;
    const busy = activity(this.timeline, rows.rows, this.timeline.span, Math.ceil(width));
    busy.forEach((share, x) => context.fillRect(x, room * (1 - share), 1, room * share));
    this.timeline.findings.slice(0, MARKED).forEach((finding, i) => {
      context.fillStyle = colours.look.path;
      context.globalAlpha = 1 - i / (MARKED + 1);
      this.stretches(context, finding.stretches, HEIGHT - MARK * (MARKED - i), MARK - 1);
      context.globalAlpha = 1;
    });
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {import("./timeline.js").Stretches} stretches
   * @param {number} top
   * @param {number} height
   */
  stretches(context, { start, end }, top, height) {
    let reach = -1;
    for (let i = 0; i < start.length; i++) {
      const left = Math.max(reach, this.x(start[i]));
      const right = Math.max(this.x(end[i]), left + 0.5);
      if (right - reach < 0.4) continue;
      context.fillRect(left, top, right - left, height);
      reach = right;
    }
  }

  /** Where events stand out, a flag for each pixel. @param {import("./raster.js").Emphasis | null} lit */
  hits(lit) {
    if (this.hitsOf?.lit === lit && this.hitsOf.flags.length === Math.ceil(this.width)) return this.hitsOf.flags;
    const flags = new Uint8Array(Math.ceil(this.width));
    const { start, rowBegins } = this.timeline;
    for (let row = 0; lit && row + 1 < rowBegins.length; row++) {
      const last = rowBegins[row + 1];
      for (let i = rowBegins[row], next = i; i < last; i = next) {
        const x = Math.min(flags.length - 1, this.x(start[i]) | 0);
        next = Math.max(i + 1, gallop(start, i, last, this.time(x + 1)));
        if (lit.before[next] > lit.before[i]) flags[x] = 1;
      }
    }
    this.hitsOf = { lit, flags };
    return flags;
  }

  /** @param {Pick<import("./stage.js").Stage, "stretches" | "lit" | "range" | "marks" | "glide">} shown */
  draw({ stretches, lit, range, marks, glide }) {
    if (!this.colours) return;
    const { look } = this.colours;
    const context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    const ratio = this.canvas.width / this.width;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.drawImage(this.backdrop, 0, 0);
    context.scale(ratio, ratio);
    if (stretches) {
      context.fillStyle = look.stretch;
      this.stretches(context, stretches, 0, HEIGHT);
    }
    if (range) {
      context.fillStyle = look.range;
      context.fillRect(this.x(range[0]), 0, Math.max(1, this.x(range[1]) - this.x(range[0])), HEIGHT);
    }
    if (lit) {
      context.fillStyle = look.path;
      this.hits(lit).forEach((hit, x) => hit && context.fillRect(x, 0, 1, 5));
    }
    const { t0, t1 } = glide.drawn ?? this.seen();
    const left = Math.max(0, this.x(t0));
    const right = Math.min(this.width, this.x(t1));
    context.fillStyle = look.backdrop;
    context.globalAlpha = 0.6;
    context.fillRect(0, 0, left, HEIGHT);
    context.fillRect(right, 0, this.width - right, HEIGHT);
    context.globalAlpha = 1;
    context.strokeStyle = look.selected;
    context.strokeRect(left + 0.5, 0.5, Math.max(2, right - left - 1), HEIGHT - 1);
    context.fillStyle = look.selected;
    for (const edge of [left, right]) context.fillRect(edge - 2, HEIGHT / 2 - 8, 4, 16); // what takes hold of an edge
    context.fillStyle = look.mark;
    for (const { time } of marks.all) context.fillRect(this.x(time) - 1, 0, 2, HEIGHT);
  }
}

/**
 * The rows that show how busy a program is: those of devices, else the outermost of all threads.
 * @param {import("./timeline.js").Timeline} timeline
 */
function busiestRows(timeline) {
  const device = timeline.bands.filter((band) => band.side === "device");
  if (!device.length) return { kind: 1, rows: timeline.bands.slice(0, 1).map((band) => band.firstRow) };
  return { kind: 5, rows: device.flatMap((band) => Array.from({ length: band.rows }, (_, i) => band.firstRow + i)) };
}

/**
 * For each pixel the largest share of its time that a row has events.
 * @param {import("./timeline.js").Timeline} timeline
 * @param {number[]} rows
 * @param {[number, number]} span
 * @param {number} pixels
 */
function activity(timeline, rows, [first, last], pixels) {
  const found = new Float64Array(pixels);
  const width = (last - first) / pixels;
  if (!(width > 0)) return found;
  for (const row of rows) {
    let before = coveredBefore(timeline, row, first);
    for (let x = 0; x < pixels; x++) {
      const after = coveredBefore(timeline, row, first + (x + 1) * width);
      found[x] = Math.max(found[x], Math.min(1, (after - before) / width));
      before = after;
    }
  }
  return found;
}
