// @ts-check
// Who calls whom in a stretch of time, as an icicle, the most time on the left, with a table of names below it.

import { duration, percent } from "./amounts.js";
import { hash } from "./colours.js";
import { button, element } from "./dom.js";
import { within } from "./measure.js";
import { isDark } from "./theme.js";

const LINE = 18;
/** Narrower boxes are not drawn, shares of the width. */
const SLIVER = 0.001;
const MOST_ROWS = 40;
const MOST_NAMES = 30;

/**
 * A call path: its name, its time, and of that what its own calls don't take; nanoseconds.
 * @typedef {{name: number, time: number, own: number, calls: number, events: number[], children: Map<number, Call>}} Call
 */

/** @typedef {import("./timeline.js").Timeline} Timeline */

/** @param {number} name @returns {Call} */
const call = (name) => ({ name, time: 0, own: 0, calls: 0, events: [], children: new Map() });

/**
 * The calls of a thread in a stretch of time, as a tree; Python frames first, then the calls inside them.
 * @param {Timeline} timeline
 * @param {number} number of the thread's band of calls, or of its frames where it has no other
 * @param {[number, number]} range
 * @param {boolean} onDevice count the time of the work that calls launched, in place of their own
 */
export function callTree(timeline, number, range, onDevice) {
  const { start, end, name } = timeline;
  const launched = onDevice ? launchedTime(timeline, range) : null;
  const root = call(-1);
  /** The calls that are open, from the outermost, and when each ends. @type {{path: Call, end: number}[]} */
  const open = [{ path: root, end: Infinity }];
  for (const event of inOrder(timeline, number, range)) {
    while (open[open.length - 1].end <= start[event]) open.pop();
    const parent = open[open.length - 1];
    const path = childOf(parent.path, name[event]);
    const ends = Math.min(end[event], parent.end); // a call that outlives its caller counts as long as that
    open.push({ path, end: ends });
    path.calls++;
    path.events.push(event);
    if (!launched) path.time += Math.min(ends, range[1]) - Math.max(start[event], range[0]);
    for (const [work, time] of launched?.get(event) ?? []) {
      const leaf = childOf(path, name[work]);
      leaf.time += time;
      leaf.calls++;
      leaf.events.push(work);
    }
  }
  finish(root, onDevice);
  return root;
}

/** @param {Call} path @param {number} name */
function childOf(path, name) {
  let child = path.children.get(name);
  if (!child) path.children.set(name, (child = call(name)));
  return child;
}

/**
 * The frames and calls of a thread in a stretch of time, by start, the longer first.
 * @param {Timeline} timeline
 * @param {number} number
 * @param {[number, number]} range
 */
function inOrder(timeline, number, range) {
  const { start, end } = timeline;
  const frames = timeline.bands[number - 1]?.side === "frames" ? [timeline.bands[number - 1]] : [];
  /** @type {number[]} */
  const events = [];
  for (const band of [...frames, timeline.bands[number]]) {
    for (let row = band.firstRow; row < band.firstRow + band.rows; row++) {
      const [first, last] = within(timeline, row, range);
      for (let i = first; i < last; i++) events.push(i);
    }
  }
  return Uint32Array.from(events).sort((a, b) => start[a] - start[b] || end[b] - end[a] || a - b);
}

/**
 * What each call launched, and how long it took.
 * @param {Timeline} timeline
 * @param {[number, number]} range
 * @returns {Map<number, [number, number][]>}
 */
function launchedTime({ work, launch, start, end }, [t0, t1]) {
  const found = new Map();
  for (let i = 0; i < work.length; i++) {
    if (start[launch[i]] >= t1 || end[launch[i]] <= t0) continue;
    const pairs = found.get(launch[i]) ?? [];
    pairs.push([work[i], end[work[i]] - start[work[i]]]);
    found.set(launch[i], pairs);
  }
  return found;
}

/** Sum up from the leaves. In a tree of device work, a call has the time of the work below it. @param {Call} path @param {boolean} onDevice */
function finish(path, onDevice) {
  let below = 0;
  for (const child of path.children.values()) {
    finish(child, onDevice);
    below += child.time;
  }
  if (path.name < 0 || (onDevice && path.children.size)) path.time = Math.max(path.time, below);
  path.own = Math.max(0, path.time - below);
}

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
 * Names from the bottom up: their own time over all paths, and their callers.
 * @param {Call} root
 * @returns {{name: number, own: number, calls: number, callers: Map<number, number>}[]}
 */
export function bottomUp(root) {
  /** @type {Map<number, {name: number, own: number, calls: number, callers: Map<number, number>}>} */
  const found = new Map();
  const visit = (/** @type {Call} */ path, /** @type {number} */ caller) => {
    if (path.name >= 0) {
      const one = found.get(path.name) ?? { name: path.name, own: 0, calls: 0, callers: new Map() };
      one.own += path.own;
      one.calls += path.calls;
      if (caller >= 0) one.callers.set(caller, (one.callers.get(caller) ?? 0) + path.own);
      found.set(path.name, one);
    }
    for (const child of path.children.values()) visit(child, path.name);
  };
  visit(root, -1);
  return [...found.values()].sort((a, b) => b.own - a.own);
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
    list.replaceChildren(bottomUpTable(stage, root));
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
    `${timeline.shortNames[path.name] || timeline.names[path.name]}: ${duration(path.time)}, ` +
    `${percent(path.time / whole.time)}; its own ${duration(path.own)}; ${path.calls.toLocaleString("en")} calls`;
  const dark = isDark();
  const made = boxes.map(({ path, depth, left, width }) => {
    const text = timeline.shortNames[path.name] || timeline.names[path.name];
    const box = button(text.slice(0, 200), title(path), () => {
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

/** @param {import("./stage.js").Stage} stage @param {Call} root */
function bottomUpTable({ timeline }, root) {
  const text = (/** @type {number} */ name) => (timeline.shortNames[name] || timeline.names[name]).slice(0, 100);
  const rows = bottomUp(root)
    .filter((one) => one.own > 0)
    .slice(0, MOST_NAMES)
    .map((one) => {
      const caller = [...one.callers].sort((a, b) => b[1] - a[1])[0];
      const from = caller ? `${text(caller[0])} (${percent(caller[1] / (one.own || 1))})` : "";
      const cells = [duration(one.own), percent(one.own / root.time), one.calls.toLocaleString("en")];
      return element(
        "tr",
        {},
        element("td", {}, element("code", {}, text(one.name))),
        ...cells.map((cell) => element("td", { class: "number" }, cell)),
        element("td", {}, element("code", {}, from)),
      );
    });
  const head = ["from the bottom up", "own time", "share", "calls", "called most from"];
  const titles = head.map((title, i) => element("th", i > 0 && i < 4 ? { class: "number" } : {}, title));
  return element("table", {}, element("thead", {}, element("tr", {}, ...titles)), element("tbody", {}, ...rows));
}
