// @ts-check
// Rows of events as pixels. What is drawn grows with the pixels, not with the events.

import { HEADING, placeInView, visible } from "./layout.js";
import { gallop, lowerBound } from "./sorted.js";

/** Narrower events of a row share a pixel. */
const NARROW = 1.5;
/** CSS pixels from which on an event has its name on it. */
const NAMED = 40;

/** What is seen: [t0, t1) in nanoseconds, and `y`, pixels from the top of all. @typedef {{t0: number, t1: number, y: number}} Seen */

/** @typedef {{x: number, width: number, y: number, event: number, dim: boolean, pinned: boolean}} Label */

/**
 * Which events stand out; `before` has how many do before each event.
 * @typedef {{before: Uint32Array, count: number}} Emphasis
 */

/**
 * @param {number} count of events
 * @param {(event: number) => boolean} stands whether one stands out
 * @returns {Emphasis}
 */
export function emphasis(count, stands) {
  const before = new Uint32Array(count + 1);
  let found = 0;
  for (let i = 0; i < count; i++) {
    if (stands(i)) found++;
    before[i + 1] = found;
  }
  return { before, count: found };
}

/**
 * The same by name, without a call for each event: a search asks at every key.
 * @param {{count: number, name: Uint32Array, kind: Uint8Array}} timeline
 * @param {Uint8Array} chosen 1 for each name that stands out
 * @param {number} only the kind of events that do; 0 for all
 * @returns {Emphasis}
 */
export function emphasisOfNames({ count, name, kind }, chosen, only) {
  const before = new Uint32Array(count + 1);
  let found = 0;
  for (let i = 0; i < count; i++) {
    if (!only || kind[i] === only) found += chosen[name[i]];
    before[i + 1] = found;
  }
  return { before, count: found };
}

/**
 * Paint all visible rows.
 * @param {Uint32Array} pixels width times height device pixels, filled with the background
 * @param {number} width
 * @param {number} height
 * @param {number} ceiling CSS pixels at the top that are kept free
 * @param {import("./timeline.js").Timeline} timeline
 * @param {import("./layout.js").Layout} layout
 * @param {Seen} seen
 * @param {import("./colours.js").Colours} colours
 * @param {Emphasis | null} lit all others are dimmed
 * @param {number} [ratio] device pixels of a CSS pixel
 * @returns {Label[]} events wide enough for their name, in CSS pixels
 */
export function paintRows(pixels, width, height, ceiling, timeline, layout, seen, colours, lit, ratio = 1) {
  /** @type {Label[]} */
  const labels = [];
  for (const placed of visible(layout, layout.bands, seen, height / ratio - ceiling)) {
    if (placed.folded) continue;
    const band = timeline.bands[placed.band];
    const first = placeInView(layout, placed, seen, ceiling) + HEADING;
    const free = Math.round((ceiling + (placed.pinned ? 0 : layout.pane)) * ratio);
    for (let row = 0; row < band.rows; row++) {
      const y = Math.round(first + row * layout.row);
      const top = Math.max(free, Math.round(y * ratio));
      const bottom = Math.min(height, Math.round((y + layout.row - 1) * ratio));
      if (y * ratio >= height) break;
      if (bottom <= top) continue;
      const wide = paintRow(pixels, width, top, bottom, timeline, band.firstRow + row, seen, colours, lit, NAMED * ratio);
      for (const one of wide) labels.push({ ...one, x: one.x / ratio, width: one.width / ratio, y, pinned: placed.pinned });
    }
  }
  return labels;
}

/**
 * @param {Uint32Array} pixels
 * @param {number} width
 * @param {number} top
 * @param {number} bottom
 * @param {import("./timeline.js").Timeline} timeline
 * @param {number} row
 * @param {Seen} seen
 * @param {import("./colours.js").Colours} colours
 * @param {Emphasis | null} lit
 * @param {number} named device pixels from which on an event has its name on it
 */
function paintRow(pixels, width, top, bottom, timeline, row, seen, colours, lit, named) {
  const wide = [];
  const { start, end, covered, kind, name, rowBegins } = timeline;
  const { t0, t1 } = seen;
  const scale = width / (t1 - t0);
  const last = rowBegins[row + 1];
  let i = lowerBound(end, rowBegins[row], last, t0);
  while (i < last && start[i] < t1) {
    const left = (start[i] - t0) * scale;
    const right = (end[i] - t0) * scale;
    let from = Math.max(0, Math.floor(left));
    let to = from + 1;
    let colour = 0;
    if (right - left >= NARROW) {
      from = Math.max(0, Math.round(left));
      to = Math.min(width, Math.max(from + 1, Math.round(right) - (right - left > 3 ? 1 : 0)));
      const dim = lit !== null && lit.before[i + 1] === lit.before[i];
      colour = colours.ofEvent(kind[i], name[i], dim);
      if (to - from > named) wide.push({ x: from, width: to - from, event: i, dim });
      i++;
    } else {
      let next = Math.max(i + 1, gallop(start, i, last, t0 + to / scale));
      // The last that begins within this pixel may be wide: it is drawn by itself.
      if (next - 1 > i && (end[next - 1] - start[next - 1]) * scale >= NARROW) next--;
      const dim = lit !== null && lit.before[next] === lit.before[i];
      const shown = lit !== null && !dim ? lowerBound(lit.before, i, next, lit.before[i] + 1) - 1 : i;
      colour = colours.ofPixel(kind[shown], name[shown], dim || lit === null ? (covered[next] - covered[i]) * scale : 1, dim);
      i = next;
    }
    if (from >= width) break;
    if (to - from < 12) {
      for (let line = top * width; line < bottom * width; line += width) {
        for (let x = line + from; x < line + to; x++) pixels[x] = colour;
      }
    } else {
      for (let line = top * width; line < bottom * width; line += width) pixels.fill(colour, line + from, line + to);
    }
  }
  return wide;
}
