// @ts-check
// The views that the reader came by, one after another: a way back, and forward again.

/** Milliseconds that a view stays as it is before it counts as one. */
const VIEW_SETTLED = 350;
const MOST_VIEWS = 200;

export class Views {
  /** @param {import("./stage.js").Stage} stage */
  constructor(stage) {
    this.stage = stage;
    /** @type {[number, number][]} */
    this.past = [];
    /** @type {[number, number][]} */
    this.future = [];
    this.now = this.view();
    this.timer = 0;
    stage.watchers.add(() => {
      clearTimeout(this.timer);
      if (this.isElsewhere()) this.timer = window.setTimeout(() => this.settle(), VIEW_SETTLED);
    });
  }

  /** @returns {[number, number]} */
  view() {
    return [this.stage.seen.t0, this.stage.seen.t1];
  }

  isElsewhere() {
    const [t0, t1] = this.view();
    return t0 !== this.now[0] || t1 !== this.now[1];
  }

  /** Count the view as one to come back to. */
  settle() {
    clearTimeout(this.timer);
    if (!this.isElsewhere()) return;
    this.past = [...this.past, this.now].slice(-MOST_VIEWS);
    this.future = [];
    this.now = this.view();
  }

  back() {
    this.settle();
    this.turn(this.past, this.future);
  }

  forward() {
    this.settle();
    this.turn(this.future, this.past);
  }

  /** @param {[number, number][]} from @param {[number, number][]} to */
  turn(from, to) {
    const view = from.pop();
    if (!view) return this.stage.say("There is no other view.");
    to.push(this.now);
    this.stage.look(...view, true);
    this.now = this.view();
  }
}
