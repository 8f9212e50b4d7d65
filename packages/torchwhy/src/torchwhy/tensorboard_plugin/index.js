// @ts-check
// TensorBoard's tab: a list of runs, and the page of the chosen one, dark where TensorBoard is.

/** Whether TensorBoard is dark: it says so on its own page, of which this one is a frame. */
function isDark() {
  return parent.document.body.classList.contains("dark-mode");
}

export async function render() {
  const answer = await fetch("./runs");
  /** @type {string[]} */
  const runs = await answer.json();
  const page = document.createElement("iframe");
  const follow = () => {
    const torchwhyTheme = isDark() ? "dark" : "light";
    document.documentElement.style.colorScheme = torchwhyTheme;
    page.contentWindow?.postMessage({ torchwhyTheme }, "*"); // the page has an opaque origin, see below
  };
  follow();
  page.addEventListener("load", follow);
  new MutationObserver(follow).observe(parent.document.body, { attributeFilter: ["class"] });
  document.body.style.cssText = "margin:0;background:Canvas;color:CanvasText;font:15px system-ui,sans-serif";
  if (!runs.length) {
    document.body.textContent = "No traces under the log directory. torchwhy profile SCRIPT -o LOGDIR/run writes one.";
    return;
  }
  const choice = document.createElement("select");
  choice.style.cssText = "padding:.25rem;font:inherit;max-width:calc(100% - 3rem)";
  choice.append(...runs.map((name) => new Option(name)));
  const label = document.createElement("label");
  label.htmlFor = choice.id = "run";
  label.textContent = "Run ";
  const line = document.createElement("div");
  line.style.cssText = "margin:.5rem";
  const heading = document.createElement("h1");
  heading.style.cssText = "display:inline;margin-right:1rem;font:inherit;font-weight:600";
  heading.textContent = "torchwhy";
  line.append(heading, label, choice);
  const main = document.createElement("main");
  main.style.cssText = "height:100vh;display:flex;flex-direction:column";
  main.append(line, page);
  page.title = "Report";
  page.setAttribute("sandbox", "allow-scripts"); // what a trace holds stays apart from TensorBoard
  page.style.cssText = "flex:1;border:0";
  const show = () => {
    page.src = `./page?run=${encodeURIComponent(choice.value)}`;
  };
  choice.addEventListener("change", show);
  document.body.replaceChildren(main);
  show();
}
