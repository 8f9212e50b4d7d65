// @ts-check
// One timeline on the screen: what part of it is seen, what is selected and emphasised, and drawing it.
// Walking from event to event is in walk.js, what stands above it in tools.js, beside it in selection.js and range.js.

import { Arrangement } from "./arrangement.js";
import { arrowsOf, launchesOf } from "./arrows.js";
import { Colours } from "./colours.js";
import { element } from "./dom.js";
import { Glide } from "./glide.js";
import { HEADING, RULER, layoutOf, placeInView } from "./layout.js";
import { legendOf } from "./legend.js";
import { Marks } from "./marks.js";
import { Minimap } from "./minimap.js";
import { Overlay } from "./overlay.js";
import { emphasis, paintRows } from "./raster.js";
import { isDark } from "./theme.js";
import { addTools } from "./tools.js";
import { neighbour, nextLit, placeOf } from "./walk.js";

const MARGIN = 0.02;
const SHORTEST = 20;
/** Device pixels of a CSS pixel that are worth painting. */
const MOST_PIXELS = 2;

export class Stage {
  /**
   * @param {HTMLElement} place
   * @param {import("./timeline.js").Timeline} timeline
   * @param {string} name what it shows, where there are several
   */
  constructor(place, timeline, name) {
    this.element = place;
    this.timeline = timeline;
    /** @type {import("./raster.js").Seen} */
    this.seen = { t0: 0, t1: 1, y: 0 };
    this.glide = new Glide();
    this.selected = -1;
    /** @type {import("./raster.js").Emphasis | null} */
    this.lit = null;
    /** Where the view may go; null for the trace and a little more. @type {[number, number] | null} */
    this.reach = null;
    /** What findings are about, or the reader's own choice. */
    this.window = timeline.window;
    /** The stretch of time that the reader measures. @type {[number, number] | null} */
    this.range = null;
    /** Where the pointer is, in time. @type {number | null} */
    this.cursor = null;
    /** @type {import("./timeline.js").Stretches | null} */
    this.stretches = null;
    /** @type {[number, number][]} */
    this.arrows = [];
    /** Likewise of the event under the pointer. @type {[number, number][]} */
    this.hinted = [];
    this.pointed = -1;
    /** The last answer of `placeOf`. @type {{event: number, lit: import("./raster.js").Emphasis | null, place: number} | null} */
    this.placed = null;
    this.allArrows = false;
    /** @type {"kind" | "name"} */
    this.colouring = "kind";
    this.path = false;
    this.arrangement = new Arrangement(timeline);
    this.layout = layoutOf(timeline, this.arrangement);
    /** Called when another part is seen, another event is selected, or others are emphasised. @type {Set<() => void>} */
    this.watchers = new Set();
    this.frame = 0;
    this.width = 1;
    this.height = 1;

    this.tools = element("div", { class: "tools" });
    this.canvas = element("canvas");
    this.above = element("canvas");
    this.tip = element("div", { class: "tip" });
    /** Buttons at the heading under the pointer; the list of rows has them too. */
    this.rowTools = element("div", { class: "row-tools", "aria-hidden": "true" });
    this.rowTools.hidden = true;
    this.rowTools.addEventListener("pointerdown", (event) => event.stopPropagation());
    this.view = element(
      "div",
      { class: "view", tabindex: "0", role: "application", "aria-label": `Timeline${name && ` of ${name}`}` },
      this.canvas,
      this.above,
      this.tip,
      this.rowTools,
    );
    const map = element("canvas", { class: "minimap", "aria-hidden": "true" });
    const notes = timeline.notes.map((text) => element("p", { class: "note" }, text));
    this.legend = element("ul", { class: "legend", "aria-label": "Colours" });
    this.panel = element("div", { class: "selected", tabindex: "0", role: "region", "aria-label": `What is selected${name && ` in ${name}`}` });
    this.speech = element("p", { class: "speech", "aria-live": "polite" });
    const drawing = element("div", { class: "drawing" }, map, this.view, this.legend);
    /** What is shown of the page, in a line. */
    this.bar = element("div", { class: "shown" });
    /** Who calls whom in a stretch of time, where that was requested. */
    this.flame = element("div", { class: "made" });
    this.marks = new Marks(this);
    place.classList.add("stage");
    place.replaceChildren(this.bar, this.tools, ...notes, drawing, this.panel, this.marks.element, this.flame, this.speech);
    this.pixels = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d", { alpha: false }));
    this.strokes = /** @type {CanvasRenderingContext2D} */ (this.above.getContext("2d"));
    this.minimap = new Minimap(map, timeline, (t0, t1) => this.look(t0, t1), () => this.seen);
    addTools(this);
    this.place();
    this.fit();
    this.resize();
    new ResizeObserver(() => this.resize()).observe(this.view);
  }

