// @ts-check
// Where each band, row and curve stands, in pixels: pinned bands stay at the top, all others scroll below them.

import { headingOfCurve } from "./curves.js";

/** Height of the ruler with the steps' names, above the rows. */
export const RULER = 34;
export const HEADING = 18;
export const GAP = 6;
export const CURVE = 36;
export const HEADING_FONT = "600 11px system-ui, sans-serif";

/**
 * `top` is counted from the first of the pinned bands, or from the first of all others.
 * @typedef {{band: number, top: number, height: number, folded: boolean, pinned: boolean}} PlacedBand
 */
/** A curve; as `band` it is counted on behind the bands. @typedef {PlacedBand & {counter: number}} PlacedCounter */

/**
 * @typedef {object} Layout
 * @property {PlacedBand[]} bands that are shown, from the top
 * @property {(PlacedBand | undefined)[]} of each band and curve; none where it is hidden
 * @property {PlacedCounter[]} counters that are shown, from the top
 * @property {number} row height of a row
 * @property {number} pane height of the pinned bands together
 * @property {number} height of all others together
 */

/**
 * @param {import("./timeline.js").Timeline} timeline
 * @param {import("./arrangement.js").Arrangement} arrangement
 * @param {import("./raster.js").Emphasis | null} [lit] which events stand out
 * @returns {Layout}
 */
export function layoutOf(timeline, arrangement, lit = null) {
  const { row } = arrangement;
  /** @type {Layout} */
  const layout = { bands: [], of: Array(timeline.bands.length + timeline.counters.length), counters: [], row, pane: 0, height: 0 };
  for (const band of arrangement.shown(timeline, lit)) {
    const pinned = arrangement.pinned.has(band);
    const folded = arrangement.folded.has(band);
    const counter = band - timeline.bands.length;
    const height = HEADING + (folded ? 0 : counter >= 0 ? CURVE : timeline.bands[band].rows * row);
    const placed = { band, top: pinned ? layout.pane : layout.height, height, folded, pinned };
    if (counter >= 0) layout.counters.push({ ...placed, counter });
    else layout.bands.push(placed);
    layout.of[band] = placed;
    if (pinned) layout.pane += height + GAP;
    else layout.height += height + GAP;
  }
  return layout;
}

/**
 * Where a band or a curve stands in the view, pixels from the top of the ruler.
 * @param {Layout} layout
 * @param {{top: number, pinned?: boolean}} placed
 * @param {import("./raster.js").Seen} seen
 * @param {number} [ceiling]
 */
export function placeInView(layout, { top, pinned }, seen, ceiling = RULER) {
  return ceiling + (pinned ? top : layout.pane + top - seen.y);
}

/**
 * The top of a row in the view; NaN where it is folded or hidden.
 * @param {import("./timeline.js").Timeline} timeline
 * @param {Layout} layout
 * @param {number} row
 * @param {import("./raster.js").Seen} seen
 */
export function rowInView(timeline, layout, row, seen) {
  const band = timeline.bandOf(row);
  const placed = layout.of[band];
  if (!placed || placed.folded) return NaN;
  return placeInView(layout, placed, seen) + HEADING + (row - timeline.bands[band].firstRow) * layout.row;
}

/**
 * The bands or curves that reach into the part of the view where they may stand, which is `height` pixels high.
 * @template {{top: number, height: number, pinned?: boolean}} T
 * @param {Layout} layout
 * @param {T[]} placed
 * @param {import("./raster.js").Seen} seen
 * @param {number} height without the ruler
 * @returns {T[]}
 */
export function visible(layout, placed, seen, height) {
  const { pane } = layout;
  return placed.filter((one) => {
    const top = placeInView(layout, one, seen, 0);
    return top < height && (one.pinned || top + one.height > pane);
  });
}

/** What the heading of a band or a curve says. @param {import("./timeline.js").Timeline} timeline @param {PlacedBand} placed */
export function headingOf(timeline, { band, folded }) {
  const counter = band - timeline.bands.length;
  if (counter >= 0) return `${folded ? "▸" : "▾"} ${headingOfCurve(timeline.counters[counter])}`;
  return `${folded ? "▸" : "▾"} ${timeline.bandLabel(band)} (${timeline.bands[band].events.toLocaleString("en")})`;
}
