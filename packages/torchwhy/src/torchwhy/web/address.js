// @ts-check
// What is seen and selected stands in the page's address, so that it can be sent and found again.

const DELAY_MS = 250;

/**
 * @param {import("./stage.js").Stage} stage
 * @param {import("./search.js").Search} search
 */
export function followAddress(stage, search) {
  let timer = 0;
  const read = () => {
    const wanted = new URLSearchParams(location.hash.slice(1));
    const [start, length] = (wanted.get("at") ?? "").split(",").map(Number);
    if (wanted.get("search")) search.set(wanted.get("search") ?? "");
    const event = Number(wanted.get("event") ?? -1);
    if (Number.isInteger(event) && event >= 0 && event < stage.timeline.count) stage.visit(event);
    if (Number.isFinite(start) && length > 0) stage.look(start, start + length);
  };
  const write = () => {
    const { t0, t1 } = stage.seen;
    const parts = [`at=${Math.round(t0)},${Math.round(t1 - t0)}`];
    if (stage.selected >= 0) parts.push(`event=${stage.selected}`);
    if (search.input.value) parts.push(`search=${encodeURIComponent(search.input.value)}`);
    if (/^(file|https?):$/.test(location.protocol)) history.replaceState(null, "", `#${parts.join("&")}`);
  };
  read();
  stage.watchers.add(() => {
    clearTimeout(timer);
    timer = window.setTimeout(write, DELAY_MS);
  });
  addEventListener("hashchange", read);
}
