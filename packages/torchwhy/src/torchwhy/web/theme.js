// @ts-check
// Light or dark: as the system has it, as the reader chose, or as the page that frames this one says in a message.

import { store, stored } from "./storage.js";

const KEY = "torchwhy-theme";
const THEMES = ["auto", "light", "dark"];

/** Whether the page is dark now. */
export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/**
 * Let the button with the id "theme" go through the themes.
 * @param {() => void} changed
 */
export function followTheme(changed) {
  let theme = THEMES.includes(stored(KEY)) ? stored(KEY) : "auto";
  const button = document.getElementById("theme");
  const apply = () => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    if (button) button.textContent = `Theme: ${theme}`;
    changed();
  };
  button?.addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    store(KEY, theme);
    apply();
  });
  addEventListener("message", ({ data }) => {
    if (!THEMES.includes(data?.torchwhyTheme)) return;
    theme = data.torchwhyTheme;
    apply();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  apply();
}
