// @ts-check
// The modules of the model as a tree: how long each takes on the host, and the device work launched in it.

import { duration, percent } from "./amounts.js";
import { button, element } from "./dom.js";
import { within } from "./measure.js";

const PREFIX = "nn.Module: ";
const ANNOTATION = 2;
const FRAME = 4;
/** So many levels are open at first, along the modules that take the most time. */
const OPENED = 3;

/**
 * A module in its place: its name, its time on the host and that of the device work launched in it, nanoseconds, with and
 * without the modules it calls.
 * @typedef {{name: string, host: number, hostOwn: number, device: number, deviceOwn: number, calls: number,
 *   events: number[], work: number[], children: Map<string, ModuleTime>}} ModuleTime
 */

/** @typedef {import("./timeline.js").Timeline} Timeline */

/** @param {string} name @returns {ModuleTime} */
const moduleTime = (name) => ({ name, host: 0, hostOwn: 0, device: 0, deviceOwn: 0, calls: 0, events: [], work: [], children: new Map() });

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
  const root = moduleTime("");
  const { names, kind } = moduleNames(timeline);
  /** @type {Map<number, number[]>} */
  const launches = new Map();
  timeline.launch.forEach((call, i) => {
    const works = launches.get(call);
    if (works) works.push(timeline.work[i]);
    else launches.set(call, [timeline.work[i]]);
  });
  timeline.bands.forEach((band, number) => {
    if (band.side !== (kind === FRAME ? "frames" : "host")) return;
    const host = kind === FRAME && timeline.bands[number + 1]?.side === "host" ? number + 1 : number;
    const calls = eventsOf(timeline, number, range, (event) => timeline.kind[event] === kind && names[timeline.name[event]] !== null);
    const work = eventsOf(timeline, host, range, (event) => launches.has(event));
    addThread(root, timeline, names, calls, work, launches, range);
  });
  finishModule(root);
  return root;
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
 * @param {Uint32Array} launching calls that launched device work
 * @param {Map<number, number[]>} launches what each launched
 * @param {[number, number]} range
 */
