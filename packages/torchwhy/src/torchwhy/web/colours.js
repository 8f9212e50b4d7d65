// @ts-check
// Colours of events as pixels, 0xAABBGGRR, and of what is drawn around them as text.

import { KIND_PLURALS } from "./timeline.js";

/** Red, green and blue of each kind of event; white text stands on them. */
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

/** Likewise of each kind of device work. */
const OF_WORK = /** @type {Record<string, [number, number, number]>} */ ({
  GEMM: [0x2c, 0x68, 0xb4],
  attention: [0xb3, 0x24, 0x6b],
  convolution: [0x0f, 0x74, 0x90],
  MoE: [0x5b, 0x4f, 0xc0],
  elementwise: [0x3f, 0x7f, 0x3a],
  reduction: [0x7d, 0x74, 0x11],
  norm: [0xb0, 0x57, 0x3c],
  embedding: [0x8c, 0x5a, 0x2b],
  copy: [0x6d, 0x61, 0x55],
  transfer: [0x9a, 0x3f, 0xa0],
  communication: [0xc0, 0x39, 0x2b],
  other: [0x5f, 0x6b, 0x78],
  unknown: [0x5f, 0x6b, 0x78],
});

/** Likewise of names, for the choice "colours by name". */
const OF_NAMES = /** @type {[number, number, number][]} */ (
  ["2c68b4", "b3246b", "0f7490", "5b4fc0", "3f7f3a", "7d7411", "b0573c", "8c5a2b", "9a3fa0", "c0392b", "2f7d6d", "5f6b78"].map(
    (text) => [0, 2, 4].map((at) => Number.parseInt(text.slice(at, at + 2), 16)),
  )
);

/** Slots of colours: those of kinds of events come first, then those of kinds of work, then those of names. */
const KINDS = 11;
const WORK_TEXTS = /** @type {Record<string, string>} */ ({
  copy: "copies in device memory",
  transfer: "copies to and from the device",
  other: "other kernels",
  unknown: "unknown kernels",
});
const WORKS = Object.keys(OF_WORK);
const PALETTE = [
  ...Array.from({ length: KINDS }, (_, kind) => OF_KIND[kind] ?? [0x80, 0x80, 0x80]),
  ...WORKS.map((work) => OF_WORK[work]),
  ...OF_NAMES,
];
const SHADES = [1, 0.92, 1.08, 0.96];
const LEVELS = 16;

/**
 * @typedef {object} Look
 * @property {boolean} dark
 * @property {string} text
 * @property {string} dim
 * @property {string} line
 * @property {string} backdrop
 * @property {string} stretch
 * @property {string} range
 * @property {string} path
 * @property {string} selected
 * @property {string} mark
 * @property {string} curve
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
  range: "rgba(44,104,180,.16)",
  path: "#c2185b",
  selected: "#000",
  mark: "#1c7a3d",
  curve: "#4d6f94",
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
  range: "rgba(121,184,255,.20)",
  path: "#ff6f9f",
  selected: "#fff",
  mark: "#63d08a",
  curve: "#86a9cf",
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
  /**
   * @param {boolean} dark
   * @param {import("./timeline.js").Timeline} timeline
   * @param {"kind" | "name"} by what has a colour
   */
  constructor(dark, timeline, by) {
    this.look = dark ? DARK : LIGHT;
    const paper = dark ? [0x14, 0x17, 0x1a] : [255, 255, 255];
    /** The slot of each name; 0 where that of the event's kind holds. */
    this.slots = Uint8Array.from(timeline.names, (name, i) => {
      if (by === "name") return KINDS + WORKS.length + (hash(name) % OF_NAMES.length);
      const work = WORKS.indexOf(timeline.category[i]);
      return work < 0 ? 0 : KINDS + work;
    });
    /** By slot and shade; `dimmed` where something else is emphasised. */
    this.full = new Uint32Array(PALETTE.length * SHADES.length);
    this.dimmed = new Uint32Array(PALETTE.length * SHADES.length);
    /** By slot and how much of a pixel is covered, 0 to 16. */
    this.covered = new Uint32Array(PALETTE.length * (LEVELS + 1));
    this.coveredDimmed = new Uint32Array(PALETTE.length * (LEVELS + 1));
    PALETTE.forEach((own, slot) => {
      const pale = mixed(own, paper, 0.22);
      SHADES.forEach((shade, i) => {
        const shaded = own.map((one) => Math.min(255, Math.round(one * shade)));
        this.full[slot * SHADES.length + i] = pixel(shaded);
        this.dimmed[slot * SHADES.length + i] = pixel(mixed(shaded, paper, 0.22));
      });
      for (let level = 0; level <= LEVELS; level++) {
        const share = 0.3 + (0.7 * level) / LEVELS;
        this.covered[slot * (LEVELS + 1) + level] = pixel(mixed(own, paper, share));
        this.coveredDimmed[slot * (LEVELS + 1) + level] = pixel(mixed(pale, paper, share));
      }
    });
    /** What the slots stand for, without those of names. */
    this.meanings = [
      ...Object.entries(KIND_PLURALS).map(([kind, text]) => ({ slot: Number(kind), text })),
      ...WORKS.map((text, i) => ({ slot: KINDS + i, text: WORK_TEXTS[text] ?? text })),
    ];
  }

  /** @param {number} kind @param {number} name */
  slotOf(kind, name) {
    return this.slots[name] || kind;
  }

  /**
   * @param {number} kind
   * @param {number} name
   * @param {boolean} dim
   */
  ofEvent(kind, name, dim) {
    return (dim ? this.dimmed : this.full)[this.slotOf(kind, name) * SHADES.length + (name % SHADES.length)];
  }

  /**
   * @param {number} kind
   * @param {number} name
   * @param {number} share of the pixel that is covered
   * @param {boolean} dim
   */
  ofPixel(kind, name, share, dim) {
    const level = Math.min(LEVELS, (share * LEVELS) | 0);
    return (dim ? this.coveredDimmed : this.covered)[this.slotOf(kind, name) * (LEVELS + 1) + level];
  }

  /** As CSS has it. @param {number} slot */
  css(slot) {
    return `rgb(${PALETTE[slot].join(" ")})`;
  }
}

/** The same number for the same text, everywhere. @param {string} text */
export function hash(text) {
  let found = 2166136261;
  for (let i = 0; i < text.length; i++) found = Math.imul(found ^ text.charCodeAt(i), 16777619);
  return found >>> 0;
}
