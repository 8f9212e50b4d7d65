// @ts-check
// What a reader chose, where the browser keeps it. Pages in a sandbox have no storage: a choice then lasts as long as they.

/** @param {string} key */
export function stored(key) {
  try {
    return localStorage.getItem(key) ?? "";
  } catch {
    return "";
  }
}

/** @param {string} key @param {string} value */
export function store(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // as above
  }
}
