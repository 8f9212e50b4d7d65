// @ts-check
// What is seen and selected stands in the page's address, so that it can be sent and found again.

import { copied } from "./clipboard.js";
import { hash } from "./colours.js";
import { button } from "./dom.js";

const DELAY_MS = 250;

/**
 * An event by its name and its start, which hold for any version of the page: "NAME@NANOSECONDS".
 * @param {import("./timeline.js").Timeline} timeline
 * @param {number} event
 */
export function idOf(timeline, event) {
  return `${hash(timeline.text(event)).toString(36)}@${Math.round(timeline.start[event])}`;
}

/**
 * The event with this id, or the nearest of its name; -1 for none.
 * @param {import("./timeline.js").Timeline} timeline
 * @param {string} id
 */
export function eventOf(timeline, id) {
  const [name, start] = id.split("@");
  const named = timeline.names.map((text) => hash(text).toString(36) === name);
  const distance = (/** @type {number} */ event) => Math.abs(timeline.start[event] - Number(start));
  let found = -1;
  for (let i = 0; i < timeline.count; i++) {
    if (named[timeline.name[i]] && (found < 0 || distance(i) < distance(found))) found = i;
  }
  return found;
}

/**
 * @param {import("./stage.js").Stage} stage
 * @param {import("./search.js").Search} search
 * @param {import("./show.js").Shown} shown
 */
export function followAddress(stage, search, shown) {
  const { timeline } = stage;
  const boxes = /** @type {HTMLInputElement[]} */ ([...document.querySelectorAll("input[data-fix]")]);
  let timer = 0;
  const read = () => {
    const wanted = new URLSearchParams(location.hash.slice(1));
    const numbers = (/** @type {string} */ key) => (wanted.get(key) ?? "").split(",").filter(Boolean).map(Number);
    const [start, length] = numbers("at");
    search.kind.value = wanted.get("kind") ?? "";
    if (wanted.get("search") || wanted.get("kind")) search.set(wanted.get("search") ?? "", true);
    const [windowStart, windowEnd] = numbers("window");
    if (windowEnd > windowStart) stage.window = [windowStart, windowEnd];
    if (wanted.get("show")) shown.show(wanted.get("show") ?? "");
    const fixed = numbers("fixed");
    for (const box of boxes) {
      if (box.checked === fixed.includes(Number(box.dataset.fix)) || !wanted.has("at")) continue;
      box.checked = !box.checked;
      box.dispatchEvent(new Event("change", { bubbles: true }));
    }
    const event = eventOf(timeline, wanted.get("event") ?? "");
    if (event >= 0) stage.visit(event);
    if (wanted.has("at")) {
      stage.arrange((arrangement) => arrangement.read(numbers));
      stage.marks.read(wanted.getAll("mark"));
    }
    if (Number.isFinite(start) && length > 0) stage.look(start, start + length);
    const [from, to] = numbers("range");
    if (to > from) stage.measure([from, to]);
    if (wanted.has("at")) stage.element.scrollIntoView({ block: "start" });
  };
  const write = () => {
    const { t0, t1 } = stage.seen;
    const parts = [`at=${Math.round(t0)},${Math.round(t1 - t0)}`];
    if (stage.selected >= 0) parts.push(`event=${idOf(timeline, stage.selected)}`);
    if (stage.range) parts.push(`range=${stage.range.map(Math.round).join(",")}`);
    if (search.input.value) parts.push(`search=${encodeURIComponent(search.input.value)}`);
    if (search.kind.value) parts.push(`kind=${search.kind.value}`);
    if (stage.window !== timeline.window) parts.push(`window=${stage.window.map(Math.round).join(",")}`);
    if (shown.what) parts.push(`show=${encodeURIComponent(shown.what)}`);
    parts.push(...stage.arrangement.parts(), ...stage.marks.parts());
    const fixed = boxes.filter((box) => box.checked).map((box) => box.dataset.fix);
    if (fixed.length) parts.push(`fixed=${fixed.join(",")}`);
    if (/^(file|https?):$/.test(location.protocol)) history.replaceState(null, "", `#${parts.join("&")}`);
  };
  read();
  const later = () => {
    clearTimeout(timer);
    timer = window.setTimeout(write, DELAY_MS);
  };
  stage.watchers.add(later);
  for (const box of boxes) box.addEventListener("change", later);
  addEventListener("hashchange", read);
  stage.tools.append(
    button("copy link", "Copy a link to this view", () => {
      write();
      copied(stage, location.href);
    }),
  );
}
