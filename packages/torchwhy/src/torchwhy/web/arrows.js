// @ts-check
// Which arrows a timeline draws: from calls to the work they launched, from operators to those of their backward pass.

/** @typedef {[from: number, to: number]} Arrow */

/**
 * Those of the selected event and of the calls inside it, or of all.
 * @param {import("./timeline.js").Timeline} timeline
 * @param {number} selected -1 for none
 * @param {boolean} all
 * @returns {Arrow[]}
 */
export function arrowsOf(timeline, selected, all) {
  const { launch, work, start, end, rowBegins } = timeline;
  /** @type {Arrow[]} */
  const found = [];
  const band = selected < 0 ? null : timeline.bands[timeline.bandOf(timeline.rowOf(selected))];
  for (let i = 0; i < work.length; i++) {
    const call = launch[i];
    const inside =
      band !== null &&
      start[call] >= start[selected] &&
      end[call] <= end[selected] &&
      call >= rowBegins[band.firstRow] &&
      call < rowBegins[band.firstRow + band.rows];
    if (all || inside || work[i] === selected) found.push([call, work[i]]);
  }
  if (selected < 0) return found;
  const forward = timeline.forwardOf(selected);
  if (forward >= 0) found.push([forward, selected]);
  for (const backward of timeline.backwardsOf(selected)) found.push([selected, backward]);
  return found;
}

/** Those of an event under the pointer; -1 for none. @param {import("./timeline.js").Timeline} timeline @param {number} event @returns {Arrow[]} */
export function launchesOf(timeline, event) {
  if (event < 0) return [];
  const launch = timeline.launchOf(event);
  const found = timeline.worksOf(event).map((work) => /** @type {Arrow} */ ([event, work]));
  return launch >= 0 ? [...found, [launch, event]] : found;
}
