// @ts-check
// Keys by their place on the keyboard, so that W, A, S, D lie together on every layout. They can be switched off.

import { checkbox, element } from "./dom.js";
import { HeldKeys } from "./held.js";
import { stored, store } from "./storage.js";
import { Views } from "./views.js";
import { above, firstInView, neighbour } from "./walk.js";

const OFF = "torchwhy-keys-off";
/** What a step zooms by, and what share of the width it moves by. */
const ZOOMED = 1.25;
const PANNED = 0.12;

/** Keys of the view go a number of steps: one when they are pressed, then less at each frame. */
/** @typedef {[code: string, key: string, what: string, act: (steps: number, glides: boolean) => void]} Key */

/**
 * @param {import("./stage.js").Stage[]} stages
 * @param {Map<import("./stage.js").Stage, import("./search.js").Search>} searches
 * @param {import("./show.js").Shown} shown
 */
export function followKeys(stages, searches, shown) {
  let active = stages[0];
  let off = stored(OFF) === "1";
  for (const stage of stages) {
    stage.element.addEventListener("focusin", () => (active = stage));
    stage.element.addEventListener("pointerenter", () => (active = stage));
  }
  const views = new Map(stages.map((stage) => [stage, new Views(stage)]));
  const go = (/** @type {number} */ event) => event >= 0 && active.visit(event);
  const held = new HeldKeys();
  /** @type {Key[]} */
  const moving = [
    ["KeyW", "W", "zoom in, at the pointer, for as long as it is held", (steps, glides) => zoomBy(active, steps, glides)],
    ["KeyS", "S", "zoom out, likewise", (steps, glides) => zoomBy(active, -steps, glides)],
    ["KeyA", "A", "move to the left, likewise", (steps, glides) => active.pan(-PANNED * steps, glides)],
    ["KeyD", "D", "move to the right, likewise", (steps, glides) => active.pan(PANNED * steps, glides)],
  ];
  /** @type {Key[]} */
  const acting = [
    ["KeyF", "F", "fit what is measured, or the selected event, or the window", () => active.fit()],
    ["KeyZ", "Z", "back to the view before", () => views.get(active)?.back()],
    ["KeyX", "X", "forward again", () => views.get(active)?.forward()],
    ["KeyR", "R", "measure the selected event, or the part in view", () => active.measure(measurable(active))],
    ["KeyM", "M", "mark the moment at the pointer, or where the selected event begins", () => active.marks.add(markable(active))],
    ["Slash", "/", "search", () => searches.get(active)?.input.focus()],
    ["Period", ".", "next one found", () => active.next(1)],
    ["Comma", ",", "previous one found", () => active.next(-1)],
    ["KeyN", "N", "next finding", () => shown.finding(1)],
    ["KeyP", "P", "previous finding", () => shown.finding(-1)],
    ["BracketLeft", "[", "to what the arrow comes from: the launch of work, the forward of a backward operator", () => go(cameFrom(active))],
    ["BracketRight", "]", "to where the arrow leads: the work of a launch, the backward of an operator", () => go(leadsTo(active))],
    ["Escape", "Esc", "show and measure nothing", () => {
      for (const search of searches.values()) search.set("");
      shown.clear();
    }],
  ];
  /** @type {Key[]} */
  const inTheView = [
    ["ArrowLeft", "←", "previous event of the row", () => go(neighbour(active, -1))],
    ["ArrowRight", "→", "next event of the row", () => go(neighbour(active, 1))],
    ["ArrowUp", "↑", "the event above", () => go(above(active, -1))],
    ["ArrowDown", "↓", "the event below", () => go(above(active, 1))],
    ["Home", "Home", "the first event in view", () => go(firstInView(active))],
  ];
  const anywhere = [...moving, ...acting];
  const sheet = sheetOf(anywhere, inTheView, off, (checked) => {
    off = !checked;
    store(OFF, off ? "1" : "");
  });
  document.body.append(sheet);
  document.getElementById("keys")?.addEventListener("click", () => sheet.showModal());
  addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    const writes = target.matches?.("input:not([type=checkbox]), select, textarea") || sheet.open;
    if (!active || event.ctrlKey || event.metaKey || event.altKey || writes) return;
    if (event.key === "?") return sheet.showModal();
    const inView = target === active.view ? inTheView : [];
    const found = [...anywhere, ...inView].find(([code]) => code === event.code);
    if (!found || (off && target !== active.view && found[0] !== "Escape")) return;
    event.preventDefault();
    const moves = moving.includes(found);
    if (moves && event.repeat) return;
    found[3](1, true);
    if (moves) held.press(found[0], (steps) => found[3](steps, false));
  });
}

