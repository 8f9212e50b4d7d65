// @ts-check
// Timelines of two traces that move together: the same length of time, as far behind each one's window's beginning.

/** @param {import("./stage.js").Stage[]} stages */
export function linkViews(stages) {
  if (stages.length < 2) return;
  const spans = stages.map(({ timeline: { span, window } }) => [span[0] - window[0], span[1] - window[0]]);
  const first = Math.min(...spans.map(([start]) => start));
  const last = Math.max(...spans.map(([, end]) => end));
  for (const stage of stages) stage.reach = [first + stage.timeline.window[0], last + stage.timeline.window[0]];
  let moving = false;
  for (const stage of stages) {
    stage.watchers.add(() => {
      if (moving) return;
      moving = true;
      const { t0, t1 } = stage.seen;
      for (const other of stages) {
        const shift = other.timeline.window[0] - stage.timeline.window[0];
        if (other !== stage && (other.seen.t0 !== t0 + shift || other.seen.t1 !== t1 + shift)) other.look(t0 + shift, t1 + shift, stage.glide.from !== null);
      }
      moving = false;
    });
  }
  const longest = stages.reduce((one, other) => (windowOf(other) > windowOf(one) ? other : one));
  longest.fit();
}

/** @param {import("./stage.js").Stage} stage */
function windowOf({ timeline: { window } }) {
  return window[1] - window[0];
}
