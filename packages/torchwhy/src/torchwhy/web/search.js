// @ts-check
// Search in the names of events: those found stand out, and are gone through one by one.

import { counted } from "./amounts.js";
import { button, element } from "./dom.js";
import { emphasis, emphasisOfNames } from "./raster.js";
import { KIND_PLURALS } from "./timeline.js";

/**
 * Which names a search means: a part of the name in any case, or a regular expression between slashes.
 * @param {string} text
 * @returns {((name: string) => boolean) | null} null where the expression isn't one
 */
export function matcher(text) {
  const pattern = /^\/(.*)\/$/.exec(text)?.[1];
  if (pattern === undefined) {
    const wanted = text.toLowerCase();
    return (name) => name.toLowerCase().includes(wanted);
  }
  try {
    const expression = new RegExp(pattern, "i");
    return (name) => expression.test(name);
  } catch {
    return null;
  }
}

/** What is wrong with a regular expression between slashes, in the words of the browser. @param {string} text */
function faultOf(text) {
  try {
    new RegExp(text.slice(1, -1), "i");
    return "";
  } catch (error) {
    return String(/** @type {Error} */ (error).message).split(": ").at(-1) ?? "";
  }
}

/**
 * The events with an argument that matches, where the search names one: "shapes: 64, 3", "grid: 128".
 * @param {import("./timeline.js").Timeline} timeline
 * @param {string} text
 * @returns {Uint8Array | null} 1 for each that has it; null where no argument is named
 */
export function eventsTold(timeline, text) {
  const [, label, wanted] = /^([a-z][^:]*):\s*(\S.*)$/i.exec(text) ?? [];
  const column = timeline.arguments.find((one) => one.label === label?.toLowerCase());
  const bare = (/** @type {string} */ one) => one.replaceAll(" ", ""); // files write lists with and without
  const matches = column && matcher(bare(wanted));
  if (!column || !matches) return null;
  const found = new Uint8Array(timeline.count);
  const chosen = column.texts.map((one) => matches(bare(one)));
  column.events.forEach((event, i) => (found[event] = Number(chosen[column.values[i]])));
  return found;
}

export class Search {
  /** @param {import("./stage.js").Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.input = element("input", {
      type: "search",
      placeholder: "Search, or /regexp/",
      "aria-label": "Search names, or a regular expression between slashes, or an argument as in shapes: 64, 3",
    });
    this.kind = element("select", { "aria-label": "Kind of events" }, element("option", { value: "" }, "all kinds"));
    const kinds = new Set(stage.timeline.kind);
    for (const [number, name] of Object.entries(KIND_PLURALS)) {
      if (kinds.has(Number(number))) this.kind.append(element("option", { value: number }, name));
    }
    this.count = element("output", { class: "count" });
    this.names = 0;
    this.input.addEventListener("input", () => this.find());
    this.kind.addEventListener("change", () => this.find());
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") stage.next(event.shiftKey ? -1 : 1);
      else if (event.key === "Escape") stage.view.focus();
      else return;
      event.preventDefault();
    });
    stage.watchers.add(() => this.tell());
    stage.tools.prepend(
      this.input,
      this.kind,
      button("‹", "Previous one found (,)", () => stage.next(-1)),
      button("›", "Next one found (.)", () => stage.next(1)),
      this.count,
    );
  }

  /** @param {string} text @param {boolean} [keepKind] else no text means no kind either */
  set(text, keepKind = false) {
    if (!text && !keepKind) this.kind.value = "";
    this.input.value = text;
    this.find();
  }

  find() {
    const { stage } = this;
    const { timeline } = stage;
    const text = this.input.value;
    const matches = matcher(text);
    this.input.setAttribute("aria-invalid", String(!matches));
    if (!matches) {
      this.count.textContent = `no regular expression: ${faultOf(text)}`;
      return;
    }
    if (!this.isOn()) return stage.emphasise(null);
    const byEvent = eventsTold(timeline, text);
    const kind = Number(this.kind.value);
    if (byEvent) {
      this.names = new Set(timeline.name.filter((_, i) => byEvent[i])).size;
      return stage.light(emphasis(timeline.count, (i) => byEvent[i] === 1 && (!kind || timeline.kind[i] === kind)));
    }
    const found = Uint8Array.from(timeline.names, (name, i) =>
      Number(matches(name) || (timeline.shortNames[i] !== "" && matches(timeline.shortNames[i]))),
    );
    this.names = found.reduce((sum, one) => sum + one, 0);
    stage.light(emphasisOfNames(timeline, found, kind));
  }

  /** Whether there is anything to find. */
  isOn() {
    return this.input.value !== "" || this.kind.value !== "";
  }

  /** Write how many there are, and which is selected: "3/12". */
  tell() {
    const { lit, selected } = this.stage;
    if (this.input.getAttribute("aria-invalid") === "true") return;
    if (!this.isOn() || !lit) this.count.textContent = "";
    else {
      const isOne = selected >= 0 && lit.before[selected + 1] > lit.before[selected];
      this.count.textContent = lit.count ? `${isOne ? `${this.stage.placeOf(selected).toLocaleString("en")}/` : ""}${lit.count.toLocaleString("en")}` : "none found";
      this.count.title = `${counted(lit.count, "event")} of ${counted(this.names, "name")}`;
    }
  }
}
