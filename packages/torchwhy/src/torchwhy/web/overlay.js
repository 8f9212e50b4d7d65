// @ts-check
// What is drawn over the rows: names, headings, the ruler, stretches, arrows, the critical path, curves.

import { duration } from "./amounts.js";
import { drawCurves, drawValues } from "./curve_drawing.js";
import { HEADING, HEADING_FONT, RULER, headingOf, placeInView, rowInView, visible } from "./layout.js";
import { exactly, ticks } from "./ruler.js";
import { lowerBound } from "./sorted.js";

const MOST_ARROWS = 2000;
/** Arrows whose ends are named. */
const MOST_NAMED = 6;
const EVENTS = "11px system-ui, sans-serif";
/** Width of what shows how far the rows are scrolled. */
const THUMB = 5;
/** Height of a line of text on an event. */
const TEXT_LINE = 14;

/**
 * @typedef {object} Shown what a stage shows beside its events
 * @property {import("./timeline.js").Stretches | null} stretches
 * @property {number} selected
 * @property {[number, number][]} arrows from a launch to its work, each an event
 * @property {[number, number][]} hinted likewise, of the event under the pointer
 * @property {boolean} path
 * @property {[number, number] | null} range that is measured
 * @property {number | null} cursor where the pointer is, in time
 * @property {{all: import("./marks.js").Mark[]}} marks
 */

export class Overlay {
  /**
   * @param {CanvasRenderingContext2D} context in CSS pixels
   * @param {number} width
   * @param {number} height
   * @param {import("./timeline.js").Timeline} timeline
   * @param {import("./layout.js").Layout} layout
   * @param {import("./raster.js").Seen} seen
   * @param {import("./colours.js").Colours} colours
   */
  constructor(context, width, height, timeline, layout, seen, colours) {
    this.context = context;
    this.width = width;
    this.height = height;
    this.timeline = timeline;
    this.layout = layout;
    this.seen = seen;
    this.colours = colours;
    this.look = colours.look;
    this.scale = width / (seen.t1 - seen.t0);
    context.font = EVENTS;
    context.textBaseline = "middle";
    this.letter = context.measureText("aten::convolution_backward_kernel<float>").width / 40;
  }

  /** @param {number} time */
  x(time) {
    return (time - this.seen.t0) * this.scale;
  }

  /** The top of a band or curve. @param {{top: number, pinned?: boolean}} placed */
  y(placed) {
    return Math.round(placeInView(this.layout, placed, this.seen));
  }

  /**
   * @param {import("./raster.js").Label[]} labels
   * @param {Shown} shown
   */
  draw(labels, shown) {
    const { context, width, height } = this;
    const pane = RULER + this.layout.pane;
    context.clearRect(0, 0, width, height);
    this.within(RULER, height, () => this.drawSteps(RULER, height));
    this.within(pane, height, () => {
      this.drawLabels(labels.filter((label) => !label.pinned));
      if (shown.stretches) this.drawStretches(shown.stretches);
      drawCurves(this, false);
      this.drawHeadings(false);
      if (shown.path) this.drawPath();
    });
    this.within(RULER, pane, () => {
      this.drawLabels(labels.filter((label) => label.pinned));
      if (shown.stretches) this.drawStretches(shown.stretches);
      drawCurves(this, true);
      this.drawHeadings(true);
      context.fillStyle = this.look.dim;
      context.fillRect(0, pane - 3, width, 1);
    });
    this.within(RULER, height, () => {
      this.drawArrows(shown.arrows);
      this.drawArrows(shown.hinted);
      if (shown.selected >= 0) this.drawSelected(shown.selected);
      if (shown.arrows.length <= MOST_NAMED) this.drawEnds(shown.arrows, shown.selected);
    });
    this.drawThumb(pane);
    this.drawRuler();
    if (shown.range) this.drawRange(shown.range);
    this.drawMarks(shown.marks.all);
    if (shown.cursor !== null) this.drawCursor(shown.cursor);
  }

