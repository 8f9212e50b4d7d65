// @ts-check
// Light or dark: as the system has it, or as the reader chose.

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
  let theme = THEMES.includes(stored()) ? stored() : "auto";
  const button = document.getElementById("theme");
  const apply = () => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    if (button) button.textContent = `Theme: ${theme}`;
    changed();
  };
  button?.addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    store(theme);
    apply();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  apply();
}

/** Pages in a sandbox, and readers who want so, have no storage: the theme then lasts as long as the page. */
function stored() {
  try {
    return localStorage.getItem(KEY) ?? "auto";
  } catch {
    return "auto";
  }
}

/** @param {string} theme */
function store(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // as above
  }
}
