// @ts-check
// Elements made without markup, so that no text can become any.

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, string>} [attributes]
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const name in attributes) made.setAttribute(name, attributes[name]);
  made.append(...children);
  return made;
}

/**
 * A check box with its label.
 * @param {string} text
 * @param {boolean} checked
 * @param {(checked: boolean) => void} changed
 */
export function checkbox(text, checked, changed) {
  const box = element("input", { type: "checkbox" });
  box.checked = checked;
  box.addEventListener("change", () => changed(box.checked));
  return element("label", {}, box, ` ${text}`);
}

/**
 * @param {string} text
 * @param {string} name what it does, for those who don't see it
 * @param {() => void} pressed
 */
export function button(text, name, pressed) {
  const made = element("button", { type: "button", "aria-label": name, title: name }, text);
  made.addEventListener("click", pressed);
  return made;
}
