// @ts-check
// Measuring with the pointer: from where it went down to where it is, or an end of what is measured already. Beyond an
// edge of the view that moves along.

import { endAt, momentAt } from "./moments.js";

/** Widths of the view that it moves by in a second, for each pixel that the pointer is beyond its edge. */
const SPEED = 0.012;
const FASTEST = 1.5;

/** @typedef {{x: number, y: number}} Point */

export class Measuring {
  /** @param {import("./stage.js").Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.anchor = 0;
    this.frame = 0;
    this.last = 0;
    /** @type {Point} */
    this.at = { x: 0, y: 0 };
    this.free = false;
  }

  /** The pointer goes down. @param {Point} at @param {boolean} free whether edges of events don't matter */
  begin(at, free) {
    const end = endAt(this.stage, at.x);
    const { range } = this.stage;
    this.anchor = range && end ? range[end === "start" ? 1 : 0] : this.moment(at, free);
  }

  /** @param {Point} at @param {boolean} free */
  moment(at, free) {
    return free ? this.stage.timeAt(at.x) : momentAt(this.stage, at);
  }

  /** The pointer is here now. @param {Point} at @param {boolean} free */
  move(at, free) {
    this.at = at;
    this.free = free;
    const [from, to] = [this.anchor, this.moment(at, free)].sort((a, b) => a - b);
    this.stage.measure([from, to]);
    if (this.beyond() && !this.frame) {
      this.last = performance.now();
      this.frame = requestAnimationFrame((now) => this.follow(now));
    }
  }

  /** The pointer went up. */
  end() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
  }

  /** Pixels that the pointer is beyond an edge of the view, negative on the left. */
  beyond() {
    return Math.min(0, this.at.x) + Math.max(0, this.at.x - this.stage.width);
  }

  /** @param {number} now */
  follow(now) {
    const speed = Math.min(FASTEST, Math.max(-FASTEST, this.beyond() * SPEED));
    this.frame = 0;
    this.stage.pan((speed * Math.max(0, now - this.last)) / 1000);
    this.last = now;
    if (speed) this.move(this.at, this.free);
  }
}
