// @ts-check
// Who calls whom in a stretch of time, as a tree; from it names from the bottom up, and what is around one name.

import { within } from "./measure.js";

/**
 * A call path: its name, its time, and of that what its own calls don't take; nanoseconds.
 * @typedef {{name: number, time: number, own: number, calls: number, events: number[], children: Map<number, Call>}} Call
 */

/** @typedef {import("./timeline.js").Timeline} Timeline */

/** @param {number} name @returns {Call} */
export const call = (name) => ({ name, time: 0, own: 0, calls: 0, events: [], children: new Map() });

/**
 * The calls of a thread in a stretch of time, as a tree; Python frames first, then the calls inside them.
 * @param {Timeline} timeline
 * @param {number} number of the thread's band of calls, or of its frames where it has no other
 * @param {[number, number]} range
 * @param {boolean} onDevice count the time of the work that calls launched, instead of the calls' time
 */
export function callTree(timeline, number, range, onDevice) {
  const { start, end } = timeline;
  const name = namesOfCalls(timeline);
  const launched = onDevice ? launchedTime(timeline, range) : null;
  const root = call(-1);
  /** The calls that are open, from the outermost, and when each ends. @type {{path: Call, end: number}[]} */
  const open = [{ path: root, end: Infinity }];
  for (const event of inOrder(timeline, number, range)) {
    while (open[open.length - 1].end <= start[event]) open.pop();
    const parent = open[open.length - 1];
    const path = childOf(parent.path, name(event));
    const ends = Math.min(end[event], parent.end); // a call that outlives its caller counts as long as that
    open.push({ path, end: ends });
    path.calls++;
    path.events.push(event);
    if (!launched) path.time += Math.min(ends, range[1]) - Math.max(start[event], range[0]);
    for (const [work, time] of launched?.get(event) ?? []) {
      const leaf = childOf(path, name(work));
      leaf.time += time;
      leaf.calls++;
      leaf.events.push(work);
    }
  }
  finish(root, onDevice);
  return root;
}

/**
 * The name that an event goes by in a tree: all steps by that of the first, since they do the same.
 * @param {Timeline} timeline
 */
function namesOfCalls({ name, names, steps }) {
  const known = new Set(steps.map((step) => step.name));
  const first = names.findIndex((text) => known.has(text));
  const own = names.map((text, i) => (known.has(text) ? first : i));
  return (/** @type {number} */ event) => own[name[event]];
}

/** What a call path is called. @param {Timeline} timeline @param {{name: number, calls: number}} path */
export function textOf({ names, shortNames, steps }, { name, calls }) {
  if (calls > 1 && steps.some((step) => step.name === names[name])) return `${calls.toLocaleString("en")} steps`;
  return shortNames[name] || names[name];
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
 * What calls a name, the nearest caller first, and what it calls, each with the time of its calls on those paths. A call
 * inside another one of its name is part of that.
 * @param {Call} root
 * @param {number} name
 * @returns {{callers: Call, callees: Call}}
 */
export function aroundName(root, name) {
  const callers = call(-1);
  const callees = call(-1);
  const visit = (/** @type {Call} */ path, /** @type {Call[]} */ above) => {
    if (path.name === name) {
      let place = callers;
      for (const one of [path, ...above.toReversed()]) {
        place = childOf(place, one.name);
        place.time += path.time;
        place.calls += path.calls;
        for (const event of path.events) place.events.push(event);
      }
      mergeInto(childOf(callees, name), path);
    } else for (const child of path.children.values()) visit(child, path.name < 0 ? above : [...above, path]);
  };
  visit(root, []);
  for (const tree of [callers, callees]) tree.time = tree.children.get(name)?.time ?? 0;
  finishOwn(callers);
  return { callers, callees };
}

/** Add a path and all below it to another one. @param {Call} sum @param {Call} path */
function mergeInto(sum, path) {
  sum.time += path.time;
  sum.own += path.own;
  sum.calls += path.calls;
  for (const event of path.events) sum.events.push(event);
  for (const child of path.children.values()) mergeInto(childOf(sum, child.name), child);
}

/** The own time of callers is the part without a known further caller. @param {Call} path */
function finishOwn(path) {
  let above = 0;
  for (const child of path.children.values()) {
    finishOwn(child);
    above += child.time;
  }
  path.own = Math.max(0, path.time - above);
}
