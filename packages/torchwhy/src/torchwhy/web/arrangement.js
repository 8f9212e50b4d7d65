// @ts-check
// How the reader arranges the bands of a timeline: folded, hidden, pinned to the top, in which order, how high a row is.

/** Curves after this number are folded at first. */
const OPEN_CURVES = 8;

/** Heights of a row, CSS pixels. From the tallest on, events have a second line with their duration. */
export const ROW_HEIGHTS = Object.freeze({ low: 15, tall: 20, "two lines": 30 });

export class Arrangement {
  /** @param {import("./timeline.js").Timeline} timeline */
  constructor({ bands, counters }) {
    const many = new Set(bands.map((band) => band.source)).size > 1;
    const shut = (/** @type {string} */ side) => side === "frames" || (many && side !== "device"); // of ranks their devices
    const curves = counters.map((_, i) => bands.length + i); // counted on behind the bands, and arranged as they are
    /** Bands of which the heading alone is shown. */
    this.folded = new Set([...bands.flatMap((band, i) => (shut(band.side) ? [i] : [])), ...curves.slice(OPEN_CURVES)]);
    this.usual = new Set(this.folded);
    /** @type {Set<number>} */
    this.hidden = new Set();
    /** @type {Set<number>} */
    this.pinned = new Set();
    this.order = [...bands.keys(), ...curves];
    /** Height of a row. @type {number} */
    this.row = ROW_HEIGHTS.low;
    /** Whether bands without an event that stands out are hidden, while any does. */
    this.onlyLit = false;
  }

  /**
   * The bands that are shown, from the top.
   * @param {import("./timeline.js").Timeline} timeline
   * @param {import("./raster.js").Emphasis | null} lit
   */
  shown({ bands, rowBegins }, lit) {
    const stands = (/** @type {number} */ i) => {
      if (!this.onlyLit || !lit?.count || i >= bands.length) return true;
      const { firstRow, rows } = bands[i];
      return lit.before[rowBegins[firstRow + rows]] > lit.before[rowBegins[firstRow]];
    };
    return this.places().filter((band) => !this.hidden.has(band) && stands(band));
  }

  /** All bands from the top, pinned ones first. */
  places() {
    return [...this.order.filter((one) => this.pinned.has(one)), ...this.order.filter((one) => !this.pinned.has(one))];
  }

  /** Move a band above or below the next one that is shown. @param {number} band @param {1 | -1} way */
  move(band, way) {
    const like = this.order.filter((one) => this.pinned.has(one) === this.pinned.has(band) && !this.hidden.has(one));
    const other = like[like.indexOf(band) + way];
    if (other === undefined) return;
    this.order = this.order.filter((one) => one !== band);
    this.order.splice(this.order.indexOf(other) + (way > 0 ? 1 : 0), 0, band);
  }

  /** As it is in the address of the page: what differs from the beginning. @returns {string[]} */
  parts() {
    const folds = this.order.filter((band) => this.folded.has(band) !== this.usual.has(band)).sort((a, b) => a - b);
    const moved = this.order.some((band, i) => band !== i);
    const found = { fold: folds, hide: [...this.hidden], pin: [...this.pinned], order: moved ? this.order : [] };
    const lists = Object.entries(found).flatMap(([key, bands]) => (bands.length ? [`${key}=${bands.join(",")}`] : []));
    return [...lists, ...(this.row === ROW_HEIGHTS.low ? [] : [`row=${this.row}`]), ...(this.onlyLit ? ["only=1"] : [])];
  }

  /**
   * The inverse. Bands that there are not are passed over.
   * @param {(key: string) => number[]} numbers that stand in the address
   */
  read(numbers) {
    const bands = (/** @type {string} */ key) => numbers(key).filter((band) => this.order.includes(band));
    const all = [...this.order].sort((a, b) => a - b);
    const folds = new Set(bands("fold"));
    this.folded = new Set(all.filter((band) => this.usual.has(band) !== folds.has(band)));
    this.hidden = new Set(bands("hide"));
    this.pinned = new Set(bands("pin"));
    this.order = [...new Set([...bands("order"), ...all])];
    this.row = Object.values(ROW_HEIGHTS).find((height) => height === numbers("row")[0]) ?? ROW_HEIGHTS.low;
    this.onlyLit = numbers("only")[0] === 1;
  }
}