  /** Announce a sentence to screen readers. @param {string} text */
  say(text) {
    this.speech.textContent = text;
  }

  changed() {
    for (const watcher of this.watchers) watcher();
    this.request();
  }

  // What is seen

  /** @param {number} t0 @param {number} t1 @param {boolean} [glides] whether the drawing goes there in a short movement */
  look(t0, t1, glides = false) {
    if (glides) this.glide.begin();
    else this.glide.end();
    const [first, last] = this.reach ?? this.timeline.span;
    const whole = Math.max(last - first, SHORTEST);
    const length = Math.min(Math.max(t1 - t0, SHORTEST), whole * 1.2);
    let start = (t0 + t1 - length) / 2;
    start = Math.min(Math.max(start, first - whole * 0.1), last + whole * 0.1 - length);
    this.seen = { ...this.seen, t0: start, t1: start + length };
    this.changed();
  }

  /** Show a stretch of time with a margin on both sides. @param {number} start @param {number} end */
  lookAt(start, end) {
    const margin = Math.max((end - start) * MARGIN, SHORTEST / 2);
    this.look(start - margin, end + margin, true);
  }

  /** @param {number} factor below 1 zooms in @param {number} at what stays where it is, 0 to 1 @param {boolean} [glides] */
  zoom(factor, at = 0.5, glides = false) {
    const { t0, t1 } = this.seen;
    const middle = t0 + (t1 - t0) * at;
    const length = Math.max((t1 - t0) * factor, SHORTEST);
    this.look(middle - length * at, middle + length * (1 - at), glides);
  }

  /** @param {number} share of the width @param {boolean} [glides] */
  pan(share, glides = false) {
    const { t0, t1 } = this.seen;
    this.look(t0 + (t1 - t0) * share, t1 + (t1 - t0) * share, glides);
  }

  /** Show what is measured, or the selected event, or the window. */
  fit() {
    if (this.range) this.lookAt(...this.range);
    else if (this.selected >= 0) {
      const { start, end } = this.timeline;
      const length = end[this.selected] - start[this.selected];
      this.look(start[this.selected] - length / 2, end[this.selected] + length / 2, true);
    } else {
      const [start, end] = this.window[1] > this.window[0] ? this.window : this.timeline.span;
      this.lookAt(start, end);
    }
  }

  /** @param {number} y @returns {boolean} whether there was anything to scroll */
  scrollTo(y) {
    const most = Math.max(0, this.layout.height - this.room());
    const next = Math.min(Math.max(0, y), most);
    if (next === this.seen.y) return false;
    this.seen.y = next;
    this.request();
    return true;
  }

  /** Pixels of the view in which rows scroll. */
  room() {
    return Math.max(0, this.height - RULER - this.layout.pane);
  }

