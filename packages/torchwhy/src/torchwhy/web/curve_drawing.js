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
    traceCurve(overlay, curve, heightOf, base);
    context.fillStyle = look.curve;
    context.globalAlpha = 0.4;
    context.fill();
    context.globalAlpha = 1;
    context.strokeStyle = look.curve;
    context.lineWidth = 1;
    context.stroke();
    if (curve.lowest < curve.highest) drawPeak(overlay, curve, heightOf(curve.highest));
    axisText(overlay, amountText(high, curve.unit), bottom - CURVE + 7);
    axisText(overlay, amountText(low, curve.unit), bottom - 6);
  }
}

/**
 * @param {import("./overlay.js").Overlay} overlay
 * @param {Counter} curve
 * @param {(value: number) => number} heightOf
 * @param {number} base
 */
function traceCurve(overlay, curve, heightOf, base) {
  const { context, seen, width } = overlay;
  const { times, values } = curve;
  let i = Math.max(0, lowerBound(times, 0, times.length, seen.t0) - 1);
  let right = Math.max(-1, overlay.x(times[i]));
  context.beginPath();
  context.moveTo(right, base);
  for (; i < times.length && times[i] < seen.t1; i++) {
    const y = heightOf(values[i]);
    context.lineTo(Math.max(right, overlay.x(times[i])), y);
    right = i + 1 < times.length ? Math.min(width + 1, overlay.x(times[i + 1])) : width + 1;
    context.lineTo(right, y);
  }
  context.lineTo(right, base);
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