  /** Which part of the rows is in view, at the right edge, where not all of them are. @param {number} top */
  drawThumb(top) {
    const { context, look, width, height, layout, seen } = this;
    const room = height - top;
    if (room <= 0 || layout.height <= room) return;
    context.fillStyle = look.dim;
    context.globalAlpha = 0.55;
    context.fillRect(width - THUMB, top + (seen.y / layout.height) * room, THUMB - 1, Math.max(12, (room / layout.height) * room));
    context.globalAlpha = 1;
  }

  /** Draw between two heights alone. @param {number} top @param {number} bottom @param {() => void} draw */
  within(top, bottom, draw) {
    if (bottom <= top) return;
    const { context } = this;
    context.save();
    context.beginPath();
    context.rect(0, top, this.width, bottom - top);
    context.clip();
    draw();
    context.restore();
  }

  /** The reader's marks: a line over all rows, the number and the note in the ruler. @param {import("./marks.js").Mark[]} marks */
  drawMarks(marks) {
    const { context, look, height, width } = this;
    marks.forEach(({ time, note }, i) => {
      const x = Math.round(this.x(time));
      if (x < 0 || x > width) return;
      context.fillStyle = look.mark;
      context.fillRect(x, 0, 1, height);
      context.font = HEADING_FONT;
      const next = marks.reduce((least, other) => (other.time > time ? Math.min(least, this.x(other.time)) : least), width);
      const text = `${i + 1} ${note}`.trimEnd();
      const room = Math.min(context.measureText(text).width + 8, Math.max(16, next - x));
      context.fillRect(x, RULER - 15, room, 14);
      context.fillStyle = look.dark ? "#000" : "#fff";
      this.write(text, x + 4, RULER - 8, room - 6);
    });
  }

  /** What is measured: its edges, and its length on the ruler. @param {[number, number]} range */
  drawRange([start, end]) {
    const { context, look, height } = this;
    const left = this.x(start);
    const right = this.x(end);
    context.fillStyle = look.range;
    context.fillRect(left, 0, right - left, height);
    context.fillStyle = look.selected;
    context.fillRect(left, 0, 1, height);
    context.fillRect(right - 1, 0, 1, height);
    this.drawBox(duration(end - start), (left + right) / 2, 9);
  }

  /** A line over all rows, with the time, and the values of the curves. @param {number} time */
  drawCursor(time) {
    const { context, look, seen, height } = this;
    const x = Math.round(this.x(time));
    context.fillStyle = look.dim;
    context.fillRect(x, RULER, 1, height - RULER);
    this.drawBox(exactly(time, seen.t1 - seen.t0), x, RULER - 8);
    drawValues(this, time);
  }

  /** A text in a box around a place, within the view. @param {string} text @param {number} x @param {number} y */
  drawBox(text, x, y) {
    const { context, look, width } = this;
    context.font = EVENTS;
    const room = context.measureText(text).width + 8;
    const left = Math.max(0, Math.min(x - room / 2, width - room));
    context.fillStyle = look.backdrop;
    context.fillRect(left, y - 8, room, 16);
    context.fillStyle = look.text;
    context.fillText(text, left + 4, y);
  }

  /**
   * Write a text into a width: cut by what a letter takes about, since measuring each would take longer than all else,
   * and never wider.
   * @param {string} text
   * @param {number} x
   * @param {number} y
   * @param {number} width
   */
  write(text, x, y, width) {
    const letters = Math.floor(width / this.letter);
    if (letters < 2) return;
    this.context.fillText(text.length <= letters ? text : `${text.slice(0, letters - 1)}…`, x, y, width);
  }

  /** @param {import("./raster.js").Label[]} labels */
  drawLabels(labels) {
    const { context, look, layout, timeline } = this;
    context.font = EVENTS;
    const two = layout.row >= 2 * TEXT_LINE;
    for (const dim of [false, true]) {
      context.fillStyle = dim ? look.dim : "#fff";
      for (const label of labels) {
        if (label.dim !== dim) continue;
        const [x, y, room] = [label.x + 3, label.y + (two ? TEXT_LINE / 2 + 1 : layout.row / 2), label.width - 6];
        this.write(timeline.label(label.event), x, y, room);
        if (two) this.write(duration(timeline.end[label.event] - timeline.start[label.event]), x, y + TEXT_LINE - 2, room);
      }
    }
  }

