// @ts-check
// What the colours of a timeline mean. A click lets the events of a colour stand out.

import { button, element } from "./dom.js";

/** @param {import("./stage.js").Stage} stage @returns {HTMLElement[]} */
export function legendOf(stage) {
  const { colours, timeline } = stage;
  if (!colours || stage.colouring === "name") return [element("li", {}, "Each name has a colour; several share one.")];
  const { kind, name } = timeline;
  const seen = new Uint8Array(256);
  for (let i = 0; i < timeline.count; i++) seen[colours.slotOf(kind[i], name[i])] = 1;
  return colours.meanings
    .filter(({ slot }) => seen[slot])
    .map(({ slot, text }) => {
      const swatch = element("i", { class: "swatch", "aria-hidden": "true" });
      swatch.style.background = colours.css(slot);
      const made = button("", `Let ${text} stand out`, () =>
        stage.emphasise((event) => colours.slotOf(timeline.kind[event], timeline.name[event]) === slot),
      );
      made.className = "link";
      made.append(swatch, ` ${text}`);
      return element("li", {}, made);
    });
}
