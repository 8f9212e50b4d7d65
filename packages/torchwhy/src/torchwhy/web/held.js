// @ts-check
// Keys that move the view for as long as they are held: one step at once, then without a stop, a little at each frame.

/** Milliseconds until a key counts as held. */
const HELD_MS = 150;
/** How long a step takes from then on. */
const STEP_MS = 90;
/** The longest time between two frames that counts: a page that was away doesn't jump. */
const FRAME_MS = 50;

export class HeldKeys {
  constructor() {
    /** By the key's place on the keyboard. @type {Map<string, {move: (steps: number) => void, since: number}>} */
    this.held = new Map();
    this.frame = 0;
    this.last = 0;
    addEventListener("keyup", ({ code }) => this.held.delete(code));
    addEventListener("blur", () => this.held.clear());
  }

  /** @param {string} code @param {(steps: number) => void} move */
  press(code, move) {
    this.held.set(code, { move, since: performance.now() });
    this.last = performance.now();
    this.frame ||= requestAnimationFrame((now) => this.tick(now));
  }

  /** @param {number} now */
  tick(now) {
    const steps = Math.min(FRAME_MS, Math.max(0, now - this.last)) / STEP_MS;
    this.last = now;
    for (const { move, since } of this.held.values()) if (now - since > HELD_MS) move(steps);
    this.frame = this.held.size ? requestAnimationFrame((next) => this.tick(next)) : 0;
  }
}
