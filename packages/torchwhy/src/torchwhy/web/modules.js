// @ts-check
// The modules of the model as a tree: how long each takes on the host, the device work launched in it, and that of its
// backward pass. The table of it is in module_table.js.

import { within } from "./measure.js";

const PREFIX = "nn.Module: ";
const ANNOTATION = 2;
const FRAME = 4;
/**
 * A module in its place: its name, its time on the host, that of the device work launched in it, and that of the device
 * work of its operators' backward pass; nanoseconds, with and without the modules it calls.
 * @typedef {{name: string, host: number, hostOwn: number, device: number, deviceOwn: number, backward: number,
 *   backwardOwn: number, calls: number, events: number[], work: number[], children: Map<string, ModuleTime>}} ModuleTime
 */

/** @typedef {import("./timeline.js").Timeline} Timeline */

/** @param {string} name @returns {ModuleTime} */
const moduleTime = (name) => ({
  name,
  host: 0,
  hostOwn: 0,
  device: 0,
  deviceOwn: 0,
  backward: 0,
  backwardOwn: 0,
  calls: 0,
  events: [],
  work: [],
  children: new Map(),
});

/**
 * Which names are those of modules: of Python frames "nn.Module: NAME"; where no frame is, of annotations all that are no
 * step.
 * @param {Timeline} timeline
 * @returns {{names: (string | null)[], kind: number}}
 */
function moduleNames(timeline) {
  const frames = timeline.names.map((name) => (name.startsWith(PREFIX) ? name.slice(PREFIX.length) : null));
  if (frames.some((name) => name !== null)) return { names: frames, kind: FRAME };
  const steps = new Set(timeline.steps.map((step) => step.name));
  return { names: timeline.names.map((name) => (steps.has(name) ? null : name)), kind: ANNOTATION };
}

/**
 * The modules called in a stretch of time, by the path of calls.
 * @param {Timeline} timeline
 * @param {[number, number]} range
 */
export function moduleTree(timeline, range) {
  const { launch, work, forward, start, end } = timeline;
  const root = moduleTime("");
  const { names, kind } = moduleNames(timeline);
  const launches = byKey(launch, work);
  const led = new Set(forward);
  /** Launches outside of all modules. @type {number[]} */
  const outside = [];
  /** Operators of the forward pass with the module each belongs to. @type {Map<number, ModuleTime>} */
  const belongs = new Map();
  timeline.bands.forEach((band, number) => {
    const isThread = band.side === (kind === FRAME ? "frames" : "host");
    // A thread without modules may still launch the work of the backward pass.
    if (!isThread && !(band.side === "host" && timeline.bands[number - 1]?.side !== "frames")) return;
    const host = kind === FRAME && timeline.bands[number + 1]?.side === "host" ? number + 1 : number;
    const isModule = (/** @type {number} */ event) => timeline.kind[event] === kind && names[timeline.name[event]] !== null;
    const calls = isThread ? eventsOf(timeline, number, range, isModule) : new Uint32Array();
    const points = eventsOf(timeline, host, range, (event) => launches.has(event) || led.has(event));
    addThread(root, timeline, names, calls, points, range, (point, module) => {
      if (led.has(point)) belongs.set(point, module);
      if (module === root && launches.has(point)) outside.push(point);
      for (const one of launches.get(point) ?? []) {
        module.deviceOwn += end[one] - start[one];
        module.work.push(one);
      }
    });
  });
  addBackward(root, timeline, launches, outside, belongs);
  finishModule(root);
  return root;
}

/**
 * Give the device work of the backward pass to the modules of the forward pass. What was launched inside a module already
 * counts for that.
 * @param {ModuleTime} root
 * @param {Timeline} timeline
 * @param {Map<number, number[]>} launches
 * @param {number[]} outside launches outside of all modules
 * @param {Map<number, ModuleTime>} belongs the module of each operator of the forward pass
 */