  /** @param {boolean} pinned */
  drawHeadings(pinned) {
    const { context, timeline, layout, look, seen } = this;
    context.font = HEADING_FONT;
    for (const placed of visible(layout, [...layout.bands, ...layout.counters], seen, this.height - RULER)) {
      if (placed.pinned === pinned) this.heading(headingOf(timeline, placed), this.y(placed));
    }
    context.fillStyle = look.text;
  }

  /** @param {string} text @param {number} y */
  heading(text, y) {
    const { context, look } = this;
    context.fillStyle = look.backdrop;
    context.fillRect(0, y, context.measureText(text).width + 10, HEADING);
    context.fillStyle = look.text;
    context.fillText(text, 5, y + HEADING / 2);
  }

  /** Every second step is shaded. @param {number} top @param {number} bottom */
  drawSteps(top, bottom) {
    const { context, look, timeline } = this;
    context.fillStyle = look.shade;
    timeline.steps.forEach((step, i) => {
      const left = Math.max(0, this.x(step.start));
      const right = Math.min(this.width, this.x(step.end));
      if (i % 2 && right > left) context.fillRect(left, top, right - left, bottom - top);
    });
  }

  /** @param {import("./timeline.js").Stretches} stretches */
  drawStretches({ start, end }) {
    const { context, look, seen } = this;
    context.fillStyle = look.stretch;
    let reach = -1;
    for (let i = lowerBound(end, 0, end.length, seen.t0); i < start.length && start[i] < seen.t1; i++) {
      const left = Math.max(reach, this.x(start[i]));
      const right = Math.min(this.width + 1, Math.max(this.x(end[i]), left + 0.5));
      if (right - reach < 0.25) continue;
      context.fillRect(left, RULER, right - left, this.height);
      reach = right;
    }
  }

  drawPath() {
    const { context, look, timeline, seen } = this;
    const { start, end, event } = timeline.path;
    context.strokeStyle = look.path;
    context.lineWidth = 2.5;
    context.beginPath();
    let reach = -Infinity;
    let height = NaN;
    for (let i = lowerBound(end, 0, end.length, seen.t0); i < start.length && start[i] < seen.t1; i++) {
      const to = Math.min(this.width + 5, this.x(end[i]));
      const found = event[i] >= 0 ? this.middleOfBand(event[i]) : height;
      if (Number.isNaN(found) || (to - reach < 0.3 && found === height)) continue;
      const from = Math.max(-5, this.x(start[i]));
      if (Number.isNaN(height)) context.moveTo(from, found);
      else context.lineTo(from, found);
      context.lineTo(to, found);
      height = found;
      reach = to;
    }
    context.stroke();
  }

  /** Just below the heading of an event's band; NaN where that is hidden. @param {number} event */
  middleOfBand(event) {
    const placed = this.layout.of[this.timeline.bandOf(this.timeline.rowOf(event))];
    return placed ? this.y(placed) + HEADING - 1 : NaN;
  }

  /** The middle of an event's row, or of its band's heading where that is folded; NaN where it is hidden. @param {number} event */
  middleOfRow(event) {
    const { timeline, layout, seen } = this;
    const middle = Math.round(rowInView(timeline, layout, timeline.rowOf(event), seen)) + layout.row / 2;
    return Number.isNaN(middle) ? this.middleOfBand(event) - HEADING / 2 : middle;
  }

