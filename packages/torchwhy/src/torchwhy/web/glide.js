// @ts-check
// How the drawing gets from one part of the timeline to another: in a short movement, so that the eye keeps its place.

const LASTS_MS = 140;

/** @typedef {import("./raster.js").Seen} Seen */

export class Glide {
  constructor() {
    /** Where the movement began; null where nothing moves. @type {Seen | null} */
    this.from = null;
    this.began = 0;
    /** What was drawn last. @type {Seen | null} */
    this.drawn = null;
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
  }

  /** Begin at what is drawn now. */
  begin() {
    this.from = this.still.matches ? null : this.drawn;
    this.began = performance.now();
  }

  end() {
    this.from = null;
  }

  /**
   * What to draw: on the way to what is seen, or that itself.
   * @param {Seen} seen
   * @param {number} now
   */
  part(seen, now) {
    const share = Math.min(1, Math.max(0, (now - this.began) / LASTS_MS));
    if (share === 1) this.from = null;
    this.drawn = this.from ? between(this.from, seen, 1 - (1 - share) ** 3) : seen;
    return this.drawn;
  }
}

/**
 * A part between two: its length by equal factors, so that what stays in its place stays there all the way.
 * @param {Seen} from
 * @param {Seen} to
 * @param {number} share 0 to 1
 * @returns {Seen}
 */
export function between(from, to, share) {
  const [first, last] = [from.t1 - from.t0, to.t1 - to.t0];
  const length = first ** (1 - share) * last ** share;
  const moved = Math.abs(last - first) > 1e-6 * first ? (length - first) / (last - first) : share;
  const t0 = from.t0 + (to.t0 - from.t0) * moved;
  return { t0, t1: t0 + length, y: from.y + (to.y - from.y) * share };
}