function addBackward(root, timeline, launches, outside, belongs) {
  const { start, end } = timeline;
  const moved = new Set();
  for (const launch of outside) {
    const calls = [launch, ...timeline.around(launch, timeline.bands[timeline.bandOf(timeline.rowOf(launch))])];
    const module = belongs.get(timeline.forwardOf(calls.find((call) => timeline.forwardOf(call) >= 0) ?? -1));
    if (!module || module === root) continue;
    for (const work of launches.get(launch) ?? []) {
      module.backwardOwn += end[work] - start[work];
      module.work.push(work);
      root.deviceOwn -= end[work] - start[work];
      moved.add(work);
    }
  }
  root.work = root.work.filter((work) => !moved.has(work));
}

/** The values of each key. @param {ArrayLike<number>} keys @param {ArrayLike<number>} values @returns {Map<number, number[]>} */
function byKey(keys, values) {
  const found = new Map();
  for (let i = 0; i < keys.length; i++) {
    const known = found.get(keys[i]);
    if (known) known.push(values[i]);
    else found.set(keys[i], [values[i]]);
  }
  return found;
}

/**
 * The chosen events of a band in a stretch, by start, the longer first.
 * @param {Timeline} timeline
 * @param {number} number
 * @param {[number, number]} range
 * @param {(event: number) => boolean} chosen
 */
function eventsOf(timeline, number, range, chosen) {
  const { start, end } = timeline;
  const band = timeline.bands[number];
  /** @type {number[]} */
  const found = [];
  for (let row = band.firstRow; row < band.firstRow + band.rows; row++) {
    const [first, last] = within(timeline, row, range);
    for (let i = first; i < last; i++) if (chosen(i)) found.push(i);
  }
  return Uint32Array.from(found).sort((a, b) => start[a] - start[b] || end[b] - end[a] || a - b);
}

/**
 * @param {ModuleTime} root
 * @param {Timeline} timeline
 * @param {(string | null)[]} names
 * @param {Uint32Array} calls of modules
 * @param {Uint32Array} points calls of which the module is requested, by start
 * @param {[number, number]} range
 * @param {(point: number, module: ModuleTime) => void} found called with the innermost module around each of `points`
 */
function addThread(root, timeline, names, calls, points, [t0, t1], found) {
  const { start, end, name } = timeline;
  /** @type {{module: ModuleTime, end: number}[]} */
  const open = [{ module: root, end: Infinity }];
  let next = 0;
  const pointsBefore = (/** @type {number} */ time) => {
    for (; next < points.length && start[points[next]] < time; next++) {
      while (open[open.length - 1].end <= start[points[next]]) open.pop();
      found(points[next], open[open.length - 1].module);
    }
  };
  for (const event of calls) {
    pointsBefore(start[event]);
    while (open[open.length - 1].end <= start[event]) open.pop();
    const parent = open[open.length - 1];
    const text = names[name[event]] ?? "";
    let module = parent.module.children.get(text);
    if (!module) parent.module.children.set(text, (module = moduleTime(text)));
    const ends = Math.min(end[event], parent.end);
    module.calls++;
    module.events.push(event);
    module.host += Math.min(ends, t1) - Math.max(start[event], t0);
    open.push({ module, end: ends });
  }
  pointsBefore(Infinity);
}

/** Sum up from the leaves. @param {ModuleTime} module */
function finishModule(module) {
  module.device = module.deviceOwn;
  module.backward = module.backwardOwn;
  let below = 0;
  for (const child of module.children.values()) {
    finishModule(child);
    below += child.host;
    module.device += child.device;
    module.backward += child.backward;
  }
  if (!module.name) module.host = below;
  module.hostOwn = Math.max(0, module.host - below);
}

/**
 * Whether a timeline has modules at all.
 * @param {Timeline} timeline
 */
export function hasModules(timeline) {
  const { names, kind } = moduleNames(timeline);
  if (kind === FRAME) return true;
  for (let i = 0; i < timeline.count; i++) if (timeline.kind[i] === kind && names[timeline.name[i]] !== null) return true;
  return false;
}
