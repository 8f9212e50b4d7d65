// @ts-check
// Keys by their place on the keyboard, so that W, A, S, D lie together on every layout.

/**
 * @param {import("./stage.js").Stage[]} stages
 * @param {Map<import("./stage.js").Stage, import("./search.js").Search>} searches
 */
export function followKeys(stages, searches) {
  let active = stages[0];
  for (const stage of stages) {
    stage.element.addEventListener("focusin", () => (active = stage));
    stage.element.addEventListener("pointerenter", () => (active = stage));
  }
  let finding = -1;
  const nextFinding = (/** @type {number} */ way) => {
    const links = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('[data-show^="finding:"]'));
    if (!links.length) return;
    finding = (finding < 0 && way < 0 ? links.length - 1 : finding + way + links.length) % links.length;
    links[finding].click();
  };
  /** @type {Record<string, () => void>} */
  const anywhere = {
    KeyW: () => active.zoom(1 / 1.25),
    KeyS: () => active.zoom(1.25),
    KeyA: () => active.pan(-0.12),
    KeyD: () => active.pan(0.12),
    KeyF: () => active.fit(),
    Period: () => active.next(1),
    Comma: () => active.next(-1),
    Slash: () => searches.get(active)?.input.focus(),
    KeyN: () => nextFinding(1),
    KeyP: () => nextFinding(-1),
    Escape: () => {
      for (const stage of stages) {
        searches.get(stage)?.set("");
        stage.stretches = null;
        stage.select(-1);
      }
    },
  };
  /** @type {Record<string, () => void>} */
  const inTheView = {
    ArrowLeft: () => active.walk(-1),
    ArrowRight: () => active.walk(1),
    ArrowUp: () => active.climb(-1),
    ArrowDown: () => active.climb(1),
    Home: () => active.first(),
  };
  addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (!active || event.ctrlKey || event.metaKey || event.altKey || target.matches?.("input:not([type=checkbox]), select")) {
      return;
    }
    const act = anywhere[event.code] ?? (target === active.view ? inTheView[event.code] : undefined);
    if (!act) return;
    event.preventDefault();
    act();
  });
}
