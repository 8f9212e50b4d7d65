import assert from "node:assert/strict";
import { test } from "node:test";
import { eventOf, idOf } from "../../src/torchwhy/web/address.js";
import { traceOf } from "../../src/torchwhy/web/excerpt.js";
import { aroundName, bottomUp, callTree, textOf } from "../../src/torchwhy/web/calls.js";
import { boxesOf } from "../../src/torchwhy/web/flame.js";
import { measured } from "../../src/torchwhy/web/measure.js";
import { moduleTree } from "../../src/torchwhy/web/modules.js";
import { emphasis } from "../../src/torchwhy/web/raster.js";
import { Timeline } from "../../src/torchwhy/web/timeline.js";
import { nextLit, placeOf } from "../../src/torchwhy/web/walk.js";

/** A timeline of bands, each with rows of events [start, end, name, kind]; links are [work, launch]. */
function made(bands, links = []) {
  const rows = bands.flatMap(([, ...rows]) => rows);
  const events = rows.flat();
  const names = [...new Set(events.map(([, , name]) => name))];
  const begins = [0];
  for (const row of rows) begins.push(begins.at(-1) + row.length);
  const covered = [0];
  for (const [start, end] of events) covered.push(covered.at(-1) + end - start);
  let firstRow = 0;
  const timeline = Object.create(Timeline.prototype);
  return Object.assign(timeline, {
    count: events.length,
    start: Float64Array.from(events, ([start]) => start),
    end: Float64Array.from(events, ([, end]) => end),
    kind: Uint8Array.from(events, ([, , , kind]) => kind ?? 1),
    name: Uint32Array.from(events, ([, , name]) => names.indexOf(name)),
    names,
    shortNames: names.map(() => ""),
    covered: Float64Array.from(covered),
    rowBegins: Uint32Array.from(begins),
    work: Uint32Array.from(links, ([work]) => work),
    launch: Uint32Array.from(links, ([, launch]) => launch),
    forward: new Uint32Array(),
    backward: new Uint32Array(),
    steps: [],
    bands: bands.map(([side, ...own], i) => {
      const band = { label: side === "device" ? `GPU 0 stream ${i}` : `thread ${i}`, side, rows: own.length, source: "", firstRow };
      firstRow += own.length;
      return band;
    }),
  });
}

const program = () =>
  made(
    [
      ["frames", [[0, 100, "train.py(3): step", 4]], [[0, 10, "a", 4], [60, 95, "b", 4]]],
      ["host", [[5, 40, "mm"], [60, 90, "add"]], [[10, 20, "launch", 3], [62, 64, "launch", 3]]],
      ["device", [[20, 50, "gemm", 5], [70, 80, "vector", 5]], [[40, 60, "gemm", 5]]],
    ],
    [[7, 5], [9, 5], [8, 6]],
  );

test("a stretch is busy where any row is, and calls have their own time", () => {
  const found = measured(program(), [15, 75]);
  assert.equal(found.length, 60);
  assert.deepEqual(found.bands.map(({ busy }) => busy), [60, 40, 45]);
  const times = (shares, timeline = program()) => Object.fromEntries(shares.map((one) => [timeline.names[one.name], one.time]));
  assert.deepEqual(times(found.device), { gemm: 30 + 20, vector: 5 });
  assert.deepEqual(times(found.host), { mm: 25 - 5, add: 15 - 2, launch: 5 + 2 });
});

