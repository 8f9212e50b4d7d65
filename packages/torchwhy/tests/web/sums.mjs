// Reads a block and prints sums of its columns: node sums.mjs FILE
import { readFileSync } from "node:fs";
import { readBlock } from "../../src/torchwhy/web/block.js";
import { Timeline } from "../../src/torchwhy/web/timeline.js";

const block = await readBlock(readFileSync(process.argv[2]).toString("base64"));
const timeline = new Timeline(block);
const sum = (values) => values.reduce((total, one) => total + one, 0);
let overlaps = 0;
for (let row = 0; row + 1 < timeline.rowBegins.length; row++) {
  for (let i = timeline.rowBegins[row] + 1; i < timeline.rowBegins[row + 1]; i++) {
    if (timeline.start[i] < timeline.end[i - 1]) overlaps++;
  }
}
console.log(
  JSON.stringify({
    count: timeline.count,
    starts: sum(timeline.start),
    ends: sum(timeline.end),
    names: sum(timeline.name),
    kinds: sum(timeline.kind),
    launches: sum(timeline.launch),
    works: sum(timeline.work),
    passes: [...timeline.backward].map((one) => [one, timeline.forwardOf(one)]),
    texts: [timeline.names[0], timeline.names.at(-1)],
    overlaps,
    path: sum(timeline.path.start) + sum(timeline.path.event),
    counters: timeline.counters.map((curve) => [curve.label, curve.unit, sum(curve.values), sum(curve.means)]),
    told: [timeline.argumentsOf(0), timeline.argumentsOf(timeline.work[0])],
    bands: timeline.bands.map((band) => [band.label, band.rows]),
    steps: timeline.steps.map((step) => [step.name, step.start]),
  }),
);
