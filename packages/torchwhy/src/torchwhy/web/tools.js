// @ts-check
// The line of buttons, boxes and lists above a timeline.

import { ROW_HEIGHTS } from "./arrangement.js";
import { button, checkbox, element } from "./dom.js";
import { rowList } from "./rowlist.js";

/** @param {import("./stage.js").Stage} stage */
export function addTools(stage) {
  const { timeline } = stage;
  const zoom = element(
    "span",
    {},
    button("−", "Zoom out (S)", () => stage.zoom(1.5, 0.5, true)),
    button("+", "Zoom in (W)", () => stage.zoom(1 / 1.5, 0.5, true)),
    button("fit", "Show the whole window (F)", () => stage.fit()),
  );
  const colours = choice("Colours", { kind: "colours by kind", name: "colours by name" }, (value) => {
    stage.colouring = value === "name" ? "name" : "kind";
    stage.recolour();
  });
  const heights = Object.entries(ROW_HEIGHTS).map(([text, height]) => [String(height), `rows: ${text}`]);
  const rows = choice("Height of the rows", Object.fromEntries(heights), (value) =>
    stage.arrange((arrangement) => (arrangement.row = Number(value))),
  );
  const full = button("full screen", "Full screen", () => {
    if (document.fullscreenElement) document.exitFullscreen();
    else stage.element.requestFullscreen?.();
  });
  const frames = timeline.bands.flatMap((band, i) => (band.side === "frames" ? [i] : []));
  const framesBox = checkbox("Python frames", false, (checked) => stage.foldFrames(!checked));
  const launches = checkbox("launches", false, (checked) => {
    stage.allArrows = checked;
    stage.chooseArrows();
    stage.request();
  });
  const path = checkbox("critical path", false, (checked) => {
    stage.path = checked;
    stage.request();
  });
  stage.tools.append(zoom, full, colours, rows, ...(stage.arrangement.order.length > 1 ? [rowList(stage)] : []));
  if (frames.length) stage.tools.append(framesBox);
  if (timeline.work.length) stage.tools.append(launches);
  if (timeline.path.start.length) stage.tools.append(path);
  stage.watchers.add(() => {
    const { folded, row } = stage.arrangement;
    rows.value = String(row);
    const box = framesBox.querySelector("input");
    if (box) box.checked = frames.every((band) => !folded.has(band));
  });
}

/**
 * @param {string} name
 * @param {Record<string, string>} options the text of each value
 * @param {(value: string) => void} changed
 */
function choice(name, options, changed) {
  const made = element("select", { "aria-label": name });
  for (const [value, text] of Object.entries(options)) made.append(element("option", { value }, text));
  made.addEventListener("change", () => changed(made.value));
  return made;
}
