// @ts-check
// "If fixed": what all ticked findings cost together at most, since their stretches overlap.

import { duration, percent } from "./amounts.js";
import { unionLength } from "./stretches.js";

/** @param {import("./timeline.js").Timeline} timeline */
export function followFixes(timeline) {
  const boxes = /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll("input[data-fix]"));
  const output = document.getElementById("if-fixed");
  if (!output) return;
  const tell = () => {
    const ticked = Array.from(boxes).filter((box) => box.checked);
    const sets = ticked.flatMap((box) => timeline.findings[Number(box.dataset.fix)]?.stretches ?? []);
    const whole = timeline.window[1] - timeline.window[0];
    const saved = unionLength(sets, timeline.window);
    output.dataset.ns = String(saved);
    output.textContent = ticked.length
      ? `If fixed: at most ${duration(saved)} of ${duration(whole)} (${percent(whole ? saved / whole : 0)}) less.`
      : "Tick findings to see what fixing them would save together, at most.";
  };
  for (const box of boxes) box.addEventListener("change", tell);
  tell();
}
