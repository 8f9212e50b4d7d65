import assert from "node:assert/strict";
import { test } from "node:test";
import { Colours } from "../../src/torchwhy/web/colours.js";
import { Arrangement } from "../../src/torchwhy/web/arrangement.js";
import { HEADING, layoutOf } from "../../src/torchwhy/web/layout.js";
import { emphasis, emphasisOfNames, paintRows } from "../../src/torchwhy/web/raster.js";

/** One row of events [start, end]. */
function oneRow(events, kind = 5) {
  const covered = new Float64Array(events.length + 1);
  events.forEach(([start, end], i) => (covered[i + 1] = covered[i] + end - start));
  return {
    start: Float64Array.from(events, ([start]) => start),
    end: Float64Array.from(events, ([, end]) => end),
    covered,
    kind: new Uint8Array(events.length).fill(kind),
    name: new Uint32Array(events.length),
    rowBegins: Uint32Array.of(0, events.length),
    bands: [{ rows: 1, firstRow: 0, side: "device" }],
    counters: [],
  };
}

const colours = new Colours(false, { names: ["kernel"], category: ["GEMM"] }, "kind");
const background = colours.look.background;

/** The middle line of the row, of a picture 100 pixels wide. */
function line(timeline, seen, lit = null) {
  const height = HEADING + 20;
  const pixels = new Uint32Array(100 * height).fill(background);
  const layout = layoutOf(timeline, new Arrangement(timeline));
  const labels = paintRows(pixels, 100, height, 0, timeline, layout, { y: 0, ...seen }, colours, lit);
  return { row: pixels.subarray((HEADING + 7) * 100, (HEADING + 8) * 100), labels };
}

test("an event is drawn from its start to its end, and nothing beside it", () => {
  const { row } = line(oneRow([[20, 40]]), { t0: 0, t1: 100 });
  const drawn = [...row.keys()].filter((x) => row[x] !== background);
  assert.deepEqual([drawn[0], drawn.at(-1)], [20, 38]); // a pixel at its end sets it apart from the next
});

test("events narrower than a pixel leave a trace however many there are", () => {
  const events = Array.from({ length: 100000 }, (_, i) => [i * 10, i * 10 + 5]);
  const { row } = line(oneRow(events), { t0: 0, t1: 1e6 });
  assert.ok(row.every((pixel) => pixel !== background));
});

test("a wide event behind narrow ones in its first pixel is drawn whole", () => {
  const { row } = line(oneRow([[10.1, 10.2], [10.3, 10.4], [10.5, 60]]), { t0: 0, t1: 100 });
  for (let x = 12; x < 58; x++) assert.notEqual(row[x], background);
});

test("wide events are named", () => {
  const { labels } = line(oneRow([[0, 60], [70, 80]]), { t0: 0, t1: 100 });
  assert.deepEqual(labels.map((label) => label.event), [0]);
});

test("one event that stands out is seen among thousands in its pixel", () => {
  const events = Array.from({ length: 100000 }, (_, i) => [i * 10, i * 10 + 5]);
  const flags = new Uint8Array(events.length);
  flags[50500] = 1;
  const { row } = line(oneRow(events), { t0: 0, t1: 1e6 }, emphasis(flags.length, (i) => flags[i] === 1));
  const shown = [...row.keys()].filter((x) => row[x] === colours.ofPixel(5, 0, 1, false));
  assert.deepEqual(shown, [50]);
});

test("events stand out by name and kind as by a question for each", () => {
  const timeline = { count: 60, name: Uint32Array.from({ length: 60 }, (_, i) => i % 7), kind: Uint8Array.from({ length: 60 }, (_, i) => i % 4) };
  const chosen = Uint8Array.of(1, 0, 0, 1, 1, 0, 0);
  for (const only of [0, 1, 3, 9]) {
    const wanted = emphasis(60, (i) => chosen[timeline.name[i]] === 1 && (!only || timeline.kind[i] === only));
    assert.deepEqual(emphasisOfNames(timeline, chosen, only), wanted);
  }
});
