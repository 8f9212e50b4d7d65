// @ts-check
// "If fixed": what the ticked findings save together at most. Their stretches overlap, so it is less than their sum.

import { counted, duration, percent } from "./amounts.js";
import { unionLength } from "./stretches.js";

/**
 * What fixing several findings saves at most, nanoseconds: of one its stake; of several no more than their stakes
 * together, and no more than the time they point at, but what the largest saves alone.
 * @param {import("./timeline.js").Finding[]} findings
 * @param {[number, number]} window
 */
export function savedTogether(findings, window) {
  const stakes = findings.map((finding) => finding.stake);
  const sum = stakes.reduce((total, stake) => total + stake, 0);
  const covered = unionLength(findings.map((finding) => finding.stretches), window);
  return Math.min(window[1] - window[0], Math.max(...stakes, 0, Math.min(sum, covered)));
}

/** @param {import("./timeline.js").Timeline} timeline */
export function followFixes(timeline) {
  const boxes = /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll("input[data-fix]"));
  const output = document.getElementById("if-fixed");
  if (!output) return;
  const tell = () => {
    const ticked = Array.from(boxes).filter((box) => box.checked);
    const findings = ticked.flatMap((box) => timeline.findings[Number(box.dataset.fix)] ?? []);
    const whole = timeline.window[1] - timeline.window[0];
    const saved = savedTogether(findings, timeline.window);
    output.dataset.ns = String(saved);
    output.textContent =
      `${counted(ticked.length, "finding")} fixed: at most ${duration(saved)} of ${duration(whole)} less ` +
      `(${percent(whole ? saved / whole : 0)}).`;
    if (output.parentElement) output.parentElement.hidden = !ticked.length;
  };
  for (const box of boxes) box.addEventListener("change", tell);
  tell();
}
