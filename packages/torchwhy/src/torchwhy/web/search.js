// @ts-check
// Search in the names of events: those found stand out, and are gone through one by one.

import { counted } from "./amounts.js";
import { button, element } from "./dom.js";

export class Search {
  /** @param {import("./stage.js").Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.input = element("input", { type: "search", placeholder: "Search names ( / )", "aria-label": "Search names" });
    this.count = element("output", { class: "count" });
    this.names = 0;
    this.input.addEventListener("input", () => this.find());
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") stage.next(event.shiftKey ? -1 : 1);
      else if (event.key === "Escape") stage.view.focus();
      else return;
      event.preventDefault();
    });
    stage.watchers.add(() => this.tell());
    stage.tools.prepend(
      this.input,
      button("‹", "Previous one found (,)", () => stage.next(-1)),
      button("›", "Next one found (.)", () => stage.next(1)),
      this.count,
    );
  }

  /** @param {string} text */
  set(text) {
    this.input.value = text;
    this.find();
  }

  find() {
    const { stage } = this;
    const { timeline } = stage;
    const wanted = this.input.value.toLowerCase();
    const found = timeline.names.map(
      (name, i) => name.toLowerCase().includes(wanted) || timeline.shortNames[i].toLowerCase().includes(wanted),
    );
    this.names = found.filter(Boolean).length;
    stage.emphasise(wanted ? (event) => found[timeline.name[event]] : null);
  }

  /** Write how many there are, and which is selected: "3/12". */
  tell() {
    const { lit, selected } = this.stage;
    if (!this.input.value || !lit) this.count.textContent = "";
    else {
      const isOne = selected >= 0 && lit.before[selected + 1] > lit.before[selected];
      const at = isOne ? `${this.stage.emphasised().indexOf(selected) + 1}/` : "";
      this.count.textContent = `${at}${lit.count}`;
      this.count.title = `${counted(lit.count, "event")} of ${counted(this.names, "name")}`;
    }
  }
}
