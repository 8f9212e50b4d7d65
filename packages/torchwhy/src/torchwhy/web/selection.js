// @ts-check
// What there is to say of the selected event: name, times, what is around it, its launch and its work.

import { counted, duration, percent } from "./amounts.js";
import { button, element } from "./dom.js";
import { describeFound } from "./found.js";
import { coveredBefore } from "./measure.js";
import { describeRange, describeView, hint } from "./range.js";
import { targetOf, showTarget } from "./show.js";
import { lowerBound } from "./sorted.js";
import { KIND_NAMES } from "./timeline.js";

const MOST_WORK = 12;
const OPERATOR = 1;
/** Frames of the program itself: no library's, nothing built in. */
const OWN_CODE = /^(?!.*(?:site-packages|dist-packages|lib\/python|^torch\/|^<)).*\.py\(\d+\)/;

/** Milliseconds that a range or a search stays as it is before it is summed up, and that the view does. */
const SETTLED = 120;
const PART_SETTLED = 300;

/**
 * @param {import("./stage.js").Stage} stage
 * @param {import("./search.js").Search} search
 */
export function followSelection(stage, search) {
  /** @type {unknown} */
  let shown = null;
  /** The view, if it is shown. @type {unknown} */
  let viewed;
  let timer = 0;
  const later = (/** @type {(stage: import("./stage.js").Stage) => HTMLElement[]} */ what, /** @type {number} */ settled) => {
    timer = window.setTimeout(() => stage.panel.replaceChildren(...what(stage)), settled);
  };
  const follow = () => {
    const found = stage.selected < 0 && search.isOn();
    const wanted = stage.range ?? (found ? stage.lit : stage.selected < 0 ? stage.seen : stage.selected);
    if (wanted === shown) return;
    const described = shown === viewed;
    shown = wanted;
    viewed = wanted === stage.seen ? wanted : null;
    clearTimeout(timer);
    if (stage.range) later(describeRange, SETTLED);
    else if (found) later(describeFound, SETTLED);
    else if (stage.selected < 0) {
      if (!described) stage.panel.replaceChildren(hint());
      later(describeView, PART_SETTLED);
    }
    else {
      stage.panel.replaceChildren(...describe(stage, stage.selected));
      stage.say(sentence(stage.timeline, stage.selected));
    }
  };
  stage.watchers.add(follow);
  follow();
}

/**
 * What a pointer over an event shows, in lines.
 * @param {import("./timeline.js").Timeline} timeline
 * @param {number} event
 */
export function glance(timeline, event) {
  const row = timeline.rowOf(event);
  const number = timeline.bandOf(row);
  const length = timeline.end[event] - timeline.start[event];
  const what = KIND_NAMES[/** @type {keyof typeof KIND_NAMES} */ (timeline.kind[event])];
  const category = timeline.category[timeline.name[event]];
  const lines = [
    `${timeline.label(event).slice(0, 300)}: ${duration(length)}${insideText(timeline, row, event)}`,
    `${what}${category && `, ${category}`}, on ${timeline.bandLabel(number)}`,
    ...timeline.argumentsOf(event).slice(0, 3).map(([label, value]) => `${label}: ${value.slice(0, 120)}`),
  ];
  const origin = originOf(timeline, event).map((one) => timeline.label(one).slice(0, 120));
  if (origin.length) lines.push(`work of ${origin.join(" ← ")}`);
  return lines.join("\n");
}

/**
 * One sentence, for screen readers.
 * @param {import("./timeline.js").Timeline} timeline
 * @param {number} event
 */
export function sentence(timeline, event) {
  const band = timeline.bands[timeline.bandOf(timeline.rowOf(event))];
  const { start, end } = timeline;
  const what = KIND_NAMES[/** @type {keyof typeof KIND_NAMES} */ (timeline.kind[event])];
  const name = timeline.label(event).slice(0, 200);
  return `${name}, ${what}, ${duration(end[event] - start[event])}, at ${moment(start[event])}, on ${band.label}.`;
}

/** A time from the trace's beginning, to the nanosecond where that is known. @param {number} ns */
function moment(ns) {
  return `${(ns / 1e6).toLocaleString("en", { maximumFractionDigits: 6 })} ms`;
}

/**
 * @param {import("./stage.js").Stage} stage
 * @param {number} event
 */
