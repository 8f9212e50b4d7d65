// @ts-check
// One timeline on the screen: what part of it is seen, what is selected and emphasised, and drawing it.

import { Colours } from "./colours.js";
import { button, checkbox, element } from "./dom.js";
import { GAP, HEADING, ROW, layoutOf } from "./layout.js";
import { Minimap } from "./minimap.js";
import { Overlay, RULER } from "./overlay.js";
import { emphasis, paintRows } from "./raster.js";
import { isDark } from "./theme.js";

const MARGIN = 0.02;
const SHORTEST = 20;

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
    /** @type {Uint32Array | null} */
    this.litInTime = null;
    /** @type {import("./timeline.js").Stretches | null} */
    this.stretches = null;
    /** @type {[number, number][]} */
    this.arrows = [];
    this.allArrows = false;
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
    this.panel = element("div", { class: "selected" });
    this.speech = element("p", { class: "speech", "aria-live": "polite" });
    place.replaceChildren(this.tools, ...notes, map, this.view, this.panel, this.speech);
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
    this.tools.append(zoom);
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
    const [first, last] = this.timeline.span;
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
      const [start, end] = this.timeline.window[1] > this.timeline.window[0] ? this.timeline.window : this.timeline.span;
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
    this.litInTime = null;
    this.lit = null;
    if (which !== null) {
      const flags = new Uint8Array(this.timeline.count);
      if (typeof which === "function") for (let i = 0; i < flags.length; i++) flags[i] = which(i) ? 1 : 0;
      else for (const event of which) flags[event] = 1;
      this.lit = emphasis(flags);
    }
    this.changed();
  }

  /** The emphasised events in order of time. */
  emphasised() {
    const { lit } = this;
    if (!lit) return new Uint32Array(0);
    if (!this.litInTime) {
      const found = new Uint32Array(lit.count);
      for (let i = 0, n = 0; n < found.length; i++) if (lit.before[i + 1] > lit.before[i]) found[n++] = i;
      const { start } = this.timeline;
      this.litInTime = found.sort((a, b) => start[a] - start[b] || a - b);
    }
    return this.litInTime;
  }

  /** Select the next emphasised event in time, or without any, the neighbour in the row. @param {1 | -1} way */
  next(way) {
    const { timeline, selected } = this;
    const events = this.emphasised();
    if (events.length) {
      const at = selected < 0 ? -1 : events.indexOf(selected);
      if (at >= 0) return this.visit(events[(at + way + events.length) % events.length]);
      const from = selected < 0 ? this.seen.t0 : timeline.start[selected];
      const after = events.findIndex((event) => timeline.start[event] >= from);
      const next = way > 0 ? (after < 0 ? 0 : after) : (after < 0 ? events.length : after) - 1;
      return this.visit(events[(next + events.length) % events.length]);
    }
    return this.walk(way);
  }

  /** Select the neighbour in the row. @param {1 | -1} way */
  walk(way) {
    const { timeline, selected } = this;
    if (selected < 0) return this.first();
    const row = timeline.rowOf(selected);
    const next = selected + way;
    if (next >= timeline.rowBegins[row] && next < timeline.rowBegins[row + 1]) this.visit(next);
  }

  /** Select the nearest event in a row above or below. @param {1 | -1} way */
  climb(way) {
    const { timeline, selected } = this;
    if (selected < 0) return this.first();
    const middle = (Math.max(timeline.start[selected], this.seen.t0) + Math.min(timeline.end[selected], this.seen.t1)) / 2;
    const rows = timeline.rowBegins.length - 1;
    for (let row = timeline.rowOf(selected) + way; row >= 0 && row < rows; row += way) {
      if (Number.isNaN(this.layout.rowTop[row])) continue;
      let next = timeline.eventAt(row, timeline.start[selected]);
      for (let i = timeline.rowBegins[row]; next < 0 && i < timeline.rowBegins[row + 1]; i++) {
        if (timeline.end[i] >= timeline.start[selected]) next = i; // the first that begins after it
      }
      if (next >= 0 && timeline.start[next] <= Math.max(middle, timeline.end[selected])) return this.visit(next);
    }
  }

  /** Select the first event in view. */
  first() {
    const { timeline, layout } = this;
    for (let row = 0; row + 1 < timeline.rowBegins.length; row++) {
      if (Number.isNaN(layout.rowTop[row])) continue;
      for (let i = timeline.rowBegins[row]; i < timeline.rowBegins[row + 1]; i++) {
        if (timeline.end[i] > this.seen.t0) {
          if (timeline.start[i] < this.seen.t1) return this.visit(i);
          break;
        }
      }
    }
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
    this.width = Math.max(1, this.view.clientWidth);
    this.height = Math.max(1, this.view.clientHeight);
    this.canvas.width = this.width;
    this.canvas.height = this.height;
    this.above.width = Math.round(this.width * ratio);
    this.above.height = Math.round(this.height * ratio);
    this.strokes.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.image = new ImageData(this.width, this.height);
    this.recolour();
  }

  recolour() {
    this.colours = new Colours(isDark());
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
    const labels = paintRows(pixels, width, height, RULER, timeline, layout, seen, colours, lit);
    this.pixels.putImageData(image, 0, 0);
    new Overlay(this.strokes, width, height, timeline, layout, seen, colours).draw(labels, this);
    this.minimap.draw(this.stretches);
  }
}