  /** Scroll an event into view; unfold its band if need be, and show it where it is hidden. @param {number} event */
  scrollToEvent(event) {
    const row = this.timeline.rowOf(event);
    const band = this.timeline.bandOf(row);
    if (!this.layout.of[band]) this.arrange(({ hidden }) => hidden.delete(band));
    if (!this.layout.of[band]) this.arrange((arrangement) => (arrangement.onlyLit = false));
    const placed = /** @type {import("./layout.js").PlacedBand} */ (this.layout.of[band]);
    if (placed.folded) this.fold(band, false);
    if (placed.pinned) return;
    const top = placed.top + HEADING + (row - this.timeline.bands[band].firstRow) * this.layout.row;
    const room = this.room();
    if (top - HEADING < this.seen.y || top + this.layout.row > this.seen.y + room) this.scrollTo(top - room / 2);
  }

  /** Arrange the bands again. @param {(arrangement: Arrangement) => void} change */
  arrange(change) {
    change(this.arrangement);
    this.place();
    this.scrollTo(this.seen.y);
    this.changed();
  }

  /** @param {number} band @param {boolean} shut */
  fold(band, shut) {
    this.arrange(({ folded }) => (shut ? folded.add(band) : folded.delete(band)));
  }

  /** @param {boolean} shut */
  foldFrames(shut) {
    this.arrange(({ folded }) =>
      this.timeline.bands.forEach((band, i) => band.side === "frames" && (shut ? folded.add(i) : folded.delete(i))),
    );
  }

  /** Lay the bands out again. */
  place() {
    this.layout = layoutOf(this.timeline, this.arrangement, this.lit);
    this.view.style.maxHeight = `${this.layout.pane + this.layout.height + RULER + 2}px`;
  }

  // What is selected and emphasised

  /** @param {number} event -1 for none */
  select(event) {
    this.selected = event;
    this.chooseArrows();
    this.changed();
  }

  /** Select an event and bring it into view. @param {number} event */
  visit(event) {
    const { start, end } = this.timeline;
    const { t0, t1 } = this.seen;
    this.scrollToEvent(event);
    if (start[event] < t0 || end[event] > t1) {
      if (end[event] - start[event] > t1 - t0) this.lookAt(start[event], end[event]);
      else this.look((start[event] + end[event] - t1 + t0) / 2, (start[event] + end[event] + t1 - t0) / 2, true);
    }
    this.select(event);
  }

  chooseArrows() {
    this.arrows = arrowsOf(this.timeline, this.selected, this.allArrows);
  }

  /** Draw the arrows of the event under the pointer; -1 for none. @param {number} event */
  point(event) {
    if (event === this.pointed) return;
    this.pointed = event;
    this.hinted = launchesOf(this.timeline, event);
    this.request();
  }

  /** Let events stand out. @param {((event: number) => boolean) | Iterable<number> | null} which */
  emphasise(which) {
    if (which === null || typeof which === "function") return this.light(which && emphasis(this.timeline.count, which));
    const flags = new Uint8Array(this.timeline.count);
    for (const event of which) flags[event] = 1;
    this.light(emphasis(flags.length, (event) => flags[event] === 1));
  }

  /** @param {import("./raster.js").Emphasis | null} lit */
  light(lit) {
    this.lit = lit;
    if (this.arrangement.onlyLit) this.arrange(() => {});
    else this.changed();
  }

  /** Measure a stretch of time, or remove the measurement. @param {[number, number] | null} range */
  measure(range) {
    this.range = range;
    this.changed();
  }

  /** Show below the timeline what was made of it. @param {HTMLElement[]} parts */
  open(parts) {
    this.flame.replaceChildren(...parts);
    this.flame.scrollIntoView({ block: "start" });
  }

  next(/** @type {1 | -1} */ way) {
    const event = this.lit?.count ? nextLit(this, way) : neighbour(this, way);
    if (event >= 0) this.visit(event);
  }

  /** Which one of those that stand out an event is in time, from 1. @param {number} event */
  placeOf(event) {
    if (this.placed?.event !== event || this.placed.lit !== this.lit) {
      this.placed = { event, lit: this.lit, place: placeOf(this, event) };
    }
    return this.placed.place;
  }