function describe(stage, event) {
  const { timeline } = stage;
  const { start, end } = timeline;
  const row = timeline.rowOf(event);
  const band = timeline.bands[timeline.bandOf(row)];
  const length = end[event] - start[event];
  const facts = element("dl");
  const add = (/** @type {string} */ term, /** @type {(Node | string)[]} */ ...what) =>
    facts.append(element("dt", {}, term), element("dd", {}, ...what));
  const link = (/** @type {number} */ other) => {
    const made = button(timeline.label(other).slice(0, 120), timeline.text(other), () => stage.visit(other));
    made.className = "link";
    return made;
  };
  add(KIND_NAMES[/** @type {keyof typeof KIND_NAMES} */ (timeline.kind[event])], element("code", {}, timeline.text(event)));
  const origin = originOf(timeline, event).map((other, i) => {
    const made = link(other);
    if (i) made.prepend("← ");
    return element("div", {}, made);
  });
  if (origin.length) add("work of", ...origin);
  const operator = originOf(timeline, event).find((one) => timeline.kind[one] === OPERATOR);
  for (const [label, value] of operator === undefined ? [] : timeline.argumentsOf(operator)) add(`its ${label}`, value);
  add("on", band.source ? `${band.source}, ${band.label}` : band.label);
  const [windowStart] = stage.window;
  const inWindow = windowStart ? `, ${moment(start[event] - windowStart)} of the window` : "";
  add("begins", `at ${moment(start[event])} of the trace${inWindow}`);
  add("takes", `${duration(length)}${insideText(timeline, row, event)}`);
  for (const [label, value] of timeline.argumentsOf(event)) add(label, value);
  const step = timeline.steps.find((one) => start[event] >= one.start && start[event] < one.end);
  if (step) add("in", step.name);
  const same = timeline.totalsOf(timeline.name[event]);
  const all = button(
    `${counted(same.count, "event")} of this name, ${duration(same.time)} together`,
    "Show all events of this name",
    () => stage.emphasise((one) => timeline.name[one] === timeline.name[event]),
  );
  all.className = "link";
  add("alike", all);
  const launch = timeline.launchOf(event);
  if (launch >= 0) add("launched by", link(launch), ` ${duration(start[event] - start[launch])} before it began`);
  const works = timeline.worksOf(event);
  if (works.length) {
    const more = works.length > MOST_WORK ? ` and ${works.length - MOST_WORK} more` : "";
    add("launches", ...works.slice(0, MOST_WORK).flatMap((work) => [link(work), " "]), more);
  }
  const forward = timeline.forwardOf(event);
  if (forward >= 0) add("backward of", link(forward));
  const backwards = timeline.backwardsOf(event);
  if (backwards.length) add("backward is", ...backwards.slice(0, MOST_WORK).flatMap((one) => [link(one), " "]));
  const calls = band.side === "frames" ? [] : timeline.around(event, band);
  if (calls.length) add("inside", ...calls.flatMap((call) => [link(call), " "]));
  const caller = launch >= 0 ? launch : event;
  const stack = timeline.stack(caller);
  if (stack.length) add(launch >= 0 ? "launched from" : "called from", stackList(stack.map(link)));
  const findings = timeline.findings.flatMap((finding, i) => (names(finding, event) ? [i] : []));
  for (const i of findings) {
    const show = button(timeline.findings[i].title, "Show this finding", () => {
      const target = targetOf(timeline, `finding:${i}`);
      if (target) showTarget(stage, target);
    });
    show.className = "link";
    add("named by", show);
  }
  return [facts];
}

/**
 * What a piece of device work comes from: the operator that launched it, its module and the line of the program.
 * @param {import("./timeline.js").Timeline} timeline
 * @param {number} event
 */
function originOf(timeline, event) {
  const launch = timeline.launchOf(event);
  if (launch < 0) return [];
  const calls = timeline.around(launch, timeline.bands[timeline.bandOf(timeline.rowOf(launch))]);
  const operator = calls.find((call) => timeline.kind[call] === OPERATOR);
  const stack = timeline.stack(launch);
  const module = stack.find((frame) => timeline.text(frame).startsWith("nn.Module: "));
  const line = stack.find((frame) => OWN_CODE.test(timeline.text(frame)));
  return [operator, module, line].filter((one) => one !== undefined);
}

/** @param {HTMLElement[]} links */
function stackList(links) {
  const list = element("ol", { class: "stack" });
  for (const link of links) list.append(element("li", {}, link));
  return list;
}

/**
 * How much of an event its own calls take, where any do.
 * @param {import("./timeline.js").Timeline} timeline
 * @param {number} row
 * @param {number} event
 */
function insideText(timeline, row, event) {
  if (row + 2 > timeline.rowBegins.length - 1 || timeline.bandOf(row + 1) !== timeline.bandOf(row)) return "";
  const { start, end } = timeline;
  const inside = coveredBefore(timeline, row + 1, end[event]) - coveredBefore(timeline, row + 1, start[event]);
  return inside > 0 ? `, ${percent(inside / (end[event] - start[event]))} of it in calls` : "";
}

/** @param {import("./timeline.js").Finding} finding @param {number} event */
function names(finding, event) {
  return finding.evidence.some((events) => events[lowerBound(events, 0, events.length, event)] === event);
}
