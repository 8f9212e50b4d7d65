// @ts-check
// Curves of counters on the canvas: their area, the ends of their axis, where they are highest, their values at a moment.

import { amountText, axisOf, pointAt } from "./curves.js";
import { CURVE, HEADING, visible } from "./layout.js";
import { lowerBound } from "./sorted.js";

/** @typedef {import("./curves.js").Counter} Counter */

/**
 * Draw the curves in view, pinned ones or all others.
 * @param {import("./overlay.js").Overlay} overlay
 * @param {boolean} pinned
 */
export function drawCurves(overlay, pinned) {
  const { context, look, layout, timeline, width } = overlay;
  for (const placed of visible(layout, layout.counters, overlay.seen, overlay.height)) {
    if (placed.pinned !== pinned || placed.folded) continue;
    const curve = timeline.counters[placed.counter];
    const bottom = overlay.y(placed) + placed.height;
    const [low, high] = axisOf(curve);
    const heightOf = (/** @type {number} */ value) => bottom - ((value - low) * CURVE) / (high - low || 1);
    const base = heightOf(Math.min(Math.max(0, low), high));
    context.fillStyle = look.shade;
    context.fillRect(0, bottom - CURVE, width, CURVE);
    const columns = columnsOf(overlay, curve, heightOf);
    context.fillStyle = look.curve;
    context.globalAlpha = 0.4;
    for (const { left, right, top, low } of columns) {
      const [from, to] = [Math.min(top, base), Math.max(low, base)];
      context.fillRect(left, from, right - left, to - from);
    }
    context.globalAlpha = 1;
    for (const { left, right, top, low } of columns) context.fillRect(left, top, right - left, low - top + 1);
    if (curve.lowest < curve.highest) drawPeak(overlay, curve, heightOf(curve.highest));
    axisText(overlay, amountText(high, curve.unit), bottom - CURVE + 7);
    axisText(overlay, amountText(low, curve.unit), bottom - 6);
  }
}

/**
 * A curve in columns of whole pixels, as wide as its value holds: a path of as many lines as it has points takes more
 * than all else to draw.
 * @param {{x: (time: number) => number, seen: import("./raster.js").Seen, width: number}} overlay
 * @param {Pick<Counter, "times" | "values">} curve
 * @param {(value: number) => number} heightOf
 * @returns {{left: number, right: number, top: number, low: number}[]} `top` and `low` are where it is highest and lowest
 */
export function columnsOf(overlay, { times, values }, heightOf) {
  const { seen, width } = overlay;
  const xOf = (/** @type {number} */ point) => (point < times.length ? Math.floor(overlay.x(times[point])) : width);
  const found = [];
  let point = Math.max(0, lowerBound(times, 0, times.length, seen.t0) - 1);
  let left = Math.max(0, xOf(point));
  while (left < width && point < times.length) {
    let top = Math.round(heightOf(values[point]));
    let low = top;
    let right = Math.min(width, xOf(point + 1));
    if (right <= left) {
      for (right = left + 1; xOf(point + 1) < right && point + 1 < times.length; ) {
        const y = Math.round(heightOf(values[++point]));
        top = Math.min(top, y);
        low = Math.max(low, y);
      }
    }
    found.push({ left, right, top, low });
    left = right;
  }
  return found;
}

/** A sign where a curve is highest. @param {import("./overlay.js").Overlay} overlay @param {Counter} curve @param {number} y */
function drawPeak(overlay, curve, y) {
  const { context, look, width } = overlay;
  const x = overlay.x(curve.times[curve.values.indexOf(curve.highest)]);
  if (!(x >= 0 && x <= width)) return;
  context.fillStyle = look.path;
  context.fillRect(x - 3, y, 7, 2);
  context.fillRect(x, y, 1, 6);
}

/** An end of the axis, at the right edge. @param {import("./overlay.js").Overlay} overlay @param {string} text @param {number} y */
function axisText({ context, look, width }, text, y) {
  const room = context.measureText(text).width;
  context.fillStyle = look.backdrop;
  context.fillRect(width - room - 8, y - 6, room + 8, 12);
  context.fillStyle = look.dim;
  context.fillText(text, width - room - 4, y);
}

/**
 * The values at a moment: a dot on each curve in view, and a box beside it.
 * @param {import("./overlay.js").Overlay} overlay
 * @param {number} time
 */
export function drawValues(overlay, time) {
  const { context, layout, look, timeline, seen, height } = overlay;
  const x = Math.round(overlay.x(time));
  for (const placed of visible(layout, layout.counters, seen, height)) {
    const curve = timeline.counters[placed.counter];
    const point = pointAt(curve, time);
    if (point < 0) continue;
    const top = overlay.y(placed);
    const [low, high] = axisOf(curve);
    if (!placed.folded) {
      context.beginPath();
      context.arc(x + 0.5, top + placed.height - ((curve.values[point] - low) * CURVE) / (high - low || 1), 3, 0, 7);
      context.fillStyle = look.selected;
      context.fill();
    }
    overlay.drawBox(amountText(curve.values[point], curve.unit), x, top + (placed.folded ? HEADING / 2 : HEADING + 8));
  }
}
