// @ts-check
// Tables with data-sortable are sorted by a click on a heading: numbers from the largest, texts from A. Long ones are
// filtered by a text.

import { counted } from "./amounts.js";
import { element } from "./dom.js";

/** A table has a filter from this number of rows on. */
const LONG = 12;

export function followHeadings() {
  for (const table of document.querySelectorAll("table[data-sortable]")) {
    table.querySelectorAll("thead th").forEach((heading, column) => {
      if (!heading.textContent) return;
      const button = element("button", { type: "button", class: "sort" }, ...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => sortBy(/** @type {HTMLTableElement} */ (table), column));
    });
    addFilter(/** @type {HTMLTableElement} */ (table));
  }
}

/** @param {HTMLTableElement} table */
function addFilter(table) {
  const rows = Array.from(table.tBodies[0]?.rows ?? []).filter((row) => !row.classList.contains("total"));
  if (rows.length < LONG) return;
  const input = element("input", { type: "search", placeholder: "Filter", "aria-label": "Show the rows with this text" });
  const count = element("output", { class: "count" });
  input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase();
    let shown = 0;
    for (const row of rows) {
      row.hidden = !(row.textContent ?? "").toLowerCase().includes(wanted);
      if (!row.hidden) shown++;
    }
    count.textContent = wanted ? `${shown} of ${counted(rows.length, "row")}` : "";
  });
  table.before(element("p", { class: "card-tools needs-script" }, input, count));
}

/**
 * @param {HTMLTableElement} table
 * @param {number} column
 */
function sortBy(table, column) {
  const headings = table.querySelectorAll("thead th");
  const body = table.tBodies[0];
  const rows = Array.from(body.rows).filter((row) => !row.classList.contains("total"));
  const keys = new Map(rows.map((row) => [row, keyOf(row.cells[column])]));
  const before = headings[column].getAttribute("aria-sort");
  const numeric = rows.some((row) => typeof keys.get(row) === "number");
  const descending = before ? before === "ascending" : numeric;
  rows.sort((a, b) => compare(keys.get(a), keys.get(b)) * (descending ? -1 : 1));
  headings.forEach((heading) => heading.removeAttribute("aria-sort"));
  headings[column].setAttribute("aria-sort", descending ? "descending" : "ascending");
  body.prepend(...rows);
}

/** @param {HTMLTableCellElement | undefined} cell @returns {number | string} */
function keyOf(cell) {
  const value = cell?.dataset.value;
  return value === undefined ? (cell?.textContent ?? "") : Number(value);
}

/**
 * In rising order: texts, which stand where a number is missing, then what is no number, then numbers.
 * @param {number | string | undefined} a
 * @param {number | string | undefined} b
 */
export function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b || Number(Number.isNaN(b)) - Number(Number.isNaN(a));
  if (typeof a === "number") return 1;
  if (typeof b === "number") return -1;
  return (a ?? "").localeCompare(b ?? "", "en");
}
