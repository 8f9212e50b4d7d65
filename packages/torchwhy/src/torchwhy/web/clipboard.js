// @ts-check
// What leaves the page: text for the clipboard, and small files.

import { element } from "./dom.js";

/**
 * Copy a text and say so.
 * @param {{say: (text: string) => void}} speaker
 * @param {string} text
 */
export async function copied(speaker, text) {
  document.documentElement.dataset.copied = text; // for tests
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = element("textarea", { class: "speech" }); // pages in a frame may not use the clipboard directly
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  speaker.say("Copied.");
}

/**
 * @param {string} name of the file
 * @param {string} text
 */
export function download(name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
