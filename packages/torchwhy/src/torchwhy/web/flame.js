// @ts-check
// Who calls whom in a stretch of time, as an icicle, the most time on the left, with a table of names below it.

import { duration, percent } from "./amounts.js";
import { aroundName, bottomUp, call, callTree, textOf } from "./calls.js";
import { hash } from "./colours.js";
import { button, element } from "./dom.js";
import { isDark } from "./theme.js";

const LINE = 18;
/** Pixels from which on a box has its name on it. */
const LEGIBLE = 34;
/** Narrower boxes are not drawn, shares of the width. */
const SLIVER = 0.001;
const MOST_ROWS = 40;
const MOST_NAMES = 30;

/** @typedef {import("./calls.js").Call} Call */

/**
 * Boxes of a tree from the top, the most time on the left.
 * @param {Call} root
 * @returns {{path: Call, depth: number, left: number, width: number}[]} shares of the width
 */
export function boxesOf(root) {
  /** @type {{path: Call, depth: number, left: number, width: number}[]} */
  const found = [];
  const place = (/** @type {Call} */ path, /** @type {number} */ depth, /** @type {number} */ left) => {
    const children = [...path.children.values()].filter((child) => child.time > 0).sort((a, b) => b.time - a.time);
    for (const child of children) {
      const width = root.time ? child.time / root.time : 0;
      if (width >= SLIVER && depth < MOST_ROWS) {
        found.push({ path: child, depth, left, width });
        place(child, depth + 1, left);
      }
      left += width;
    }
  };
  place(root, 0, 0);
  return found;
}

/**
 * @param {import("./stage.js").Stage} stage
 * @param {[number, number]} range
 * @returns {HTMLElement[]}
 */
export function flameOf(stage, range) {
  const { timeline } = stage;
  const threads = timeline.bands.flatMap((band, i) => {
    if (band.side === "host") return [i];
    return band.side === "frames" && timeline.bands[i + 1]?.side !== "host" ? [i] : [];
  });
  if (!threads.length) return [element("p", { class: "note" }, "No calls of the host were recorded.")];
  const thread = element("select", { "aria-label": "Thread" });
  for (const i of threads) thread.append(element("option", { value: String(i) }, timeline.bands[i].label));
  const of = element("select", { "aria-label": "Time" }, element("option", { value: "" }, "time on the host"));
  if (timeline.work.length) of.append(element("option", { value: "device" }, "time of the device work they launched"));
  const drawing = element("div", { class: "flame" });
  const list = element("div", { class: "wide" });
  const draw = () => {
    const root = callTree(timeline, Number(thread.value), range, of.value === "device");
    drawIcicle(stage, drawing, root, root);
    list.replaceChildren(bottomUpTable(stage, root, (name) => drawAround(stage, drawing, root, name)));
  };
  thread.addEventListener("change", draw);
  of.addEventListener("change", draw);
  draw();
  return [
    element("h3", {}, `Who calls whom, in ${duration(range[1] - range[0])}`),
    element("p", { class: "card-tools" }, thread, of, button("×", "Close", () => stage.flame.replaceChildren())),
    drawing,
    list,
  ];
}

/**
 * @param {import("./stage.js").Stage} stage
 * @param {HTMLElement} place
 * @param {Call} whole
 * @param {Call} root what fills the width
 */
function drawIcicle(stage, place, whole, root) {
  const { timeline } = stage;
  const boxes = boxesOf(root);
  if (!boxes.length) return place.replaceChildren(element("p", { class: "note" }, "Nothing takes time here."));
  const title = (/** @type {Call} */ path) =>
    `${textOf(timeline, path)}: ${duration(path.time)}, ` +
    `${percent(path.time / whole.time)}; its own ${duration(path.own)}; ${path.calls.toLocaleString("en")} calls`;
  const dark = isDark();
  const room = stage.element.clientWidth;
  const made = boxes.map(({ path, depth, left, width }) => {
    const text = textOf(timeline, path);
    const box = button(width * room < LEGIBLE ? "" : text.slice(0, 200), title(path), () => {
      stage.emphasise(path.events);
      drawIcicle(stage, place, whole, path.children.size ? rootOf(path) : root);
    });
    box.className = "box";
    box.style.left = `${left * 100}%`;
    box.style.width = `${width * 100}%`;
    box.style.top = `${depth * LINE}px`;
    box.style.background = `hsl(${hash(text) % 360} 45% ${dark ? 30 : 78}%)`;
    return box;
  });
  const back = root === whole ? [] : [button("whole", "Show the whole stretch again", () => drawIcicle(stage, place, whole, whole))];
  const icicle = element("div", { class: "icicle" }, ...made);
  icicle.style.height = `${(Math.max(...boxes.map((box) => box.depth)) + 1) * LINE}px`;
  place.replaceChildren(...back, icicle);
}

/** A tree of a path alone. @param {Call} path @returns {Call} */
function rootOf(path) {
  return { ...call(-1), time: path.time, children: new Map([[path.name, path]]) };
}

/**
 * What calls a name, and below it what the name calls.
 * @param {import("./stage.js").Stage} stage
 * @param {HTMLElement} place
 * @param {Call} root
 * @param {number} name
 */
function drawAround(stage, place, root, name) {
  const { callers, callees } = aroundName(root, name);
  const [above, below] = [element("div"), element("div")];
  drawIcicle(stage, above, callers, callers);
  drawIcicle(stage, below, callees, callees);
  stage.emphasise(callees.children.get(name)?.events ?? null);
  const back = button("all calls", "Show who calls whom again", () => drawIcicle(stage, place, root, root));
  place.replaceChildren(back, element("h4", {}, "What calls it, and what calls that"), above, element("h4", {}, "What it calls"), below);
  place.scrollIntoView({ block: "nearest" });
}

/**
 * @param {import("./stage.js").Stage} stage
 * @param {Call} root
 * @param {(name: number) => void} around shows what is around a name
 */
function bottomUpTable({ timeline }, root, around) {
  const names = bottomUp(root);
  const calls = new Map(names.map((one) => [one.name, one.calls]));
  const text = (/** @type {number} */ name) => textOf(timeline, { name, calls: calls.get(name) ?? 1 }).slice(0, 100);
  const link = (/** @type {number} */ name) => {
    const made = button("", `Show what calls ${text(name)}, and what it calls`, () => around(name));
    made.className = "link";
    made.append(element("code", {}, text(name)));
    return made;
  };
  const rows = names
    .filter((one) => one.own > 0)
    .slice(0, MOST_NAMES)
    .map((one) => {
      const caller = [...one.callers].sort((a, b) => b[1] - a[1])[0];
      const from = caller ? `${text(caller[0])} (${percent(caller[1] / (one.own || 1))})` : "";
      const cells = [duration(one.own), percent(one.own / root.time), one.calls.toLocaleString("en")];
      return element(
        "tr",
        {},
        element("td", {}, link(one.name)),
        ...cells.map((cell) => element("td", { class: "number" }, cell)),
        element("td", {}, element("code", {}, from)),
      );
    });
  const head = ["from the bottom up", "own time", "share", "calls", "called most from"];
  const titles = head.map((title, i) => element("th", i > 0 && i < 4 ? { class: "number" } : {}, title));
  return element("table", {}, element("thead", {}, element("tr", {}, ...titles)), element("tbody", {}, ...rows));
}
