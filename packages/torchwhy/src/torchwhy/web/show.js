// @ts-check
// What a click elsewhere on the page shows in the timeline: elements with data-show="KIND:VALUE".

import { counted } from "./amounts.js";
import { extent } from "./stretches.js";

/** @typedef {import("./timeline.js").Stretches} Stretches */

/**
 * Stretches to highlight, events that stand out, and the stretch to look at where it isn't all of them.
 * @typedef {{stretches?: Stretches | null, events?: ArrayLike<number> & Iterable<number>, look?: [number, number], band?: number, says: string}} Target
 */

/**
 * @param {import("./timeline.js").Timeline} timeline
 * @param {string} what such as "finding:0", "evidence:0:1", "part:copies", "step:3", "stretch:START:LENGTH" in nanoseconds,
 *   "name:aten::mm", "rank:2"
 * @returns {Target | null} null where the timeline has no such thing
 */
export function targetOf(timeline, what) {
  const [kind, value, more] = what.split(":", 3);
  const number = Number(value);
  if (kind === "finding") {
    const finding = timeline.findings[number];
    if (!finding) return null;
    const events = new Set(finding.evidence.flatMap((one) => Array.from(one)));
    return { stretches: finding.stretches, events: Uint32Array.from(events), says: finding.title };
  }
  if (kind === "evidence") {
    const events = timeline.findings[number]?.evidence[Number(more)];
    return events ? { events, says: counted(events.length, "event") } : null;
  }
  if (kind === "part") {
    const stretches = timeline.parts.get(value);
    return stretches ? { stretches, says: counted(stretches.start.length, "stretch", "stretches") } : null;
  }
  if (kind === "step") {
    const step = timeline.steps[number];
    return step ? { stretches: one(step.start, step.deviceEnd), says: step.name } : null;
  }
  if (kind === "stretch") return { stretches: one(number, number + Number(more)), says: "the stretch" };
  if (kind === "name") {
    const events = eventsNamed(timeline, what.slice("name:".length));
    return events.length ? { events, look: timeline.window, says: counted(events.length, "event") } : null;
  }
  if (kind === "rank") {
    const band = timeline.bands.findIndex((candidate) => candidate.source === `rank ${value}`);
    return band >= 0 ? { band, says: `rank ${value}` } : null;
  }
  return null;
}

/** @param {number} start @param {number} end @returns {Stretches} */
function one(start, end) {
  return { start: Float64Array.of(start), end: Float64Array.of(end) };
}

/**
 * @param {import("./timeline.js").Timeline} timeline
 * @param {string} text a name, or the short name of kernels
 */
function eventsNamed(timeline, text) {
  const wanted = text.slice(0, timeline.longestName);
  const meant = timeline.names.map((name, i) => name === wanted || timeline.shortNames[i] === wanted);
  const found = [];
  for (let i = 0; i < timeline.count; i++) if (meant[timeline.name[i]]) found.push(i);
  return found;
}

/**
 * @param {import("./stage.js").Stage} stage
 * @param {Target} target
 */
export function showTarget(stage, target) {
  const { timeline } = stage;
  const events = target.events ?? [];
  let longest = -1;
  for (const event of events) {
    if (longest < 0 || length(timeline, event) > length(timeline, longest)) longest = event;
  }
  stage.stretches = target.stretches ?? null;
  stage.emphasise(events.length ? events : null);
  const around = extent(timeline, stage.stretches, events);
  const look = around && target.look ? [Math.min(around[0], target.look[0]), Math.max(around[1], target.look[1])] : around;
  if (look) stage.lookAt(look[0], look[1]);
  if (longest >= 0) stage.scrollToEvent(longest);
  if (target.band !== undefined) stage.scrollTo(stage.layout.bands[target.band].top);
  stage.select(longest);
  stage.say(`Shown: ${target.says}`);
}

/** @param {import("./timeline.js").Timeline} timeline @param {number} event */
function length(timeline, event) {
  return timeline.end[event] - timeline.start[event];
}

/**
 * Let elements with data-show show what they name: in the stage whose number data-stage has, else in the first that
 * knows it; a name in all of them.
 * @param {import("./stage.js").Stage[]} stages
 */
export function followLinks(stages) {
  /** @param {HTMLElement} link */
  const follow = (link) => {
    const what = link.dataset.show ?? "";
    const chosen = link.dataset.stage === undefined ? stages : stages.slice(Number(link.dataset.stage)).slice(0, 1);
    let shown = false;
    for (const stage of chosen) {
      const target = targetOf(stage.timeline, what);
      if (!target || (shown && !what.startsWith("name:"))) continue;
      showTarget(stage, target);
      if (!shown) stage.element.scrollIntoView({ block: "nearest" });
      shown = true;
    }
    for (const other of document.querySelectorAll("button[data-show]")) {
      other.setAttribute("aria-pressed", String(other === link));
    }
    if (!shown) chosen[0]?.say("The timeline doesn't have it.");
  };
  document.addEventListener("click", (event) => {
    const link = /** @type {Element} */ (event.target).closest("[data-show]");
    if (link) follow(/** @type {HTMLElement} */ (link));
  });
  document.addEventListener("keydown", (event) => {
    const link = /** @type {HTMLElement} */ (event.target);
    if (event.key === "Enter" && link.dataset?.show && link.tagName !== "BUTTON") follow(link);
  });
}
