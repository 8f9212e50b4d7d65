import assert from "node:assert/strict";
import { test } from "node:test";
import { counted, duration, percent, sizeText } from "../../src/torchwhy/web/amounts.js";

test("amounts read as wording.py writes them", () => {
  const times = [12340, 174812000, 20, 0, 999700, 1069800000, 2570, 7.2e12];
  assert.deepEqual(times.map(duration), ["12.3 us", "175 ms", "20.0 ns", "0 us", "1.00 ms", "1.07 s", "2.57 us", "120 min"]);
  assert.deepEqual([115600000, 2048, 7, -1500000].map(sizeText), ["116 MB", "2.05 kB", "7 B", "-1.50 MB"]);
  const shares = [0.3567, 0.0123, 0.00001, 0.9999, 0, 1, 1.3, 25];
  assert.deepEqual(shares.map(percent), ["36%", "1.2%", "<0.1%", ">99%", "0%", "100%", "130%", "2,500%"]);
  assert.deepEqual([counted(1, "step"), counted(1200, "copy", "copies")], ["1 step", "1,200 copies"]);
});
