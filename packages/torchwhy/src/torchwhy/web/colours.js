// @ts-check
// Colours of events as pixels, 0xAABBGGRR, and of what is drawn around them as text.

/** Red, green and blue of each kind; white text stands on them. */
const OF_KIND = /** @type {Record<number, [number, number, number]>} */ ({
  1: [0x2f, 0x7d, 0x6d],
  2: [0x7d, 0x57, 0xa6],
  3: [0x9a, 0x68, 0x1f],
  4: [0x5f, 0x6b, 0x78],
  5: [0x2c, 0x68, 0xb4],
  6: [0xb0, 0x3c, 0x74],
  7: [0x85, 0x4a, 0x2e],
  8: [0x4c, 0x82, 0x42],
  10: [0xa8, 0x32, 0x32],
});
const SHADES = [1, 0.88, 1.14, 0.94];
const LEVELS = 16;

/**
 * @typedef {object} Look
 * @property {boolean} dark
 * @property {string} text
 * @property {string} dim
 * @property {string} line
 * @property {string} backdrop
 * @property {string} stretch
 * @property {string} path
 * @property {string} selected
 * @property {string} shade of what lies outside the window, and of every second step
 * @property {number} background a pixel
 */

/** @type {Look} */
const LIGHT = {
  dark: false,
  text: "#1b1f23",
  dim: "#57606a",
  line: "#d8dde2",
  backdrop: "rgba(255,255,255,.86)",
  stretch: "rgba(230,90,20,.18)",
  path: "#c2185b",
  selected: "#000",
  shade: "rgba(90,100,110,.10)",
  background: pixel([255, 255, 255]),
};

/** @type {Look} */
const DARK = {
  dark: true,
  text: "#e6e8ea",
  dim: "#9aa4ae",
  line: "#343b43",
  backdrop: "rgba(20,23,26,.86)",
  stretch: "rgba(255,150,80,.24)",
  path: "#ff6f9f",
  selected: "#fff",
  shade: "rgba(160,170,180,.10)",
  background: pixel([0x14, 0x17, 0x1a]),
};

/** @param {number[]} colour */
function pixel([red, green, blue]) {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/**
 * @param {number[]} over
 * @param {number[]} under
 * @param {number} share
 */
function mixed(over, under, share) {
  return over.map((one, i) => Math.round(one * share + under[i] * (1 - share)));
}

export class Colours {
  /** @param {boolean} dark */
  constructor(dark) {
    this.look = dark ? DARK : LIGHT;
    const paper = dark ? [0x14, 0x17, 0x1a] : [255, 255, 255];
    const kinds = 1 + Math.max(...Object.keys(OF_KIND).map(Number));
    /** By kind and shade; `dimmed` where something else is emphasised. */
    this.full = new Uint32Array(kinds * SHADES.length);
    this.dimmed = new Uint32Array(kinds * SHADES.length);
    /** By kind and how much of a pixel is covered, 0 to 16. */
    this.covered = new Uint32Array(kinds * (LEVELS + 1));
    this.coveredDimmed = new Uint32Array(kinds * (LEVELS + 1));
    for (let kind = 0; kind < kinds; kind++) {
      const own = OF_KIND[kind] ?? [0x80, 0x80, 0x80];
      const pale = mixed(own, paper, 0.22);
      SHADES.forEach((shade, i) => {
        const shaded = own.map((one) => Math.min(255, Math.round(one * shade)));
        this.full[kind * SHADES.length + i] = pixel(shaded);
        this.dimmed[kind * SHADES.length + i] = pixel(mixed(shaded, paper, 0.22));
      });
      for (let level = 0; level <= LEVELS; level++) {
        const share = 0.3 + (0.7 * level) / LEVELS;
        this.covered[kind * (LEVELS + 1) + level] = pixel(mixed(own, paper, share));
        this.coveredDimmed[kind * (LEVELS + 1) + level] = pixel(mixed(pale, paper, share));
      }
    }
  }

  /**
   * @param {number} kind
   * @param {number} name
   * @param {boolean} dim
   */
  ofEvent(kind, name, dim) {
    return (dim ? this.dimmed : this.full)[kind * SHADES.length + (name % SHADES.length)];
  }

  /**
   * @param {number} kind
   * @param {number} share of the pixel that is covered
   * @param {boolean} dim
   */
  ofPixel(kind, share, dim) {
    const level = Math.min(LEVELS, (share * LEVELS) | 0);
    return (dim ? this.coveredDimmed : this.covered)[kind * (LEVELS + 1) + level];
  }

  /** As CSS has it. @param {number} kind */
  css(kind) {
    return `rgb(${(OF_KIND[kind] ?? [0x80, 0x80, 0x80]).join(" ")})`;
  }
}
