// @ts-check
// The modules called in a stretch of time as a table whose rows open level by level.

import { duration, percent } from "./amounts.js";
import { button, element } from "./dom.js";
import { moduleTree } from "./modules.js";

/** Number of levels that are open at first, along the modules that take the most time. */
const OPENED = 3;

/** @typedef {import("./modules.js").ModuleTime} ModuleTime */

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
  const text = timeline.forward.length
    ? "Device time is that of the work launched inside a module's calls, and of the backward pass that its operators led to."
    : "Device time is that of the work launched inside a module's calls. Which operator led to which of the backward pass was not recorded.";
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
  const onDevice = root.device + root.backward > 0;
  const isTrained = root.backward > 0;
  const timeOf = (/** @type {ModuleTime} */ one) => (onDevice ? one.device + one.backward : one.host);
  const childrenOf = (/** @type {ModuleTime} */ one) => [...one.children.values()].sort((a, b) => timeOf(b) - timeOf(a));
  const parts = isTrained ? ["forward", "backward"] : [];
  const titles = ["module", ...(onDevice ? ["device", "", ...parts, "device, own", "host"] : ["host", "", "host, own"]), "calls"];
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
    const passes = isTrained ? [module.device, module.backward] : [];
    const times = onDevice ? [timeOf(module), share, ...passes, module.deviceOwn + module.backwardOwn, module.host] : [module.host, share, module.hostOwn];
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
