// @ts-check
// What a click elsewhere on the page shows in the timeline: elements with data-show="KIND:VALUE".

import { counted } from "./amounts.js";
import { button, element } from "./dom.js";
import { extent } from "./stretches.js";

/** @typedef {import("./timeline.js").Stretches} Stretches */

/**
 * Stretches to highlight, events that stand out, and the stretch to look at where it isn't all of them.
 * @typedef {{stretches?: Stretches | null, events?: ArrayLike<number> & Iterable<number>, look?: [number, number], band?: number, says: string}} Target
 */

/**
 * @param {import("./timeline.js").Timeline} timeline
 * @param {string} what such as "finding:0", "evidence:0:1", "part:copies", "step:3", "stretch:START:LENGTH" in nanoseconds,
 *   "name:aten::mm", "titled:TITLE" of a finding, "rank:2"
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
  if (kind === "titled") {
    const title = what.slice("titled:".length);
    const place = timeline.findings.findIndex((one) => one.title === title);
    return place < 0 ? null : targetOf(timeline, `finding:${place}`);
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
    return band < 0 ? null : { band, events: eventsOfSource(timeline, `rank ${value}`), says: `rank ${value}` };
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

/** What the devices of a rank do. @param {import("./timeline.js").Timeline} timeline @param {string} source */
function eventsOfSource({ bands, rowBegins }, source) {
  return bands.flatMap((band) => {
    if (band.source !== source || band.side !== "device") return [];
    const [first, last] = [rowBegins[band.firstRow], rowBegins[band.firstRow + band.rows]];
    return Array.from({ length: last - first }, (_, i) => first + i);
  });
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
  if (target.band !== undefined) stage.scrollTo(stage.layout.of[target.band]?.top ?? 0);
  else if (longest >= 0) stage.scrollToEvent(longest);
  stage.select(target.band === undefined ? longest : -1);
  stage.say(`Shown: ${target.says}`);
}

/** @param {import("./timeline.js").Timeline} timeline @param {number} event */
function length(timeline, event) {
  return timeline.end[event] - timeline.start[event];
}

/** Scroll to an element; unfold the section that holds it. @param {HTMLElement} one */
function reveal(one) {
  const folded = one.closest("details");
  if (folded) folded.open = true;
  one.scrollIntoView({ block: "center" });
}

/** What is shown of the page's findings, steps and names, and the bar above the timeline that says so. */
export class Shown {
  /**
   * Elements with data-show show what they name: in the stage whose number data-stage has, else in the first that knows
   * it; a name in all of them.
   * @param {import("./stage.js").Stage[]} stages
   */
  constructor(stages) {
    this.stages = stages;
    /** As in data-show; "" for nothing. */
    this.what = "";
    document.addEventListener("click", (event) => {
      const link = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("[data-show]"));
      if (link) this.show(link.dataset.show ?? "", link.dataset.stage);
    });
    document.addEventListener("keydown", (event) => {
      const link = /** @type {HTMLElement} */ (event.target);
      const pressed = event.key === "Enter" || event.key === " ";
      if (!pressed || !link.dataset?.show || link.tagName === "BUTTON") return;
      event.preventDefault();
      this.show(link.dataset.show, link.dataset.stage);
    });
  }

  /**
   * @param {string} what as in data-show
   * @param {string} [number] of the stage
   */
  show(what, number) {
    const { stages } = this;
    const chosen = number === undefined ? stages : stages.slice(Number(number)).slice(0, 1);
    this.what = "";
    for (const stage of chosen) {
      const target = targetOf(stage.timeline, what);
      if (!target || (this.what && !what.startsWith("name:"))) continue;
      showTarget(stage, target);
      this.tell(stage, what, target);
      if (!this.what) stage.element.scrollIntoView({ block: "start" });
      this.what = what;
    }
    for (const other of document.querySelectorAll("button[data-show]")) {
      const same = other instanceof HTMLElement && other.dataset.show === what && other.dataset.stage === number;
      other.setAttribute("aria-pressed", String(same));
    }
    if (!this.what) chosen[0]?.say("The timeline doesn't have it.");
  }

  /** Show the next finding, or the one before. @param {1 | -1} way */
  finding(way) {
    const count = this.stages[0]?.timeline.findings.length ?? 0;
    if (!count) return;
    const now = this.what.startsWith("finding:") ? Number(this.what.slice("finding:".length)) : way > 0 ? -1 : count;
    this.show(`finding:${(now + way + count) % count}`);
  }

  clear() {
    this.what = "";
    for (const stage of this.stages) {
      stage.bar.replaceChildren();
      stage.stretches = null;
      stage.range = null;
      stage.select(-1);
    }
    for (const other of document.querySelectorAll('[aria-pressed="true"]')) other.setAttribute("aria-pressed", "false");
  }

  /**
   * Say above the timeline what it shows.
   * @param {import("./stage.js").Stage} stage
   * @param {string} what
   * @param {Target} target
   */
  tell(stage, what, target) {
    const [kind, value] = what.split(":", 2);
    const clear = button("×", "Show nothing (Esc)", () => this.clear());
    if (kind !== "finding") return stage.bar.replaceChildren(element("span", {}, target.says), clear);
    const place = `Finding ${Number(value) + 1} of ${stage.timeline.findings.length}: `;
    const card = document.getElementById(`finding-${value}`);
    stage.bar.replaceChildren(
      element("span", {}, element("strong", {}, place), target.says),
      button("‹", "Previous finding (P)", () => this.finding(-1)),
      button("›", "Next finding (N)", () => this.finding(1)),
      ...(card ? [button("card", "Back to the card of this finding", () => reveal(card))] : []),
      clear,
    );
  }
}
