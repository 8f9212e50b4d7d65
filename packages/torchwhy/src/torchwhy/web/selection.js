// @ts-check
// What there is to say of the selected event: name, times, what is around it, its launch and its work.

import { counted, duration, percent } from "./amounts.js";
import { button, element } from "./dom.js";
import { coveredBefore } from "./minimap.js";
import { targetOf, showTarget } from "./show.js";
import { lowerBound } from "./sorted.js";
import { KIND_NAMES } from "./timeline.js";

const MOST_WORK = 12;

/** @param {import("./stage.js").Stage} stage */
export function followSelection(stage) {
  let shown = -2;
  const follow = () => {
    if (stage.selected === shown) return;
    shown = stage.selected;
    stage.panel.replaceChildren(...(shown < 0 ? [hint()] : describe(stage, shown)));
    if (shown >= 0) stage.say(sentence(stage.timeline, shown));
  };
  stage.watchers.add(follow);
  follow();
}

function hint() {
  const keys = "W and S zoom, A and D pan, F fits, / searches, . and , go on, N and P go through the findings, Esc clears.";
  return element("p", { class: "note" }, `Click an event, or walk from one to the next with the arrow keys. ${keys}`);
}

/**
 * One sentence, for those who hear it.
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
  add("on", band.source ? `${band.source}, ${band.label}` : band.label);
  const [windowStart] = timeline.window;
  const inWindow = windowStart ? `, ${moment(start[event] - windowStart)} of the window` : "";
  add("begins", `at ${moment(start[event])} of the trace${inWindow}`);
  add("takes", `${duration(length)}${insideText(timeline, row, event)}`);
  for (const [label, value] of timeline.argumentsOf(event)) add(label, value);
  const step = timeline.steps.find((one) => start[event] >= one.start && start[event] < one.end);
  if (step) add("in", step.name);
  const same = alike(timeline, event);
  const all = button(
    `${counted(same.count, "event")} of this name, ${duration(same.total)} together`,
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

/** @param {import("./timeline.js").Timeline} timeline @param {number} event */
function alike({ name, start, end, count: events }, event) {
  let count = 0;
  let total = 0;
  for (let i = 0; i < events; i++) {
    if (name[i] === name[event]) {
      count++;
      total += end[i] - start[i];
    }
  }
  return { count, total };
}

/** @param {import("./timeline.js").Finding} finding @param {number} event */
function names(finding, event) {
  return finding.evidence.some((events) => events[lowerBound(events, 0, events.length, event)] === event);
}
