// @ts-check
// Hands the trace to a viewer in another tab: asks PING until the viewer answers PONG, then posts the bytes.
// https://perfetto.dev/docs/visualization/deep-linking-to-perfetto-ui

const { viewer = "", title = "" } = document.body.dataset;
const { origin } = new URL(viewer);
const button = /** @type {HTMLButtonElement} */ (document.querySelector("button"));
const status = /** @type {HTMLElement} */ (document.querySelector("[role=status]"));

const trace = fetch("trace").then((answer) => {
  if (!answer.ok) throw new Error(`the trace cannot be read (${answer.status})`);
  return answer.arrayBuffer();
});
trace.catch((error) => tell(`${error}. Run torchwhy view again.`));

button.addEventListener("click", () => {
  const tab = window.open(viewer);
  if (!tab) {
    tell("The browser blocked the new tab. Allow pop-ups for this page and press the button again.");
    return;
  }
  button.disabled = true;
  tell("Waiting for the viewer.");
  const asking = setInterval(() => {
    if (tab.closed) stop("The viewer was closed before it had the trace.");
    else tab.postMessage("PING", "*"); // to any origin: the tab is still at about:blank, and the word is no secret
  }, 100);
  window.addEventListener("message", hear);

  /** @param {MessageEvent} message */
  async function hear(message) {
    if (message.source !== tab || message.origin !== origin || message.data !== "PONG") return;
    stop("The viewer is ready.");
    try {
      const buffer = (await trace).slice(0); // a copy: the viewer may be opened again
      tab.postMessage({ perfetto: { buffer, title, fileName: title } }, origin, [buffer]);
    } catch {
      return; // it has been given the reason why there is no trace
    }
    tell("The viewer has the trace. This page can be closed.");
    fetch("done", { method: "POST" }).catch(() => {}); // the server may have ended before
  }

  /** @param {string} text */
  function stop(text) {
    clearInterval(asking);
    window.removeEventListener("message", hear);
    button.disabled = false;
    tell(text);
  }
});

/** @param {string} text */
function tell(text) {
  status.textContent = text;
}
