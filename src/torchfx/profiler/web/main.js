// @ts-check
// Brings the page to life: reads the timelines, and ties what can be clicked to them.

import { readBlock } from "./block.js";
import { followPointer } from "./pointer.js";
import { Stage } from "./stage.js";
import { followTheme } from "./theme.js";
import { Timeline } from "./timeline.js";

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
  for (const stage of stages) followPointer(stage);
  Object.assign(globalThis, { torchfxReport: { stages } }); // for the console, and for tests
  document.documentElement.dataset.ready = "1";
}

start();
