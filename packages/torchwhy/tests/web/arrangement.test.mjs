import assert from "node:assert/strict";
import { test } from "node:test";
import { Arrangement } from "../../src/torchwhy/web/arrangement.js";
import { GAP, HEADING, RULER, layoutOf, placeInView, rowInView, visible } from "../../src/torchwhy/web/layout.js";
import { emphasis } from "../../src/torchwhy/web/raster.js";
import { Timeline } from "../../src/torchwhy/web/timeline.js";

/** Bands of so many rows each, with one event in each row. */
function timelineOf(...rows) {
  let firstRow = 0;
  const bands = rows.map((count, i) => {
    const band = { label: `band ${i}`, side: i % 2 ? "device" : "host", rows: count, source: "", firstRow, events: count };
    firstRow += count;
    return band;
  });
  const rowBegins = Uint32Array.from({ length: firstRow + 1 }, (_, i) => i);
  return Object.assign(Object.create(Timeline.prototype), { bands, counters: [], rowBegins, count: firstRow });
}

function random(seed) {
  let state = seed;
  return (below) => Math.floor(((state = (state * 1103515245 + 12345) % 2147483648) / 2147483648) * below);
}

/** An arrangement after some random changes. */
function shuffled(timeline, next) {
  const arrangement = new Arrangement(timeline);
  const bands = timeline.bands.length;
  for (let i = 0; i < 12; i++) {
    const set = [arrangement.folded, arrangement.hidden, arrangement.pinned][next(3)];
    if (next(2)) arrangement.move(next(bands), next(2) ? 1 : -1);
    else set.add(next(bands));
  }
  arrangement.row = [15, 20, 30][next(3)];
  return arrangement;
}

test("however bands are arranged, each that is shown stands once, and no two at one place", () => {
  for (let seed = 1; seed < 200; seed++) {
    const next = random(seed);
    const timeline = timelineOf(...Array.from({ length: 1 + next(9) }, () => 1 + next(5)));
    const arrangement = shuffled(timeline, next);
    const layout = layoutOf(timeline, arrangement);
    const all = timeline.bands.map((_, i) => i);
    assert.deepEqual([...arrangement.places()].sort((a, b) => a - b), all);
    assert.deepEqual(layout.bands.map(({ band }) => band).sort((a, b) => a - b), all.filter((i) => !arrangement.hidden.has(i)));
    for (const pinned of [true, false]) {
      let top = 0;
      for (const placed of layout.bands.filter((one) => one.pinned === pinned)) {
        assert.equal(placed.top, top);
        assert.equal(placed.height, HEADING + (placed.folded ? 0 : timeline.bands[placed.band].rows * arrangement.row));
        top += placed.height + GAP;
      }
      assert.equal(top, pinned ? layout.pane : layout.height);
    }
  }
});

test("an arrangement is the same after the way through the address", () => {
  for (let seed = 1; seed < 200; seed++) {
    const next = random(seed);
    const timeline = timelineOf(...Array.from({ length: 1 + next(9) }, () => 1));
    const arrangement = shuffled(timeline, next);
    arrangement.onlyLit = next(2) === 1;
    const address = new URLSearchParams(arrangement.parts().join("&"));
    const again = new Arrangement(timeline);
    again.read((key) => (address.get(key) ?? "").split(",").filter(Boolean).map(Number));
    const told = ({ folded, hidden, pinned, row, onlyLit }) => [[...folded].sort(), [...hidden].sort(), [...pinned].sort(), row, onlyLit];
    assert.deepEqual(told(again), told(arrangement));
    assert.deepEqual(again.order, arrangement.order);
  }
});

test("nonsense in the address changes nothing", () => {
  const timeline = timelineOf(1, 2, 3);
  const arrangement = new Arrangement(timeline);
  arrangement.read((key) => ({ fold: [7, NaN, -1], hide: [1e9], pin: [0.5], order: [2, 2, 9], row: [1e6], only: [3] })[key]);
  assert.deepEqual(arrangement.order, [2, 0, 1]);
  assert.deepEqual(arrangement.parts(), ["order=2,0,1"]);
});

test("pinned rows stay where they are while the others scroll", () => {
  const timeline = timelineOf(2, 3, 4);
  const arrangement = new Arrangement(timeline);
  arrangement.pinned.add(2);
  const layout = layoutOf(timeline, arrangement);
  const at = (y) => [0, 2, 5].map((row) => rowInView(timeline, layout, row, { t0: 0, t1: 1, y }));
  assert.deepEqual(at(0), [RULER + layout.pane + HEADING, RULER + layout.pane + HEADING + layout.bands[1].height + GAP, RULER + HEADING]);
  assert.deepEqual(at(40), [at(0)[0] - 40, at(0)[1] - 40, at(0)[2]]);
  const seen = { t0: 0, t1: 1, y: layout.bands[1].height + GAP };
  assert.deepEqual(visible(layout, layout.bands, seen, 500).map(({ band }) => band), [2, 1]); // the first is scrolled out
  assert.equal(placeInView(layout, layout.bands[1], { t0: 0, t1: 1, y: 0 }), RULER + layout.pane);
});

test("bands where nothing stands out are hidden on demand, and all are there again without a search", () => {
  const timeline = timelineOf(1, 2, 3);
  const arrangement = new Arrangement(timeline);
  arrangement.onlyLit = true;
  const lit = emphasis(timeline.count, (event) => event === 2);
  assert.deepEqual(layoutOf(timeline, arrangement, lit).bands.map(({ band }) => band), [1]);
  assert.equal(layoutOf(timeline, arrangement, null).bands.length, 3);
  assert.equal(layoutOf(timeline, arrangement, emphasis(timeline.count, () => false)).bands.length, 3);
});