test("what a stretch holds adds up to how long its rows are busy", () => {
  const random = lcg(7);
  for (let round = 0; round < 50; round++) {
    const row = (count) => {
      let time = 0;
      return Array.from({ length: count }, () => {
        time += random() * 10;
        const start = time;
        time += random() * 10;
        return [start, time, `n${Math.floor(random() * 5)}`, 5];
      });
    };
    const rows = [row(20), row(30), row(5)];
    const timeline = made([["device", ...rows]]);
    const range = [random() * 50, 60 + random() * 100];
    const inside = (time) => rows.some((events) => events.some(([start, end]) => start <= time && time < end));
    let busy = 0;
    const steps = 40000;
    for (let i = 0; i < steps; i++) busy += inside(range[0] + ((i + 0.5) / steps) * (range[1] - range[0])) ? 1 : 0;
    const found = measured(timeline, range);
    assert.ok(Math.abs(found.bands[0].busy / found.length - busy / steps) < 0.002);
    const sum = rows.flat().reduce((all, [start, end]) => all + Math.max(0, Math.min(end, range[1]) - Math.max(start, range[0])), 0);
    assert.ok(Math.abs(found.device.reduce((all, one) => all + one.time, 0) - sum) < 1e-6);
  }
});

test("a call tree has each nanosecond of the host once", () => {
  const timeline = program();
  const root = callTree(timeline, 1, [0, 100], false);
  assert.equal(root.time, 100);
  const own = bottomUp(root).map((one) => [timeline.names[one.name], one.own]);
  assert.equal(own.reduce((all, [, time]) => all + time, 0), 100);
  assert.equal(Object.fromEntries(own).launch, 12);
  const top = boxesOf(root).filter((box) => box.depth === 0);
  assert.deepEqual(top.map((box) => [timeline.names[box.path.name], box.width]), [["train.py(3): step", 1]]);
});

test("a tree of device work has the time of what each call launched", () => {
  const timeline = program();
  const root = callTree(timeline, 1, [0, 100], true);
  assert.equal(root.time, 30 + 20 + 10);
  const own = Object.fromEntries(bottomUp(root).map((one) => [timeline.names[one.name], one.own]));
  assert.deepEqual([own.gemm, own.vector, own.mm], [50, 10, 0]);
});

test("steps are one call path", () => {
  const timeline = made([["host", [[0, 40, "step 1", 2], [50, 80, "step 2", 2]], [[5, 15, "mm"], [60, 65, "mm"]]]]);
  timeline.steps = [{ name: "step 1" }, { name: "step 2" }];
  const [steps, ...others] = callTree(timeline, 0, [0, 100], false).children.values();
  assert.deepEqual([steps.time, steps.calls, others.length, textOf(timeline, steps)], [70, 2, 0, "2 steps"]);
  assert.deepEqual([...steps.children.values()].map(({ time, calls }) => [time, calls]), [[15, 2]]);
  const [one] = callTree(timeline, 0, [0, 45], false).children.values();
  assert.equal(textOf(timeline, one), "step 1");
});

test("around a name are its callers, each with its calls' time, and its callees", () => {
  const timeline = made([
    ["host", [[0, 50, "f"], [60, 100, "g"]], [[5, 25, "h"], [30, 40, "h"], [70, 90, "h"]], [[6, 16, "k"], [71, 81, "h"]], [[7, 9, "h"], [72, 74, "k"]]],
  ]);
  const root = callTree(timeline, 0, [0, 100], false);
  const told = (tree, name = (one) => timeline.names[one.name]) =>
    Object.fromEntries([...tree.children.values()].map((one) => [name(one), [one.time, one.calls, told(one)]]));
  const { callers, callees } = aroundName(root, timeline.names.indexOf("h"));
  // Of a call inside another of its name only the outer one counts.
  assert.deepEqual(told(callers), { h: [50, 3, { f: [30, 2, {}], g: [20, 1, {}] }] });
  assert.deepEqual(told(callees), { h: [50, 3, { k: [10, 1, { h: [2, 1, {}] }], h: [10, 1, { k: [2, 1, {}] }] }] });
  assert.deepEqual([callers.time, callees.time], [50, 50]);
  const every = aroundName(root, timeline.names.indexOf("k")).callers;
  assert.deepEqual(told(every), { k: [12, 2, { h: [12, 2, { f: [10, 1, {}], h: [2, 1, { g: [2, 1, {}] }] }] }] });
});

