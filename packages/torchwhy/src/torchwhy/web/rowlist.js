// @ts-check
// What pins, hides and moves the bands of a timeline: buttons at the heading under the pointer, and a list of all bands.

import { button, checkbox, element } from "./dom.js";
import { HEADING, HEADING_FONT, headingOf, placeInView } from "./layout.js";

/** The list has a filter from this number of bands on. */
const MANY = 12;

/** @typedef {import("./stage.js").Stage} Stage */

/**
 * The buttons of a band.
 * @param {Stage} stage
 * @param {number} band
 */
function buttonsOf(stage, band) {
  const { pinned, hidden } = stage.arrangement;
  const label = stage.timeline.bandLabel(band);
  const act = (/** @type {string} */ text, /** @type {string} */ what, /** @type {(arrangement: Stage["arrangement"]) => void} */ change) =>
    button(text, `${what}: ${label}`, () => stage.arrange(change));
  const flip = (/** @type {Set<number>} */ set) => (set.has(band) ? set.delete(band) : set.add(band));
  return [
    act(pinned.has(band) ? "unpin" : "pin", pinned.has(band) ? "Let it scroll" : "Keep at the top", () => flip(pinned)),
    act(hidden.has(band) ? "show" : "hide", hidden.has(band) ? "Show" : "Hide", () => flip(hidden)),
    act("↑", "Move up", (arrangement) => arrangement.move(band, -1)),
    act("↓", "Move down", (arrangement) => arrangement.move(band, 1)),
  ];
}

/** Show the buttons of the band whose heading is under the pointer; -1 for none. @param {Stage} stage @param {number} band */
export function followHeading(stage, band) {
  const { rowTools, layout, seen } = stage;
  const placed = layout.of[band];
  rowTools.hidden = !placed;
  if (!placed) return;
  rowTools.style.top = `${placeInView(layout, placed, seen)}px`;
  rowTools.style.height = `${HEADING}px`;
  stage.strokes.font = HEADING_FONT;
  const left = stage.strokes.measureText(headingOf(stage.timeline, placed)).width + 14;
  rowTools.style.left = `${Math.min(left, stage.width - rowTools.offsetWidth)}px`;
  const state = `${band} ${stage.arrangement.pinned.has(band)}`;
  if (rowTools.dataset.of === state) return;
  rowTools.dataset.of = state;
  rowTools.replaceChildren(...buttonsOf(stage, band));
  for (const one of rowTools.querySelectorAll("button")) one.tabIndex = -1; // the list of rows is there for the keyboard
}

/** A list of all bands behind a button. @param {Stage} stage */
export function rowList(stage) {
  const list = element("ul");
  const filter = element("input", { type: "search", placeholder: "Filter", "aria-label": "Show the rows with this text" });
  const { order } = stage.arrangement;
  const fill = () => {
    const wanted = filter.value.toLowerCase();
    const places = stage.arrangement.places().filter((band) => stage.timeline.bandLabel(band).toLowerCase().includes(wanted));
    list.replaceChildren(...places.map((band) => itemOf(stage, band)));
  };
  const all = (/** @type {string} */ text, /** @type {(arrangement: Stage["arrangement"]) => void} */ change) =>
    button(text, text, () => stage.arrange(change));
  const only = checkbox("only rows where something stands out", false, (checked) =>
    stage.arrange((arrangement) => (arrangement.onlyLit = checked)),
  );
  const tools = element(
    "p",
    { class: "card-tools" },
    all("fold all", ({ folded }) => order.forEach((band) => folded.add(band))),
    all("unfold all", ({ folded }) => folded.clear()),
    all("as it was", (arrangement) => arrangement.read(() => [])),
    only,
    ...(order.length < MANY ? [] : [filter]),
  );
  const summary = element("summary", {}, "rows");
  const made = element("details", { class: "rows" }, summary, element("div", {}, tools, list));
  const follow = () => {
    const { hidden, onlyLit } = stage.arrangement;
    summary.textContent = hidden.size ? `rows (${hidden.size} hidden)` : "rows";
    const box = only.querySelector("input");
    if (box) box.checked = onlyLit;
    const state = JSON.stringify(stage.arrangement.parts());
    if (!made.open || made.dataset.state === state) return;
    made.dataset.state = state;
    const focus = document.activeElement;
    const name = list.contains(focus) ? focus?.getAttribute("aria-label") : null;
    fill();
    if (name) again(list, name)?.focus();
  };
  filter.addEventListener("input", fill);
  made.addEventListener("toggle", () => {
    delete made.dataset.state;
    follow();
  });
  made.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    made.open = false;
    summary.focus();
    event.stopPropagation();
  });
  addEventListener("pointerdown", (event) => {
    if (made.open && !made.contains(/** @type {Node} */ (event.target))) made.open = false;
  });
  stage.watchers.add(follow);
  return made;
}

/** The button that stands where one of this name was, which may say the opposite now. @param {HTMLElement} list @param {string} name */
function again(list, name) {
  const buttons = [...list.querySelectorAll("button")];
  const label = name.slice(name.indexOf(": "));
  return (
    buttons.find((one) => one.getAttribute("aria-label") === name) ??
    buttons.find((one) => one.getAttribute("aria-label")?.endsWith(label))
  );
}

/** @param {Stage} stage @param {number} band */
function itemOf(stage, band) {
  const { arrangement, timeline } = stage;
  const shown = element("span", {}, timeline.bandLabel(band));
  if (arrangement.hidden.has(band)) shown.className = "dim";
  return element("li", {}, shown, element("span", { class: "row-tools" }, ...buttonsOf(stage, band)));
}
