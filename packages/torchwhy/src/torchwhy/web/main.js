// @ts-check
// Brings the page to life: reads the timelines, and ties what can be clicked to them.

import { followAddress } from "./address.js";
import { drawAmounts } from "./amount_columns.js";
import { readBlock } from "./block.js";
import { followCopies } from "./copying.js";
import { followKeys } from "./keyboard.js";
import { linkViews } from "./linked.js";
import { followMemory } from "./memory.js";
import { followPointer } from "./pointer.js";
import { Search } from "./search.js";
import { followSelection } from "./selection.js";
import { Shown } from "./show.js";
import { followHeadings } from "./sorting.js";
import { Stage } from "./stage.js";
import { followTheme } from "./theme.js";
import { Timeline } from "./timeline.js";
import { followFixes } from "./whatif.js";

/** The stages of the page, from the top. @returns {Promise<Stage[]>} */
async function stagesOf() {
  const found = [];
  for (let number = 0; ; number++) {
    const data = document.getElementById(`timeline-${number}`);
    if (!data) return found;
    const place = document.getElementById(`stage-${number}`) ?? (number ? null : document.getElementById("stage"));
    const text = data.textContent ?? "";
    data.remove();
    if (!place) continue;
    const timeline = new Timeline(await readBlock(text));
    found.push(new Stage(place, timeline, place.dataset.name ?? ""));
  }
}

async function start() {
  /** @type {Stage[]} */
  let stages = [];
  followTheme(() => stages.forEach((stage) => stage.recolour()));
  stages = await stagesOf();
  const searches = new Map(stages.map((stage) => [stage, new Search(stage)]));
  for (const [stage, search] of searches) {
    followPointer(stage);
    followSelection(stage, search);
  }
  const shown = new Shown(stages);
  followKeys(stages, searches, shown);
  followHeadings();
  drawAmounts(stages.length === 1 ? stages[0].timeline.steps.length : 0);
  followMemory();
  followCopies(stages);
  linkViews(stages);
  for (const [stage, search] of [...searches].slice(0, 1)) {
    followFixes(stage.timeline);
    followAddress(stage, search, shown);
  }
  Object.assign(globalThis, { torchwhyReport: { stages } }); // for the console, and for tests
  document.documentElement.dataset.ready = "1";
  for (const stage of stages) stage.resize(); // now that they are on the screen
  if (location.hash.includes("at=")) stages[0]?.element.scrollIntoView({ block: "start" });
  performance.mark("ready");
}

start();