/** What of a tree is told of each path. */
function paths(module, above = "") {
  return [...module.children.values()].flatMap((one) => {
    const path = `${above}/${one.name}`;
    const { host, hostOwn, device, deviceOwn, backward, backwardOwn, calls } = one;
    return [[path, { host, hostOwn, device, deviceOwn, backward, backwardOwn, calls }], ...paths(one, path)];
  });
}

test("modules have their time, that of the modules they call, and that of the work launched in them", () => {
  const timeline = made(
    [
      ["frames", [[0, 100, "train.py(3): step", 4]], [[0, 50, "nn.Module: Net", 4], [60, 90, "nn.Module: Net", 4]],
       [[5, 20, "nn.Module: Linear_0", 4], [25, 45, "nn.Module: Linear_1", 4], [65, 75, "nn.Module: Linear_0", 4]]],
      ["host", [[6, 8, "launch", 3], [22, 24, "launch", 3], [66, 67, "launch", 3], [95, 96, "launch", 3]]],
      ["device", [[10, 40, "a", 5], [40, 47, "b", 5], [70, 75, "a", 5], [97, 99, "c", 5]]],
    ],
    [[10, 6], [11, 7], [12, 8], [13, 9]],
  );
  const root = moduleTree(timeline, [0, 100]);
  assert.deepEqual(Object.fromEntries(paths(root)), {
    "/Net": { host: 80, hostOwn: 35, device: 42, deviceOwn: 7, backward: 0, backwardOwn: 0, calls: 2 },
    "/Net/Linear_0": { host: 25, hostOwn: 25, device: 35, deviceOwn: 35, backward: 0, backwardOwn: 0, calls: 2 },
    "/Net/Linear_1": { host: 20, hostOwn: 20, device: 0, deviceOwn: 0, backward: 0, backwardOwn: 0, calls: 1 },
  });
  assert.deepEqual([root.device, root.deviceOwn], [44, 2]); // what no module launched is the root's own
  const half = Object.fromEntries(paths(moduleTree(timeline, [0, 55])));
  assert.deepEqual([half["/Net"].host, half["/Net"].device, half["/Net"].calls], [50, 37, 1]);
});

test("the backward pass of a module's operators counts for the module", () => {
  const timeline = made(
    [
      ["frames", [[0, 40, "nn.Module: Net", 4]], [[5, 20, "nn.Module: Linear", 4]]],
      ["host", [[6, 18, "linear"], [25, 30, "add"], [42, 44, "loss"]], [[8, 9, "launch", 3], [26, 27, "launch", 3], [43, 44, "launch", 3]]],
      ["host", [[50, 60, "LinearBackward"], [61, 70, "AddBackward"], [71, 80, "LossBackward"]], [[51, 52, "launch", 3], [53, 54, "launch", 3], [62, 63, "launch", 3], [72, 73, "launch", 3]]],
      ["device", [[100, 107, "gemm", 5], [110, 112, "add", 5], [120, 121, "loss", 5], [130, 141, "dgrad", 5], [150, 163, "wgrad", 5], [170, 173, "add", 5], [180, 190, "loss", 5]]],
    ],
    [[15, 5], [16, 6], [17, 7], [18, 11], [19, 12], [20, 13], [21, 14]],
  );
  timeline.backward = Uint32Array.of(8, 9, 10);
  timeline.forward = Uint32Array.of(2, 3, 4);
  const root = moduleTree(timeline, [0, 200]);
  assert.deepEqual(Object.fromEntries(paths(root)), {
    "/Net": { host: 40, hostOwn: 25, device: 9, deviceOwn: 2, backward: 27, backwardOwn: 3, calls: 1 },
    "/Net/Linear": { host: 15, hostOwn: 15, device: 7, deviceOwn: 7, backward: 24, backwardOwn: 24, calls: 1 },
  });
  // The loss belongs to no module, nor does its backward pass.
  assert.deepEqual([root.device, root.deviceOwn, root.backward], [9 + 1 + 10, 11, 27]);
  assert.equal(root.device + root.backward, 7 + 2 + 1 + 11 + 13 + 3 + 10); // all work, and nothing twice
});

