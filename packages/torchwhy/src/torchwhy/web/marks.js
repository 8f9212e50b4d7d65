// @ts-check
// Moments that the reader marks, each with a note: drawn over the rows, listed below them, kept in the page's address.

import { duration } from "./amounts.js";
import { button, element } from "./dom.js";

/** Characters of a note. */
const LONGEST_NOTE = 200;
const MOST_MARKS = 50;

/** A moment in nanoseconds and what the reader says of it. @typedef {{time: number, note: string}} Mark */

export class Marks {
  /** @param {import("./stage.js").Stage} stage */
  constructor(stage) {
    this.stage = stage;
    /** In order of time. @type {Mark[]} */
    this.all = [];
    this.element = element("ol", { class: "marks", "aria-label": "Marks" });
  }

  /** Mark a moment, and let the reader write a note. @param {number} time */
  add(time) {
    if (this.all.length >= MOST_MARKS) return this.stage.say(`There are ${MOST_MARKS} marks already.`);
    const mark = { time: Math.round(time), note: "" };
    this.set([...this.all, mark]);
    this.element.querySelectorAll("input")[this.all.indexOf(mark)]?.focus({ preventScroll: true });
    this.stage.say(`Mark ${this.all.indexOf(mark) + 1}, at ${duration(mark.time - this.stage.window[0])} of the window.`);
  }

  /** @param {readonly Mark[]} marks */
  set(marks) {
    this.all = [...marks].sort((a, b) => a.time - b.time).slice(0, MOST_MARKS);
    this.element.replaceChildren(...this.all.map((mark, i) => this.item(mark, i)));
    this.stage.changed();
  }

  /** @param {Mark} mark @param {number} i */
  item(mark, i) {
    const { stage } = this;
    const before = this.all[i - 1];
    const since = before ? `, ${duration(mark.time - before.time)} after mark ${i}` : "";
    const note = element("input", { type: "text", placeholder: "note", "aria-label": `Note of mark ${i + 1}`, maxlength: String(LONGEST_NOTE) });
    note.value = mark.note;
    note.addEventListener("input", () => {
      mark.note = note.value;
      stage.changed();
    });
    note.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === "Escape") stage.view.focus({ preventScroll: true });
    });
    const go = button(`at ${duration(mark.time - stage.window[0])}`, `Show mark ${i + 1}`, () => {
      const half = (stage.seen.t1 - stage.seen.t0) / 2;
      stage.look(mark.time - half, mark.time + half);
    });
    go.className = "link";
    const remove = button("×", `Remove mark ${i + 1}`, () => this.set(this.all.filter((other) => other !== mark)));
    return element("li", {}, go, since, " ", note, " ", remove);
  }

  /** As they are in the address of the page. */
  parts() {
    return this.all.map(({ time, note }) => `mark=${time},${encodeURIComponent(note)}`);
  }

  /** The inverse. @param {string[]} texts of all marks in the address */
  read(texts) {
    const found = texts.map((text) => /^(-?\d{1,16})(?:,(.*))?$/s.exec(text));
    this.set(found.flatMap((one) => (one ? [{ time: Number(one[1]), note: (one[2] ?? "").slice(0, LONGEST_NOTE) }] : [])));
  }
}
