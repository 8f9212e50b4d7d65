import assert from "node:assert/strict";
import { test } from "node:test";
import { columnsOf } from "../../src/torchwhy/web/curve_drawing.js";
import { amountText, axisOf, curveOf, glanceAtCurve, headingOfCurve, measuredCurve, pointAt } from "../../src/torchwhy/web/curves.js";

const curve = (times, values, unit = "", means = values) => ({
  label: "queue",
  unit,
  ...curveOf(Float64Array.from(times), Float64Array.from(values), Float64Array.from(means)),
});

test("a value holds until the next point", () => {
  const one = curve([10, 20, 20, 30], [1, 5, 2, 4]);
  assert.deepEqual([9, 10, 19, 20, 29, 1000].map((time) => pointAt(one, time)), [-1, 0, 0, 2, 2, 3]);
});

test("least, mean and most within a stretch are those of the values over time", () => {
  let seed = 1;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  for (let round = 0; round < 200; round++) {
    const count = 1 + Math.floor(random() * 12);
    const times = Array.from({ length: count }, () => Math.floor(random() * 40)).sort((a, b) => a - b);
    const one = curve(times, times.map(() => Math.floor(random() * 20) - 10));
    const t0 = Math.floor(random() * 45) - 2;
    const t1 = t0 + Math.floor(random() * 20);
    const seen = [];
    for (let time = t0; time < t1; time++) if (pointAt(one, time) >= 0) seen.push(one.values[pointAt(one, time)]);
    const found = measuredCurve(one, [t0, t1]);
    if (!seen.length) {
      assert.ok(found === null || t1 <= t0 || t1 === times[0]);
      continue;
    }
    const mean = seen.reduce((sum, value) => sum + value, 0) / seen.length;
    assert.ok(Math.abs(found.mean - mean) < 1e-9, `${times} ${one.values} ${t0} ${t1}: ${found.mean}, not ${mean}`);
    // Points of one moment count with the least and the most, although they hold for no time.
    assert.ok(found.least <= Math.min(...seen) && found.most >= Math.max(...seen));
    assert.ok([found.least, found.most].every((value) => one.values.includes(value)));
  }
});

test("means of points that were left out count with their time", () => {
  assert.equal(measuredCurve(curve([0, 100], [0, 0], "", [7, 0]), [0, 100]).mean, 7);
});

test("an axis begins at 0 unless the values lie far from it", () => {
  assert.deepEqual(axisOf(curve([0, 1], [1, 5])), [0, 5]);
  assert.deepEqual(axisOf(curve([0, 1], [90, 100])), [90, 100]);
  assert.deepEqual(axisOf(curve([0, 1], [-3, 2])), [-3, 2]);
  assert.deepEqual(axisOf(curve([0, 1], [-100, -90])), [-100, -90]);
  assert.deepEqual(axisOf(curve([0, 1], [7, 7])), [0, 7]);
  assert.deepEqual(axisOf(curve([], [])), [0, 0]);
});

test("amounts have their unit", () => {
  assert.equal(amountText(2.09e9, "B"), "2.09 GB");
  assert.equal(amountText(45.25, "%"), "45.25%");
  assert.equal(amountText(281.4, "W"), "281.4 W");
  assert.equal(amountText(1234567, ""), "1,234,567");
  assert.equal(headingOfCurve(curve([0, 1], [0, 3e6], "B")), "queue (bytes): 0 B to 3.00 MB");
  assert.equal(headingOfCurve(curve([0, 1], [4, 4])), "queue: always 4");
  assert.equal(headingOfCurve(curve([0, 1], [2, 4.5], "W")), "queue (W): 2 W to 4.5 W");
  const lines = glanceAtCurve(curve([0, 1000, 3000], [2, 8, 16]), 2000).split("\n");
  assert.deepEqual(lines, ["queue: 8", "+6 1.00 us before", "for 2.00 us", "50% of the highest, 16"]);
  assert.equal(glanceAtCurve(curve([5], [1]), 4), "queue: not known yet");
});

test("columns of a curve hold all its values, side by side", () => {
  let seed = 3;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  for (let round = 0; round < 200; round++) {
    const count = 1 + Math.floor(random() * 40);
    const times = Float64Array.from({ length: count }, () => Math.floor(random() * 400) - 100).sort();
    const one = { times, values: Float64Array.from(times, () => Math.floor(random() * 30)) };
    const overlay = { width: 50, seen: { t0: 0, t1: 200, y: 0 }, x: (time) => time / 4 };
    const columns = columnsOf(overlay, one, (value) => value);
    if (!columns.length) {
      assert.ok(times[0] >= 200);
      continue;
    }
    columns.forEach(({ left, right }, i) => assert.ok(left < right && left === (i ? columns[i - 1].right : Math.max(0, Math.floor(times[0] / 4)))));
    assert.equal(columns.at(-1).right, 50);
    for (const [i, time] of times.entries()) {
      const column = columns.find(({ left, right }) => Math.floor(time / 4) >= left && Math.floor(time / 4) < right);
      if (time >= 0 && time < 200) assert.ok(column.top <= one.values[i] && one.values[i] <= column.low);
    }
    columns.slice(1).forEach(({ top, low }, i) => assert.ok(top <= columns[i].low && low >= columns[i].top, "no gap"));
  }
});
