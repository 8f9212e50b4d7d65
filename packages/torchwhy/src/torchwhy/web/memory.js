// @ts-check
// Curves of memory: a cursor that follows the pointer or the slider below, and what is allocated and reserved there.

import { duration, sizeText } from "./amounts.js";
import { lowerBound } from "./sorted.js";

export function followMemory() {
  for (const figure of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("figure.memory"))) follow(figure);
}

/** @param {HTMLElement} figure */
function follow(figure) {
  const svg = figure.querySelector("svg");
  const slider = figure.querySelector("input");
  const cursor = figure.querySelector(".cursor");
  const output = figure.querySelector("output");
  if (!svg || !slider || !cursor || !output) return;
  const times = numbers(figure.dataset.times);
  const curves = [["allocated", numbers(figure.dataset.allocated)], ["reserved", numbers(figure.dataset.reserved)]];
  const [start, end] = [Number(slider.min), Number(slider.max)];

  /** @param {number} time */
  const show = (time) => {
    const x = String(((time - start) / (end - start)) * svg.viewBox.baseVal.width);
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
    output.textContent = `${duration(time * 1000)}: ${valuesAt(times, curves, time)}`;
    slider.setAttribute("aria-valuetext", output.textContent);
  };
  slider.addEventListener("input", () => show(Number(slider.value)));
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const time = start + (end - start) * Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
    slider.value = String(time);
    show(time);
  });
  show(Number(slider.getAttribute("value")));
}

/** @param {string | undefined} text */
function numbers(text) {
  return text ? text.split(" ").map(Number) : [];
}

/**
 * What the curves are at a moment: their last point until then.
 * @param {number[]} times whole numbers, ascending
 * @param {any[][]} curves name and values of each
 * @param {number} time
 */
export function valuesAt(times, curves, time) {
  const place = Math.max(lowerBound(times, 0, times.length, Math.floor(time) + 1) - 1, 0);
  return curves.filter(([, values]) => values.length).map(([name, values]) => `${sizeText(values[place])} ${name}`).join(", ");
}
