// @ts-check
// What there is to say of the stretch of time that the reader measures, and what can be done with it.

import { counted, duration, percent } from "./amounts.js";
import { copied, download } from "./clipboard.js";
import { amountText, measuredCurve } from "./curves.js";
import { button, element } from "./dom.js";
import { traceOf } from "./excerpt.js";
import { flameOf } from "./flame.js";
import { countWithin, measured } from "./measure.js";
import { modulesOf } from "./module_table.js";
import { hasModules } from "./modules.js";

const MOST = 8;
/** Events of the part in view that are summed up unasked: more would hold up the page. */
const MOST_SUMMED = 300_000;

/** @typedef {import("./stage.js").Stage} Stage */

/** @param {Stage} stage @returns {HTMLElement[]} */
export function describeRange(stage) {
  const range = /** @type {[number, number]} */ (stage.range);
  const { timeline } = stage;
  const found = measured(timeline, range);
  const [from, to] = range.map((time) => duration(time - stage.window[0]));
  const tools = element(
    "p",
    { class: "card-tools" },
    button("zoom", "Zoom to this stretch", () => stage.lookAt(...range)),
    button("window", "Make this stretch what F fits and shares are of", () => {
      stage.window = range;
      stage.say("This stretch is the window now.");
      stage.changed();
    }),
    button("flame graph", "Draw who calls whom in this stretch", () => stage.open(flameOf(stage, range))),
    ...(hasModules(timeline)
      ? [button("modules", "List the modules called in this stretch", () => stage.open(modulesOf(stage, range)))]
      : []),
    button("copy", "Copy these numbers as Markdown", () => copied(stage, markdown(stage, range, found))),
    button("save", "Save this stretch as a small trace", () => {
      download(`stretch-${Math.round(range[0] / 1000)}us.json`, traceOf(timeline, range));
    }),
    button("×", "Measure nothing", () => {
      stage.flame.replaceChildren();
      stage.measure(null);
    }),
  );
  return [
    element("h3", {}, `${duration(found.length)}, from ${from} to ${to} of the window`),
    tools,
    ...tablesOf(stage, range, found),
  ];
}

/** What there is to say of the part in view, where nothing else is chosen. @param {Stage} stage @returns {HTMLElement[]} */
export function describeView(stage) {
  const { timeline, seen } = stage;
  const range = /** @type {[number, number]} */ ([Math.max(seen.t0, timeline.span[0]), Math.min(seen.t1, timeline.span[1])]);
  if (!(range[1] > range[0])) return [hint()];
  const events = countWithin(timeline, range);
  const title = element("h3", {}, `In view: ${duration(range[1] - range[0])}, ${counted(events, "event")}`);
  const why = `Sums of more than ${MOST_SUMMED.toLocaleString("en")} events are made on demand: press R, or zoom in.`;
  if (events > MOST_SUMMED) return [hint(), title, element("p", { class: "note" }, why)];
  return [hint(), title, ...tablesOf(stage, range, measured(timeline, range))];
}

/** What can be done, in a line. */
export function hint() {
  const text = "Drag to measure; click on an event to read about it; Ctrl and the wheel, or W and S, zoom. The key ? lists all keys.";
  return element("p", { class: "note" }, text);
}

/** @param {Stage} stage @param {[number, number]} range @param {import("./measure.js").Measured} found */
function tablesOf(stage, range, found) {
  return [busyTable(stage, found), ...shareTables(stage, found), ...curveTable(stage.timeline, range)];
}

/** @param {Stage} stage @param {import("./measure.js").Measured} found */
function busyTable({ timeline }, { bands, length }) {
  const rows = bands.map(({ band, busy, events }) => [
    timeline.bandLabel(band),
    duration(busy),
    percent(busy / length),
    duration(length - busy),
    events.toLocaleString("en"),
  ]);
  return table(["thread or stream", "busy", "", "idle", "events"], rows);
}

/** @param {Stage} stage @param {import("./measure.js").Measured} found */
function shareTables(stage, found) {
  const { timeline } = stage;
  return sidesOf(found).map(([title, shares]) => {
    const rows = shares.slice(0, MOST).map(({ name, time, calls }) => {
      const text = timeline.shortNames[name] || timeline.names[name];
      const link = button(text.slice(0, 80), timeline.names[name].slice(0, 500), () =>
        stage.emphasise((event) => timeline.name[event] === name),
      );
      link.className = "link";
      return [link, duration(time), percent(time / found.length), calls.toLocaleString("en")];
    });
    const rest = shares.length > MOST ? [`and ${counted(shares.length - MOST, "more name")}`, "", "", ""] : null;
    return table([title, "time", "", "calls"], rest ? [...rows, rest] : rows);
  });
}

/** What the curves are within a stretch. @param {Stage["timeline"]} timeline @param {[number, number]} range */
function curveTable(timeline, range) {
  const rows = curvesWithin(timeline, range);
  return rows.length ? [table(["counter", "least", "mean", "most"], rows)] : [];
}

/** @param {Stage["timeline"]} timeline @param {[number, number]} range */
function curvesWithin({ counters }, range) {
  return counters.flatMap((curve) => {
    const found = measuredCurve(curve, range);
    if (!found) return [];
    return [[curve.label, ...[found.least, found.mean, found.most].map((value) => amountText(value, curve.unit))]];
  });
}

/** @param {import("./measure.js").Measured} found @returns {[string, import("./measure.js").Share[]][]} */
function sidesOf(found) {
  const sides = /** @type {[string, import("./measure.js").Share[]][]} */ ([
    ["work on devices", found.device],
    ["calls on the host, their own time", found.host],
    ["Python frames, their own time", found.frames],
  ]);
  return sides.filter(([, shares]) => shares.length);
}

/**
 * @param {string[]} headings
 * @param {(string | HTMLElement)[][]} rows
 */
export function table(headings, rows) {
  const look = (/** @type {number} */ i) => /** @type {Record<string, string>} */ (i ? { class: "number" } : {});
  const head = headings.map((text, i) => element(text ? "th" : "td", look(i), text));
  const body = rows.map((cells) => element("tr", {}, ...cells.map((cell, i) => element("td", look(i), cell))));
  return element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body));
}

/**
 * The numbers as text for an issue or a chat.
 * @param {Stage} stage
 * @param {[number, number]} range
 * @param {import("./measure.js").Measured} found
 */
function markdown({ timeline }, range, found) {
  const lines = [`**${duration(found.length)}**, from ${duration(range[0])} to ${duration(range[1])} of the trace`, ""];
  lines.push("| thread or stream | busy | share | events |", "|---|---|---|---|");
  for (const { band, busy, events } of found.bands) {
    lines.push(`| ${cell(timeline.bandLabel(band))} | ${duration(busy)} | ${percent(busy / found.length)} | ${events} |`);
  }
  for (const [title, shares] of sidesOf(found)) {
    lines.push("", `| ${title} | time | share | calls |`, "|---|---|---|---|");
    for (const { name, time, calls } of shares.slice(0, MOST)) {
      const text = timeline.shortNames[name] || timeline.names[name];
      lines.push(`| \`${cell(text.slice(0, 120))}\` | ${duration(time)} | ${percent(time / found.length)} | ${calls} |`);
    }
  }
  const curves = curvesWithin(timeline, range);
  if (curves.length) lines.push("", "| counter | least | mean | most |", "|---|---|---|---|");
  for (const cells of curves) lines.push(`| ${cells.map(cell).join(" | ")} |`);
  return lines.join("\n");
}

/** A text that does not end its cell. @param {string} text */
function cell(text) {
  return text.replace(/[|`\n\r]/g, " ");
}
