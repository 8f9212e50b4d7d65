// @ts-check
// A finding as Markdown, for an issue or a chat: buttons with data-copy.

import { copied } from "./clipboard.js";

/** @param {import("./stage.js").Stage[]} stages */
export function followCopies(stages) {
  document.addEventListener("click", (event) => {
    const pressed = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("[data-copy]"));
    const card = pressed?.closest("li");
    if (!pressed || !card) return;
    copied(stages[0] ?? { say: () => {} }, markdownOf(card, pressed.dataset.copy ?? ""));
    pressed.textContent = "copied";
    setTimeout(() => (pressed.textContent = "copy"), 1500);
  });
}

/**
 * Title, facts, evidence, cause and fix of a card, and where it is.
 * @param {HTMLElement} card
 * @param {string} number of the finding
 */
function markdownOf(card, number) {
  const text = (/** @type {Element | null} */ one) => (one?.textContent ?? "").replace(/\s+/g, " ").trim();
  const evidence = [...card.querySelectorAll("ul > li")].map((one) => {
    const [name] = one.querySelectorAll("code");
    return `- \`${text(name).replaceAll("`", "'")}\`${text(one).slice(text(name).length)}`;
  });
  const said = [...card.querySelectorAll(":scope > p:not(.facts, .card-tools)")].map(text);
  const page = document.querySelector("h1")?.textContent ?? "";
  const link = `${location.href.split("#")[0]}${number && `#show=finding:${number}`}`;
  const head = [`### ${text(card.querySelector("h3"))}`, text(card.querySelector(".facts"))];
  return [...head, "", ...evidence, "", ...said, "", `From ${page}: ${link}`].join("\n");
}
