import assert from "node:assert/strict";
import { test } from "node:test";
import { ticks } from "../../src/torchwhy/web/ruler.js";
import { targetOf } from "../../src/torchwhy/web/show.js";
import { gallop, lowerBound } from "../../src/torchwhy/web/sorted.js";
import { compare } from "../../src/torchwhy/web/sorting.js";
import { matcher } from "../../src/torchwhy/web/search.js";
import { extent, unionLength } from "../../src/torchwhy/web/stretches.js";
import { savedTogether } from "../../src/torchwhy/web/whatif.js";

const stretches = (...pairs) => ({
  start: Float64Array.from(pairs, ([start]) => start),
  end: Float64Array.from(pairs, ([, end]) => end),
});

test("what overlaps counts once, and what is outside the window not at all", () => {
  const sets = [stretches([0, 10], [20, 30]), stretches([5, 22], [90, 120])];
  assert.equal(unionLength(sets, [0, 100]), 40);
  assert.equal(unionLength(sets, [8, 21]), 13);
  assert.equal(unionLength([], [0, 100]), 0);
});

test("an extent reaches from the first start to the last end", () => {
  const timeline = { start: [7, 50], end: [9, 60] };
  assert.deepEqual(extent(timeline, stretches([10, 20]), [0, 1]), [7, 60]);
  assert.equal(extent(timeline, null, []), null);
});

test("both searches find the first value that is not below", () => {
  const values = Array.from({ length: 200 }, (_, i) => Math.floor(i / 3) * 2);
  for (let wanted = -1; wanted < 140; wanted++) {
    const place = values.findIndex((value) => value >= wanted);
    const expected = place < 0 ? values.length : place;
    assert.equal(lowerBound(values, 0, values.length, wanted), expected);
    if (expected > 0) assert.equal(gallop(values, 0, values.length, wanted), expected);
  }
});

test("times on the ruler are round, and as exact as their distance asks for", () => {
  assert.deepEqual(ticks(0, 4.1e6, 4).map((tick) => tick.text), ["0 ms", "2 ms", "4 ms"]);
  assert.deepEqual(ticks(813204000, 813204450, 4).map((tick) => tick.text).slice(0, 2), ["813.2040 ms", "813.2042 ms"]);
});

test("numbers are sorted as numbers, and what is none stands at their low end", () => {
  assert.deepEqual([10, "b", 9, "a", NaN].sort(compare), ["a", "b", NaN, 9, 10]);
});

const timeline = {
  count: 3,
  name: [0, 1, 0],
  names: ["aten::mm", "void gemm<a::b>()"],
  shortNames: ["", "gemm"],
  longestName: 2000,
  window: [0, 100],
  steps: [{ name: "step 1", start: 0, end: 50, deviceEnd: 60 }],
  findings: [{ title: "slow", stretches: stretches([1, 2]), evidence: [Uint32Array.of(0), Uint32Array.of(0, 2)] }],
  parts: new Map([["copies", stretches([3, 4], [5, 6])]]),
  rowBegins: [0, 1, 3],
  bands: [
    { source: "rank 0", side: "device", firstRow: 0, rows: 1 },
    { source: "rank 1", side: "device", firstRow: 1, rows: 1 },
  ],
};

test("a target is what its words name", () => {
  assert.deepEqual([...targetOf(timeline, "finding:0").events], [0, 2]);
  assert.deepEqual([...targetOf(timeline, "evidence:0:1").events], [0, 2]);
  assert.equal(targetOf(timeline, "part:copies").says, "2 stretches");
  assert.deepEqual([...targetOf(timeline, "step:0").stretches.end], [60]);
  assert.deepEqual([...targetOf(timeline, "stretch:10:5").stretches.end], [15]);
  assert.deepEqual(targetOf(timeline, "name:void gemm<a::b>()").events, [1]);
  assert.deepEqual(targetOf(timeline, "name:gemm").events, [1]);
  assert.equal(targetOf(timeline, "rank:1").band, 1);
  assert.deepEqual(targetOf(timeline, "rank:1").events, [1, 2]);
});

test("what a timeline doesn't have is no target", () => {
  for (const what of ["finding:7", "evidence:0:9", "part:__proto__", "step:-1", "name:x", "rank:5", "", "odd:1"]) {
    assert.equal(targetOf(timeline, what), null, what);
  }
});

test("what several findings save is no more than their sum, nor than the time they point at", () => {
  const finding = (stake, ...pairs) => ({ title: "", stake, evidence: [], stretches: stretches(...pairs) });
  const window = [0, 100];
  assert.equal(savedTogether([], window), 0);
  assert.equal(savedTogether([finding(7, [0, 40])], window), 7);
  assert.equal(savedTogether([finding(7, [0, 40]), finding(8, [20, 60])], window), 15);
  assert.equal(savedTogether([finding(30, [0, 40]), finding(35, [5, 40])], window), 40);
  assert.equal(savedTogether([finding(50, [0, 40]), finding(10, [0, 40])], window), 50);
});

test("a search means a part of a name, or an expression between slashes", () => {
  assert.ok(matcher("MM")("aten::mm"));
  assert.ok(matcher("/^aten::(mm|bmm)$/")("aten::bmm"));
  assert.ok(!matcher("/^mm/")("aten::mm"));
  assert.equal(matcher("/(/"), null);
});