/** @param {import("./stage.js").Stage} stage @param {number} steps below 0 zooms out @param {boolean} glides */
function zoomBy(stage, steps, glides) {
  stage.zoom(ZOOMED ** -steps, pointerShare(stage), glides);
}

/** Where the pointer is in the view, 0 to 1; else the middle. @param {import("./stage.js").Stage} stage */
function pointerShare({ cursor, seen: { t0, t1 } }) {
  return cursor !== null && cursor >= t0 && cursor <= t1 ? (cursor - t0) / (t1 - t0) : 0.5;
}

/** @param {import("./stage.js").Stage} stage */
function cameFrom({ timeline, selected }) {
  const launch = timeline.launchOf(selected);
  return launch >= 0 ? launch : timeline.forwardOf(selected);
}

/** @param {import("./stage.js").Stage} stage */
function leadsTo({ timeline, selected }) {
  return timeline.worksOf(selected)[0] ?? timeline.backwardsOf(selected)[0] ?? -1;
}

/** @param {import("./stage.js").Stage} stage */
function markable({ timeline, selected, cursor, seen }) {
  return cursor ?? (selected >= 0 ? timeline.start[selected] : (seen.t0 + seen.t1) / 2);
}

/** @param {import("./stage.js").Stage} stage @returns {[number, number]} */
function measurable({ timeline, selected, seen }) {
  return selected >= 0 ? [timeline.start[selected], timeline.end[selected]] : [seen.t0, seen.t1];
}

/**
 * @param {Key[]} anywhere
 * @param {Key[]} inTheView
 * @param {boolean} off
 * @param {(checked: boolean) => void} changed
 */
function sheetOf(anywhere, inTheView, off, changed) {
  const list = (/** @type {Key[]} */ keys) =>
    element("dl", {}, ...keys.flatMap(([, key, what]) => [element("dt", {}, element("kbd", {}, key)), element("dd", {}, what)]));
  const mouse = [
    ["drag", "measure a stretch of time, from edge to edge of the events under the pointer; with Alt from anywhere"],
    ["drag an end of what is measured", "move it; beyond the edge of the view that moves along"],
    ["Shift or the middle button, and drag", "move the view"],
    ["wheel", "scroll the rows"],
    ["Ctrl and wheel, or a pinch", "zoom at the pointer"],
    ["Shift and wheel, or two fingers to the side", "move to the side"],
    ["pointer on a counter", "its value, its last change, how long it holds"],
    ["click on a heading", "fold or unfold its rows; buttons beside it pin, hide and move them"],
    ["double click", "fit the event"],
    ["strip above", "drag the view, or one of its edges"],
  ];
  const gestures = mouse.flatMap(([what, does]) => [element("dt", {}, what), element("dd", {}, does)]);
  const close = element("form", { method: "dialog" }, element("button", {}, "Close"));
  return element(
    "dialog",
    { class: "keys", "aria-label": "Keys and gestures" },
    element("h2", {}, "Keys"),
    list(anywhere),
    element("h3", {}, "With the timeline in focus"),
    list(inTheView),
    element("h3", {}, "Mouse"),
    element("dl", {}, ...gestures),
    checkbox("keys work anywhere on the page", !off, changed),
    close,
  );
}
