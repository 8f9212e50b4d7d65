// @ts-check
// Timelines of two traces that move together: the same length of time, as far behind each one's window's beginning.

/** @param {import("./stage.js").Stage[]} stages */
export function linkViews(stages) {
  let moving = false;
  for (const stage of stages) {
    stage.watchers.add(() => {
      if (moving) return;
      moving = true;
      const { t0, t1 } = stage.seen;
      for (const other of stages) {
        const shift = other.timeline.window[0] - stage.timeline.window[0];
        if (other !== stage && other.seen.t0 !== t0 + shift) other.look(t0 + shift, t1 + shift);
      }
      moving = false;
    });
  }
}
