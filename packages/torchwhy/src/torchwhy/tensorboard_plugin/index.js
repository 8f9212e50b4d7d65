// @ts-check
// TensorBoard's tab: a list of runs, and the page of the chosen one.

export async function render() {
  const answer = await fetch("./runs");
  /** @type {string[]} */
  const runs = await answer.json();
  document.body.style.cssText = "margin:0;height:100vh;display:flex;flex-direction:column;font:15px system-ui,sans-serif";
  if (!runs.length) {
    document.body.textContent = "No traces under the log directory. torchwhy profile SCRIPT -o LOGDIR/run writes one.";
    return;
  }
  const choice = document.createElement("select");
  choice.setAttribute("aria-label", "Run");
  choice.style.cssText = "margin:.5rem;padding:.25rem;font:inherit;align-self:start;max-width:100%";
  choice.append(...runs.map((name) => new Option(name)));
  const page = document.createElement("iframe");
  page.title = "Report";
  page.setAttribute("sandbox", "allow-scripts"); // what a trace holds stays apart from TensorBoard
  page.style.cssText = "flex:1;border:0";
  const show = () => {
    page.src = `./page?run=${encodeURIComponent(choice.value)}`;
  };
  choice.addEventListener("change", show);
  document.body.replaceChildren(choice, page);
  show();
}