test("without frames annotations stand for modules, and steps are none", () => {
  const timeline = made([["host", [[0, 100, "ProfilerStep#1", 2]], [[10, 40, "forward", 2]], [[12, 20, "block", 2], [22, 25, "mm", 1]]]]);
  timeline.steps = [{ name: "ProfilerStep#1", start: 0, end: 100 }];
  assert.deepEqual(paths(moduleTree(timeline, [0, 100])).map(([path, { host, hostOwn }]) => [path, host, hostOwn]), [
    ["/forward", 30, 22],
    ["/forward/block", 8, 8],
  ]);
});

test("an event has an id that other rows and rounded times don't change", () => {
  const timeline = program();
  for (let i = 0; i < timeline.count; i++) assert.equal(eventOf(timeline, idOf(timeline, i)), i);
  assert.equal(eventOf(timeline, idOf(timeline, 9).replace("@40", "@41")), 9);
  assert.equal(eventOf(timeline, "nothing@3"), -1);
});

test("a saved stretch has its events, their times and their links", () => {
  const { traceEvents } = JSON.parse(traceOf(program(), [35, 65]));
  const drawn = traceEvents.filter((one) => one.ph === "X");
  assert.deepEqual(
    drawn.map((one) => one.name),
    ["train.py(3): step", "b", "mm", "add", "launch", "gemm", "gemm"],
  );
  const [first, second] = drawn.filter((one) => one.cat === "kernel");
  assert.deepEqual([first.args.device, first.args.stream], [0, 2]);
  assert.notEqual(first.args.correlation, undefined);
  assert.equal(drawn[0].tid, drawn[2].tid); // frames and calls of a thread
  assert.equal(second.ts, 0.04);
});

test("the next one that stands out is the next in time, round and round", () => {
  const random = lcg(3);
  const some = () => {
    // Starts and ends that often coincide, over rows, too.
    const row = () => {
      let time = 0;
      return Array.from({ length: Math.floor(random() * 9) }, () => {
        const start = time + Math.floor(random() * 3);
        time = start + Math.floor(random() * 3);
        return [start, time, "x", 5];
      });
    };
    return made([["device", row(), row(), row()]]);
  };
  for (let round = 0; round < 100; round++) {
    const timeline = round ? some() : program();
    const flags = Array.from({ length: timeline.count }, () => !round || random() < 0.5);
    const lit = emphasis(timeline.count, (i) => flags[i]);
    const seen = { t0: Math.floor(random() * 12), t1: 100 };
    const stage = { timeline, lit, selected: -1, seen };
    const order = [...timeline.start.keys()].sort((a, b) => timeline.start[a] - timeline.start[b] || a - b);
    const wanted = order.filter((i) => flags[i]);
    const from = wanted.filter((i) => timeline.start[i] >= seen.t0);
    const left = wanted.filter((i) => timeline.start[i] < seen.t0);
    assert.equal(nextLit(stage, 1), from[0] ?? wanted[0] ?? -1);
    assert.equal(nextLit(stage, -1), left.at(-1) ?? wanted.at(-1) ?? -1);
    for (let event = 0; event < timeline.count; event++) {
      stage.selected = event;
      const place = order.indexOf(event);
      const after = wanted.filter((i) => order.indexOf(i) > place);
      const before = wanted.filter((i) => order.indexOf(i) < place);
      assert.equal(nextLit(stage, 1), after[0] ?? wanted[0] ?? -1);
      assert.equal(nextLit(stage, -1), before.at(-1) ?? wanted.at(-1) ?? -1);
      assert.equal(placeOf(stage, event), before.length + 1);
    }
  }
});

function lcg(seed) {
  let state = seed;
  return () => (state = (state * 1103515245 + 12345) % 2147483648) / 2147483648;
}
