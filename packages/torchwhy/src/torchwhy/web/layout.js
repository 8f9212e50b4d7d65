// @ts-check
// Where each band, row and curve stands, in pixels from the top of all.

export const ROW = 15;
export const HEADING = 18;
export const GAP = 6;
export const CURVE = 36;

/** @typedef {{band: number, top: number, height: number, folded: boolean}} PlacedBand */
/** @typedef {{counter: number, top: number, height: number}} PlacedCounter */

/**
 * @typedef {object} Layout
 * @property {PlacedBand[]} bands
 * @property {PlacedCounter[]} counters
 * @property {Float64Array} rowTop of each row; NaN where its band is folded
 * @property {number} height of all
 */

/**
 * @param {import("./timeline.js").Timeline} timeline
 * @param {ReadonlySet<number>} folded numbers of bands
 * @returns {Layout}
 */
export function layoutOf(timeline, folded) {
  const rowTop = new Float64Array(timeline.rowBegins.length - 1).fill(NaN);
  let top = 0;
  const bands = timeline.bands.map((band, number) => {
    const shut = folded.has(number);
    if (!shut) for (let row = 0; row < band.rows; row++) rowTop[band.firstRow + row] = top + HEADING + row * ROW;
    const height = HEADING + (shut ? 0 : band.rows * ROW);
    const placed = { band: number, top, height, folded: shut };
    top += height + GAP;
    return placed;
  });
  const counters = timeline.counters.map((_, counter) => {
    const placed = { counter, top, height: HEADING + CURVE };
    top += placed.height + GAP;
    return placed;
  });
  return { bands, counters, rowTop, height: top };
}

/**
 * The bands that reach into [top, bottom).
 * @template {{top: number, height: number}} T
 * @param {T[]} placed
 * @param {number} top
 * @param {number} bottom
 * @returns {T[]}
 */
export function visible(placed, top, bottom) {
  return placed.filter((one) => one.top < bottom && one.top + one.height > top);
}
