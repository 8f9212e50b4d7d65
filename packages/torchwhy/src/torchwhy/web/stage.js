// @ts-check
// One timeline on the screen: what part of it is seen, what is selected and emphasised, and drawing it.
// Walking from event to event is in walk.js, what stands beside it in panel.js.

import { Colours } from "./colours.js";
import { button, checkbox, element } from "./dom.js";
import { GAP, HEADING, ROW, layoutOf } from "./layout.js";
import { legendOf } from "./legend.js";
import { Minimap } from "./minimap.js";
import { Overlay, RULER } from "./overlay.js";
import { emphasis, paintRows } from "./raster.js";
import { isDark } from "./theme.js";
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
    this.allArrows = false;
    /** @type {"kind" | "name"} */
    this.colouring = "kind";
    this.path = false;
    const many = new Set(timeline.bands.map((band) => band.source)).size > 1;
    const shut = (/** @type {string} */ side) => side === "frames" || (many && side !== "device"); // of ranks their devices
    this.folded = new Set(timeline.bands.flatMap((band, i) => (shut(band.side) ? [i] : [])));
    this.layout = layoutOf(timeline, this.folded);
    /** Called when another part is seen, another event is selected, or others are emphasised. @type {Set<() => void>} */
    this.watchers = new Set();
    this.frame = 0;
    this.width = 1;
    this.height = 1;

    this.tools = element("div", { class: "tools" });
    this.canvas = element("canvas");
    this.above = element("canvas");
    this.tip = element("div", { class: "tip" });
    this.view = element(
      "div",
      { class: "view", tabindex: "0", role: "application", "aria-label": `Timeline${name && ` of ${name}`}` },
      this.canvas,
      this.above,
      this.tip,
    );
    const map = element("canvas", { class: "minimap", "aria-hidden": "true" });
    const notes = timeline.notes.map((text) => element("p", { class: "note" }, text));
    this.legend = element("ul", { class: "legend", "aria-label": "Colours" });
    this.panel = element("div", { class: "selected", tabindex: "0", role: "region", "aria-label": "What is selected" });
    this.speech = element("p", { class: "speech", "aria-live": "polite" });
    const drawing = element("div", { class: "drawing" }, map, this.view, this.legend);
    /** What is shown of the page, in a line. */
    this.bar = element("div", { class: "shown" });
    /** Who calls whom in a stretch of time, where that was asked for. */
    this.flame = element("div");
    place.classList.add("stage");
    place.replaceChildren(this.bar, this.tools, ...notes, drawing, this.panel, this.flame, this.speech);
    this.pixels = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d", { alpha: false }));
    this.strokes = /** @type {CanvasRenderingContext2D} */ (this.above.getContext("2d"));
    this.minimap = new Minimap(map, timeline, (t0, t1) => this.look(t0, t1), () => this.seen);
    this.addTools();
    this.place();
    this.fit();
    this.resize();
    new ResizeObserver(() => this.resize()).observe(this.view);
  }

  addTools() {
    const { timeline } = this;
    const zoom = element(
      "span",
      {},
      button("−", "Zoom out (S)", () => this.zoom(1.5)),
      button("+", "Zoom in (W)", () => this.zoom(1 / 1.5)),
      button("fit", "Show the whole window (F)", () => this.fit()),
    );
    const colours = element("select", { "aria-label": "Colours" });
    for (const [value, text] of [["kind", "colours by kind"], ["name", "colours by name"]]) {
      colours.append(element("option", { value }, text));
    }
    colours.addEventListener("change", () => {
      this.colouring = colours.value === "name" ? "name" : "kind";
      this.recolour();
    });
    const full = button("full screen", "Full screen", () => this.element.requestFullscreen?.());
    this.tools.append(zoom, full, colours);
    if (timeline.bands.some((band) => band.side === "frames")) {
      this.framesBox = checkbox("Python frames", false, (checked) => this.foldFrames(!checked));
      this.tools.append(this.framesBox);
    }
    if (timeline.work.length) {
      this.tools.append(
        checkbox("launches", false, (checked) => {
          this.allArrows = checked;
          this.chooseArrows();
          this.request();
        }),
      );
    }
    if (timeline.path.start.length) {
      this.tools.append(
        checkbox("critical path", false, (checked) => {
          this.path = checked;
          this.request();
        }),
      );
    }
  }

  /** Say a sentence to those who hear the page. @param {string} text */
  say(text) {
    this.speech.textContent = text;
  }

  changed() {
    for (const watcher of this.watchers) watcher();
    this.request();
  }

  // What is seen

  /** @param {number} t0 @param {number} t1 */
  look(t0, t1) {
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
    this.look(start - margin, end + margin);
  }

  /** @param {number} factor below 1 zooms in @param {number} at what stays where it is, 0 to 1 */
  zoom(factor, at = 0.5) {
    const { t0, t1 } = this.seen;
    const middle = t0 + (t1 - t0) * at;
    const length = Math.max((t1 - t0) * factor, SHORTEST);
    this.look(middle - length * at, middle + length * (1 - at));
  }

  /** @param {number} share of the width */
  pan(share) {
    const { t0, t1 } = this.seen;
    this.look(t0 + (t1 - t0) * share, t1 + (t1 - t0) * share);
  }

  /** Show the selected event, or without one, the window. */
  fit() {
    if (this.selected >= 0) {
      const { start, end } = this.timeline;
      const length = end[this.selected] - start[this.selected];
      this.look(start[this.selected] - length / 2, end[this.selected] + length / 2);
    } else {
      const [start, end] = this.window[1] > this.window[0] ? this.window : this.timeline.span;
      this.lookAt(start, end);
    }
  }

  /** @param {number} y @returns {boolean} whether there was anything to scroll */
  scrollTo(y) {
    const most = Math.max(0, this.layout.height - (this.height - RULER));
    const next = Math.min(Math.max(0, y), most);
    if (next === this.seen.y) return false;
    this.seen.y = next;
    this.request();
    return true;
  }

  /** Scroll an event into view; unfold its band if need be. @param {number} event */
  scrollToEvent(event) {
    const row = this.timeline.rowOf(event);
    const band = this.timeline.bandOf(row);
    if (this.folded.has(band)) this.fold(band, false);
    const top = this.layout.rowTop[row];
    const room = this.height - RULER;
    if (top - HEADING < this.seen.y || top + ROW > this.seen.y + room) this.scrollTo(top - room / 2);
  }

  /** @param {number} band @param {boolean} shut */
  fold(band, shut) {
    if (shut) this.folded.add(band);
    else this.folded.delete(band);
    this.place();
    const box = this.framesBox?.querySelector("input");
    if (box) box.checked = !this.timeline.bands.some((one, i) => one.side === "frames" && this.folded.has(i));
    this.scrollTo(this.seen.y);
    this.request();
  }

  /** @param {boolean} shut */
  foldFrames(shut) {
    this.timeline.bands.forEach((band, i) => {
      if (band.side === "frames") this.fold(i, shut);
    });
  }

  /** Lay the bands out again. */
  place() {
    this.layout = layoutOf(this.timeline, this.folded);
    this.view.style.maxHeight = `${this.layout.height + RULER + 2}px`;
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
      else this.look((start[event] + end[event] - t1 + t0) / 2, (start[event] + end[event] + t1 - t0) / 2);
    }
    this.select(event);
  }

  chooseArrows() {
    const { launch, work, start, end } = this.timeline;
    const { selected } = this;
    this.arrows = [];
    const row = selected < 0 ? -1 : this.timeline.rowOf(selected);
    const band = selected < 0 ? null : this.timeline.bands[this.timeline.bandOf(row)];
    for (let i = 0; i < work.length; i++) {
      const call = launch[i];
      const inside =
        band !== null &&
        start[call] >= start[selected] &&
        end[call] <= end[selected] &&
        call >= this.timeline.rowBegins[band.firstRow] &&
        call < this.timeline.rowBegins[band.firstRow + band.rows];
      if (this.allArrows || inside || work[i] === selected) this.arrows.push([call, work[i]]);
    }
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
    this.changed();
  }

  /** Measure a stretch of time, or none. @param {[number, number] | null} range */
  measure(range) {
    this.range = range;
    this.changed();
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

  /** The event at a place of the view, or -1. @param {number} x @param {number} y */
  eventUnder(x, y) {
    const { timeline, layout, seen } = this;
    const top = y - RULER + seen.y;
    const placed = layout.bands.find((one) => top >= one.top && top < one.top + one.height);
    if (y < RULER || !placed || placed.folded || top < placed.top + HEADING) return -1;
    const row = timeline.bands[placed.band].firstRow + Math.floor((top - placed.top - HEADING) / ROW);
    const time = this.timeAt(x);
    const exact = timeline.eventAt(row, time);
    if (exact >= 0) return exact;
    const slack = (1.5 * (seen.t1 - seen.t0)) / this.width;
    const near = timeline.eventAt(row, time + slack);
    return near >= 0 ? near : timeline.eventAt(row, time - slack);
  }

  /** The band whose heading is at a place of the view, or -1. @param {number} y */
  headingUnder(y) {
    const top = y - RULER + this.seen.y;
    const placed = this.layout.bands.find((one) => top >= one.top && top < one.top + HEADING + GAP);
    return y < RULER || !placed ? -1 : placed.band;
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
    this.frame ||= requestAnimationFrame(() => this.draw());
  }

  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    const { image, width, height, timeline, layout, seen, colours, lit } = this;
    if (!image || !colours) return;
    const pixels = new Uint32Array(image.data.buffer);
    pixels.fill(colours.look.background);
    const labels = paintRows(pixels, image.width, image.height, RULER, timeline, layout, seen, colours, lit, this.ratio);
    this.pixels.putImageData(image, 0, 0);
    new Overlay(this.strokes, width, height, timeline, layout, seen, colours).draw(labels, this);
    this.minimap.draw(this.stretches, this.lit);
  }
}