  /** The band or curve at a place of the view, and how far below its top that is. @param {number} y */
  bandUnder(y) {
    const { layout, seen } = this;
    const pinned = y < RULER + layout.pane;
    for (const placed of y < RULER ? [] : [...layout.bands, ...layout.counters]) {
      const below = y - placeInView(layout, placed, seen);
      if (placed.pinned === pinned && below >= 0 && below < placed.height) return { placed, below };
    }
    return null;
  }

  /** The row at a height of the view, or -1. @param {number} y */
  rowUnder(y) {
    const found = this.bandUnder(y);
    const band = found && found.below >= HEADING ? this.timeline.bands[found.placed.band] : undefined;
    return found && band ? band.firstRow + Math.floor((found.below - HEADING) / this.layout.row) : -1;
  }

  /** The event at a place of the view, or -1. @param {number} x @param {number} y */
  eventUnder(x, y) {
    const { timeline, seen } = this;
    const row = this.rowUnder(y);
    if (row < 0) return -1;
    const time = this.timeAt(x);
    const exact = timeline.eventAt(row, time);
    if (exact >= 0) return exact;
    const slack = (1.5 * (seen.t1 - seen.t0)) / this.width;
    const near = timeline.eventAt(row, time + slack);
    return near >= 0 ? near : timeline.eventAt(row, time - slack);
  }

  /** The curve at a place of the view, or null. @param {number} y */
  curveUnder(y) {
    const found = this.bandUnder(y);
    return (found && this.timeline.counters[found.placed.band - this.timeline.bands.length]) ?? null;
  }

  /** The band or curve whose heading is at a place of the view, or -1. @param {number} y */
  headingUnder(y) {
    const found = this.bandUnder(y);
    return found && found.below < HEADING ? found.placed.band : -1;
  }

  /** @param {number} x */
  timeAt(x) {
    return this.seen.t0 + (x / this.width) * (this.seen.t1 - this.seen.t0);
  }

  // Drawing

  resize() {
    const ratio = devicePixelRatio || 1;
    this.ratio = Math.min(ratio, MOST_PIXELS);
    this.width = Math.max(1, this.view.clientWidth);
    this.height = Math.max(1, this.view.clientHeight);
    this.canvas.width = Math.round(this.width * this.ratio);
    this.canvas.height = Math.round(this.height * this.ratio);
    this.above.width = Math.round(this.width * ratio);
    this.above.height = Math.round(this.height * ratio);
    this.strokes.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.image = new ImageData(this.canvas.width, this.canvas.height);
    this.recolour();
  }

  recolour() {
    this.colours = new Colours(isDark(), this.timeline, this.colouring);
    if (this.legend.dataset.of !== this.colouring) {
      this.legend.dataset.of = this.colouring;
      this.legend.replaceChildren(...legendOf(this));
    }
    this.minimap.prepare(this.width, devicePixelRatio || 1, this.colours);
    this.draw();
  }

  /** Draw at the next frame. */
  request() {
    this.frame ||= requestAnimationFrame((now) => this.draw(now));
  }

  /** @param {number} [now] the time of the frame; without one what is seen is drawn, not the way to it */
  draw(now = Infinity) {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    const { image, width, height, timeline, layout, colours, lit } = this;
    const seen = this.glide.part(this.seen, now);
    if (this.glide.from) this.request();
    if (!image || !colours) return;
    const pixels = new Uint32Array(image.data.buffer);
    pixels.fill(colours.look.background);
    const labels = paintRows(pixels, image.width, image.height, RULER, timeline, layout, seen, colours, lit, this.ratio);
    this.pixels.putImageData(image, 0, 0);
    new Overlay(this.strokes, width, height, timeline, layout, seen, colours).draw(labels, this);
    this.minimap.draw(this);
  }
}