function addThread(root, timeline, names, calls, launching, launches, [t0, t1]) {
  const { start, end, name } = timeline;
  /** @type {{module: ModuleTime, end: number}[]} */
  const open = [{ module: root, end: Infinity }];
  let next = 0;
  const launchBefore = (/** @type {number} */ time) => {
    for (; next < launching.length && start[launching[next]] < time; next++) {
      while (open[open.length - 1].end <= start[launching[next]]) open.pop();
      const { module } = open[open.length - 1];
      for (const work of launches.get(launching[next]) ?? []) {
        module.deviceOwn += end[work] - start[work];
        module.work.push(work);
      }
    }
  };
  for (const event of calls) {
    launchBefore(start[event]);
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
  launchBefore(Infinity);
}

/** Sum up from the leaves. @param {ModuleTime} module */
function finishModule(module) {
  module.device = module.deviceOwn;
  let below = 0;
  for (const child of module.children.values()) {
    finishModule(child);
    below += child.host;
    module.device += child.device;
  }
  if (!module.name) module.host = below;
  module.hostOwn = Math.max(0, module.host - below);
}

/**
 * Whether a timeline tells of modules at all.
 * @param {Timeline} timeline
 */
export function hasModules(timeline) {
  const { names, kind } = moduleNames(timeline);
  if (kind === FRAME) return true;
  for (let i = 0; i < timeline.count; i++) if (timeline.kind[i] === kind && names[timeline.name[i]] !== null) return true;
  return false;
}

/**
 * The tree of a stretch as a table whose rows open level by level, with a choice of steps.
 * @param {import("./stage.js").Stage} stage
 * @param {[number, number]} range
 * @returns {HTMLElement[]}
 */
export function modulesOf(stage, range) {
  const { timeline } = stage;
  const place = element("div", { class: "wide" });
  const of = element("select", { "aria-label": "Step" }, element("option", { value: "" }, "the whole stretch"));
  timeline.steps.forEach((step, i) => {
    if (step.start < range[1] && step.end > range[0]) of.append(element("option", { value: String(i) }, step.name));
  });
  const draw = () => {
    const step = timeline.steps[of.value === "" ? -1 : Number(of.value)];
    place.replaceChildren(moduleTable(stage, moduleTree(timeline, step ? [step.start, step.end] : range)));
  };
  of.addEventListener("change", draw);
  draw();
  const text = "Device time is that of the work launched inside a module's calls: of the forward pass, not of the backward pass.";
  return [
    element("h3", {}, `Modules, in ${duration(range[1] - range[0])}`),
    element("p", { class: "card-tools" }, of, button("×", "Close", () => stage.flame.replaceChildren())),
    place,
    element("p", { class: "note" }, text),
  ];
}

/** @param {import("./stage.js").Stage} stage @param {ModuleTime} root */
function moduleTable(stage, root) {
  if (!root.children.size) return element("p", { class: "note" }, "No module is called here.");
  const onDevice = root.device > 0;
  const timeOf = (/** @type {ModuleTime} */ one) => (onDevice ? one.device : one.host);
  const childrenOf = (/** @type {ModuleTime} */ one) => [...one.children.values()].sort((a, b) => timeOf(b) - timeOf(a));
  const titles = onDevice ? ["module", "device", "", "device, own", "host", "calls"] : ["module", "host", "", "host, own", "calls"];
  const head = titles.map((title, i) => element(title ? "th" : "td", i ? { class: "number" } : {}, title));
  const body = element("tbody");
  /** @type {Set<ModuleTime>} */
  const open = new Set();
  for (let one = root; one.children.size && open.size < OPENED; one = childrenOf(one)[0]) open.add(one);
  /** @type {(module: ModuleTime, depth: number) => HTMLElement[]} */
  const rowsBelow = (module, depth) =>
    childrenOf(module).flatMap((child) => [rowOf(child, depth), ...(open.has(child) ? rowsBelow(child, depth + 1) : [])]);
  const rowOf = (/** @type {ModuleTime} */ module, /** @type {number} */ depth) => {
    const show = button(module.name, "Show its calls and their device work", () => stage.emphasise(allOf(module)));
    show.className = "link";
    const toggle = button(open.has(module) ? "▾" : "▸", `Modules that ${module.name} calls`, () => {
      if (!open.delete(module)) open.add(module);
      const place = [...body.querySelectorAll("button.level")].indexOf(toggle);
      draw();
      /** @type {HTMLElement | undefined} */ ([...body.querySelectorAll("button.level")][place])?.focus();
    });
    toggle.className = "link level";
    toggle.setAttribute("aria-expanded", String(open.has(module)));
    if (!module.children.size) toggle.style.visibility = "hidden";
    const name = element("td", {}, toggle, " ", show);
    name.style.paddingLeft = `${depth}rem`;
    const share = percent(timeOf(module) / (timeOf(root) || 1));
    const times = onDevice ? [module.device, share, module.deviceOwn, module.host] : [module.host, share, module.hostOwn];
    const cells = [...times.map((one) => (typeof one === "string" ? one : duration(one))), module.calls.toLocaleString("en")];
    return element("tr", {}, name, ...cells.map((cell) => element("td", { class: "number" }, cell)));
  };
  const draw = () => body.replaceChildren(...rowsBelow(root, 0));
  draw();
  return element("table", {}, element("thead", {}, element("tr", {}, ...head)), body);
}

/** The calls of a module and the device work launched in them. @param {ModuleTime} module @returns {number[]} */
function allOf(module) {
  return [...module.events, ...workOf(module)];
}

/** @param {ModuleTime} module @returns {number[]} */
function workOf(module) {
  return [...module.work, ...[...module.children.values()].flatMap(workOf)];
}
