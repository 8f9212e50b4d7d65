// @ts-check
// Columns of amounts that add up: a bar after each number, and the amounts of one step instead of all.

import { duration, sizeText } from "./amounts.js";
import { checkbox } from "./dom.js";

/** Times are in the page in microseconds. @type {Record<string, (value: number) => string>} */
const WORDS = {
  us: (value) => duration(value * 1000),
  B: (value) => sizeText(Math.round(value)),
  count: (value) => value.toLocaleString("en", { maximumFractionDigits: 1 }),
};

/** @param {number} steps of the trace; below 2 there is no choice */
export function drawAmounts(steps) {
  for (const table of /** @type {NodeListOf<HTMLTableElement>} */ (document.querySelectorAll("table[data-sortable]"))) {
    const columns = [...(table.tHead?.rows[0]?.cells ?? [])].flatMap((heading, i) => {
      const { sums } = heading.dataset;
      return sums ? [{ i, sums }] : [];
    });
    if (!columns.length) continue;
    for (const { i, sums } of columns) if (sums === "us") drawBars(table, i);
    if (steps < 2) continue;
    const words = /** @type {Map<HTMLElement, string>} */ (new Map());
    const box = checkbox(`per step (1/${steps})`, false, (checked) => {
      for (const row of table.tBodies[0].rows) {
        for (const { i, sums } of columns) {
          const cell = row.cells[i];
          if (!cell?.dataset.value) continue;
          if (!words.has(cell)) words.set(cell, cell.textContent ?? "");
          cell.textContent = checked ? WORDS[sums](Number(cell.dataset.value) / steps) : (words.get(cell) ?? "");
        }
      }
    });
    toolsOf(table).append(box);
  }
}

/** The line of tools above a table. @param {HTMLTableElement} table */
function toolsOf(table) {
  const before = table.previousElementSibling;
  if (before?.classList.contains("card-tools")) return before;
  const made = document.createElement("p");
  made.className = "card-tools needs-script";
  table.before(made);
  return made;
}

/** @param {HTMLTableElement} table @param {number} column */
function drawBars(table, column) {
  const rows = [...table.tBodies[0].rows].filter((row) => !row.classList.contains("total"));
  const values = rows.map((row) => Number(row.cells[column]?.dataset.value ?? 0));
  const most = values.reduce((one, other) => Math.max(one, other), 0);
  rows.forEach((row, i) => {
    if (values[i] > 0) row.cells[column].style.setProperty("--share", `${(100 * values[i]) / most}%`);
  });
}
