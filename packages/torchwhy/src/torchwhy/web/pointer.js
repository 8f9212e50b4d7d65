// @ts-check
// Mouse and touch: a drag measures a stretch of time (with Shift or the middle button it moves the view), the wheel scrolls and zooms, a click
// selects, the event under the pointer says its name. On a touch screen one finger moves along, two zoom and scroll.

import { glanceAtCurve } from "./curves.js";
import { RULER } from "./layout.js";
import { Measuring } from "./measuring.js";
import { endAt } from "./moments.js";
import { followHeading } from "./rowlist.js";
import { glance } from "./selection.js";

const STILL = 3;

/** @typedef {{x: number, y: number}} Point */

/** @param {import("./stage.js").Stage} stage */
export function followPointer(stage) {
  const { view, tip } = stage;
  /** Fingers and the mouse, where they are now. @type {Map<number, Point>} */
  const down = new Map();
  /** Where the gesture began. @type {{at: Point, distance: number, t0: number, t1: number, top: number, moved: boolean, pans: boolean} | null} */
  let begun = null;
  const measuring = new Measuring(stage);

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

  const begin = (pans = false) => {
    const points = [...down.values()];
    begun = points.length
      ? {
          at: middleOf(points),
          distance: distanceOf(points),
          t0: stage.seen.t0,
          t1: stage.seen.t1,
          top: stage.seen.y,
          moved: begun?.moved ?? false,
          pans: begun?.pans ?? pans,
        }
      : null;
  };

  view.addEventListener("pointerdown", (event) => {
    if (event.button > 1) return;
    down.set(event.pointerId, pointOf(event, view));
    view.setPointerCapture(event.pointerId);
    if (down.size === 1) begun = null;
    begin(event.button === 1 || event.shiftKey);
    if (begun) measuring.begin(begun.at, event.altKey);
  });

  view.addEventListener("pointermove", (event) => {
    const here = pointOf(event, view);
    if (down.has(event.pointerId)) down.set(event.pointerId, here);
    if (begun && down.size) drag(event);
    hover(event, here);
  });

  /** @param {PointerEvent} event */
  const drag = (event) => {
    if (!begun) return;
    const points = [...down.values()];
    const at = middleOf(points);
    begun.moved ||= points.length > 1 || Math.hypot(at.x - begun.at.x, at.y - begun.at.y) > STILL;
    if (!begun.moved) return;
    const { t0, t1 } = begun;
    const timeOf = (/** @type {number} */ x) => t0 + (x / stage.width) * (t1 - t0);
    if (points.length > 1) {
      const length = (t1 - t0) * Math.min(20, begun.distance / Math.max(1, distanceOf(points)));
      const start = timeOf(begun.at.x) - (at.x / stage.width) * length;
      stage.look(start, start + length);
      stage.scrollTo(begun.top + begun.at.y - at.y);
    } else if (event.pointerType === "mouse" && !begun.pans) {
      measuring.move(at, event.altKey);
    } else {
      const time = timeOf(begun.at.x) - timeOf(at.x);
      stage.look(t0 + time, t1 + time);
      if (event.pointerType === "mouse") stage.scrollTo(begun.top + begun.at.y - at.y);
    }
  };

  /** @param {PointerEvent} event @param {Point} here */
  const hover = (event, here) => {
    const still = !begun?.moved;
    stage.cursor = event.pointerType === "mouse" ? stage.timeAt(here.x) : null;
    view.style.cursor = still && endAt(stage, here.x) ? "ew-resize" : "";
    stage.request();
    followHeading(stage, still && event.pointerType === "mouse" ? stage.headingUnder(here.y) : -1);
    const under = still ? stage.eventUnder(here.x, here.y) : -1;
    const curve = still && under < 0 ? stage.curveUnder(here.y) : null;
    tip.hidden = under < 0 && !curve;
    stage.point(under);
    if (tip.hidden) return;
    if (curve) tip.textContent = glanceAtCurve(curve, stage.timeAt(here.x));
    else if (tip.dataset.of !== String(under)) tip.textContent = glance(stage.timeline, under);
    tip.dataset.of = String(under);
    tip.style.left = `${Math.max(0, Math.min(here.x + 12, stage.width - tip.offsetWidth - 4))}px`;
    tip.style.top = `${Math.max(0, Math.min(here.y + 16, stage.height - tip.offsetHeight - 4))}px`;
  };

  view.addEventListener("pointerup", (event) => {
    const here = pointOf(event, view);
    down.delete(event.pointerId);
    measuring.end();
    if (begun && !begun.moved && !down.size && event.button === 0) click(here);
    begin();
  });

  /** @param {Point} here */
  const click = (here) => {
    const heading = stage.headingUnder(here.y);
    if (heading >= 0) return stage.fold(heading, !stage.arrangement.folded.has(heading));
    stage.range = null;
    const step = here.y < RULER ? stage.timeline.steps.find((one) => inside(stage.timeAt(here.x), one)) : undefined;
    if (step) stage.measure([step.start, step.end]);
    else stage.select(stage.eventUnder(here.x, here.y));
  };

  // The middle button scrolls the page in some browsers.
  view.addEventListener("mousedown", (event) => event.button === 1 && event.preventDefault());
  view.addEventListener("pointercancel", (event) => {
    down.delete(event.pointerId);
    measuring.end();
    begin();
  });
  view.addEventListener("pointerleave", () => {
    tip.hidden = true;
    stage.cursor = null;
    stage.point(-1);
    followHeading(stage, -1);
    stage.request();
  });
  view.addEventListener("dblclick", () => stage.selected >= 0 && stage.fit());
  tip.hidden = true;
}

/** A place in the view, also of a pointer that left it. @param {PointerEvent} event @param {HTMLElement} view @returns {Point} */
function pointOf(event, view) {
  const box = view.getBoundingClientRect();
  return { x: event.clientX - box.left - view.clientLeft, y: event.clientY - box.top - view.clientTop };
}

/** @param {Point[]} points @returns {Point} */
function middleOf(points) {
  const sum = points.reduce((one, other) => ({ x: one.x + other.x, y: one.y + other.y }), { x: 0, y: 0 });
  return { x: sum.x / points.length, y: sum.y / points.length };
}

/** How far two fingers are apart, from left to right. @param {Point[]} points */
function distanceOf(points) {
  return points.length > 1 ? Math.max(1, Math.abs(points[0].x - points[1].x)) : 1;
}

/** @param {number} time @param {import("./timeline.js").Step} step */
function inside(time, step) {
  return time >= step.start && time < step.end;
}