  /**
   * Name what the arrows of the selected event lead to and come from; of what is out of view also how far away it is.
   * @param {[number, number][]} arrows
   * @param {number} selected
   */
  drawEnds(arrows, selected) {
    const { timeline, width, height, layout } = this;
    for (const [first, last] of arrows) {
      if (selected !== first && selected !== last) continue;
      const other = selected === first ? last : first;
      const x = this.x(timeline.start[other]);
      const y = this.middleOfRow(other) - layout.row / 2 - 8;
      if (Number.isNaN(y)) continue;
      const away = duration(Math.abs(timeline.start[other] - timeline.start[selected]));
      const name = timeline.label(other).slice(0, 60);
      const text = x < 0 ? `‹ ${name}, ${away} before` : x > width ? `${name}, ${away} later ›` : name;
      this.drawBox(text, Math.min(Math.max(x, 0), width), Math.min(Math.max(y, RULER + 8), height - 9));
    }
  }

  /** @param {[number, number][]} arrows */
  drawArrows(arrows) {
    const { context, look, timeline, seen } = this;
    const { start, end } = timeline;
    context.strokeStyle = look.text;
    context.fillStyle = look.text;
    context.lineWidth = 1;
    context.globalAlpha = arrows.length > 50 ? 0.4 : 0.9;
    let drawn = 0;
    for (const [launch, work] of arrows) {
      if (Math.max(end[launch], start[work]) < seen.t0 || Math.min(start[launch], start[work]) > seen.t1) continue;
      const from = [this.x(start[launch]), this.middleOfRow(launch)];
      const to = [this.x(start[work]), this.middleOfRow(work)];
      if (Number.isNaN(from[1] + to[1]) || drawn++ >= MOST_ARROWS) continue;
      const bend = Math.max(12, Math.min(60, Math.abs(to[0] - from[0]) / 2));
      context.beginPath();
      context.moveTo(from[0], from[1]);
      context.bezierCurveTo(from[0] + bend, from[1], to[0] - bend, to[1], to[0], to[1]);
      context.stroke();
      context.beginPath();
      context.moveTo(to[0], to[1]);
      context.lineTo(to[0] - 6, to[1] - 3);
      context.lineTo(to[0] - 6, to[1] + 3);
      context.fill();
    }
    context.globalAlpha = 1;
  }

  /** @param {number} event */
  drawSelected(event) {
    const { context, look, timeline, layout } = this;
    const middle = this.middleOfRow(event);
    const placed = layout.of[timeline.bandOf(timeline.rowOf(event))];
    if (!placed || placed.folded || (!placed.pinned && middle < RULER + layout.pane)) return;
    const height = layout.row;
    const left = Math.max(-4, this.x(timeline.start[event]));
    const right = Math.min(this.width + 4, Math.max(this.x(timeline.end[event]), left + 2));
    context.strokeStyle = look.dark ? "#000" : "#fff";
    context.lineWidth = 4;
    context.strokeRect(left, middle - height / 2, right - left, height - 1);
    context.strokeStyle = look.selected;
    context.lineWidth = 2;
    context.strokeRect(left, middle - height / 2, right - left, height - 1);
  }

  drawRuler() {
    const { context, look, timeline, seen, width } = this;
    context.fillStyle = look.dark ? "#1b2026" : "#f5f7f9";
    context.fillRect(0, 0, width, RULER);
    this.drawSteps(0, RULER);
    context.font = EVENTS;
    context.fillStyle = look.dim;
    for (const { time, text } of ticks(seen.t0, seen.t1, width / 110)) {
      const x = Math.round(this.x(time));
      context.fillRect(x, 20, 1, RULER - 20);
      context.fillText(text, x + 4, 27);
    }
    context.fillStyle = look.text;
    for (const step of timeline.steps) {
      const left = this.x(step.start);
      const right = Math.min(this.x(step.end), width);
      if (right < 0 || left > width || right - left < 14) continue;
      context.fillRect(left, 0, 1, 16);
      const from = Math.max(left, 0) + 4;
      this.write(`${step.name} ${duration(step.end - step.start)}`, from, 9, right - from - 4);
    }
    context.fillStyle = look.line;
    context.fillRect(0, RULER - 1, width, 1);
  }
}
