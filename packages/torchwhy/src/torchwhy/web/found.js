// @ts-check
// What a search found, as a list of names: how many events each has, and how long they take together.

import { counted, duration, percent } from "./amounts.js";
import { button, element } from "./dom.js";
import { table } from "./range.js";

const MOST_NAMES_FOUND = 100;

/**
 * The names of the events that stand out, the most time first.
 * @param {import("./timeline.js").Timeline} timeline
 * @param {import("./raster.js").Emphasis} lit
 */
export function namesFound({ names, name, start, end, count }, { before }) {
  const [calls, time] = [new Uint32Array(names.length), new Float64Array(names.length)];
  for (let i = 0; i < count; i++) {
    if (before[i + 1] === before[i]) continue;
    calls[name[i]]++;
    time[name[i]] += end[i] - start[i];
  }
  const found = [...calls.keys()].filter((one) => calls[one]);
  return found.map((one) => ({ name: one, calls: calls[one], time: time[one] })).sort((a, b) => b.time - a.time);
}

/** @param {import("./stage.js").Stage} stage @returns {HTMLElement[]} */
export function describeFound(stage) {
  const { timeline, lit } = stage;
  if (!lit?.count) return [element("p", { class: "note" }, "Nothing is found.")];
  const found = namesFound(timeline, lit);
  const whole = found.reduce((sum, one) => sum + one.time, 0);
  const rows = found.slice(0, MOST_NAMES_FOUND).map(({ name, calls, time }) => {
    const link = button((timeline.shortNames[name] || timeline.names[name]).slice(0, 80), timeline.names[name].slice(0, 500), () =>
      stage.emphasise((event) => timeline.name[event] === name),
    );
    link.className = "link";
    return [link, duration(time), percent(time / (whole || 1)), duration(time / calls), calls.toLocaleString("en")];
  });
  const more = found.length > rows.length ? [element("p", { class: "note" }, `and ${counted(found.length - rows.length, "more name")}`)] : [];
  return [
    element("h3", {}, `${counted(lit.count, "event")} of ${counted(found.length, "name")}, ${duration(whole)} together`),
    table(["found", "time", "", "mean", "events"], rows),
    ...more,
  ];
}
