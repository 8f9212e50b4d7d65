// @ts-check
// Search in the names of events: those found stand out, and are gone through one by one.

import { counted } from "./amounts.js";
import { button, element } from "./dom.js";
import { emphasisOfNames } from "./raster.js";
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

export class Search {
  /** @param {import("./stage.js").Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.input = element("input", {
      type: "search",
      placeholder: "Search, or /regular expression/",
      "aria-label": "Search names, or a regular expression between slashes",
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

  /** @param {string} text */
  set(text) {
    if (!text) this.kind.value = "";
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
      this.count.textContent = "not a regular expression";
      return;
    }
    if (!this.isOn()) return stage.emphasise(null);
    const found = Uint8Array.from(timeline.names, (name, i) =>
      Number(matches(name) || (timeline.shortNames[i] !== "" && matches(timeline.shortNames[i]))),
    );
    this.names = found.reduce((sum, one) => sum + one, 0);
    stage.light(emphasisOfNames(timeline, found, Number(this.kind.value)));
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
      this.count.textContent = lit.count ? `${isOne ? `${this.stage.placeOf(selected)}/` : ""}${lit.count}` : "none found";
      this.count.title = `${counted(lit.count, "event")} of ${counted(this.names, "name")}`;
    }
  }
}
