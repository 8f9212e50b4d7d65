// @ts-check
// Mouse and touch: drag and wheel move the view, a click selects, the event under the pointer says its name.

import { duration } from "./amounts.js";

/** @param {import("./stage.js").Stage} stage */
export function followPointer(stage) {
  const { view, tip } = stage;
  /** @type {{x: number, y: number, t0: number, t1: number, top: number, moved: boolean} | null} */
  let drag = null;

  view.addEventListener(
    "wheel",
    (event) => {
      const share = event.offsetX / stage.width;
      if (event.ctrlKey || event.metaKey) stage.zoom(Math.exp(event.deltaY * 0.002), share);
      else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        stage.pan((event.deltaX || event.deltaY) / stage.width);
      } else if (!stage.scrollTo(stage.seen.y + event.deltaY)) return; // at its end the page scrolls on
      event.preventDefault();
    },
    { passive: false },
  );

  view.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    drag = { x: event.offsetX, y: event.offsetY, t0: stage.seen.t0, t1: stage.seen.t1, top: stage.seen.y, moved: false };
    view.setPointerCapture(event.pointerId);
  });

  view.addEventListener("pointermove", (event) => {
    if (drag) {
      const across = drag.x - event.offsetX;
      drag.moved ||= Math.hypot(across, drag.y - event.offsetY) > 3;
      if (!drag.moved) return;
      const time = (across / stage.width) * (drag.t1 - drag.t0);
      stage.look(drag.t0 + time, drag.t1 + time);
      stage.scrollTo(drag.top + drag.y - event.offsetY);
    }
    const under = drag ? -1 : stage.eventUnder(event.offsetX, event.offsetY);
    tip.hidden = under < 0;
    if (under < 0) return;
    const { timeline } = stage;
    tip.textContent = `${timeline.text(under).slice(0, 300)}: ${duration(timeline.end[under] - timeline.start[under])}`;
    tip.style.left = `${Math.max(0, Math.min(event.offsetX + 12, stage.width - tip.offsetWidth - 4))}px`;
    tip.style.top = `${Math.max(0, Math.min(event.offsetY + 16, stage.height - tip.offsetHeight - 4))}px`;
  });

  view.addEventListener("pointerup", (event) => {
    if (drag && !drag.moved) {
      const heading = stage.headingUnder(event.offsetY);
      if (heading >= 0) stage.fold(heading, !stage.folded.has(heading));
      else stage.select(stage.eventUnder(event.offsetX, event.offsetY));
    }
    drag = null;
  });
  view.addEventListener("pointercancel", () => (drag = null));
  view.addEventListener("pointerleave", () => (tip.hidden = true));
  view.addEventListener("dblclick", () => stage.selected >= 0 && stage.fit());
  tip.hidden = true;
}
