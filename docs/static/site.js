// What the theme leaves out for those who use a keyboard or a screen reader.
for (const caption of document.querySelectorAll("[role=heading]:not([aria-level])")) caption.setAttribute("aria-level", "2");
for (const [place, label] of [[".sidebar-drawer", "Pages"], [".toc-drawer", "On this page"]])
  document.querySelector(place)?.setAttribute("aria-label", label);
for (const cell of document.querySelectorAll("th"))
  if (!cell.textContent.trim()) cell.replaceWith(document.createElement("td")); // a corner heads nothing
const results = document.getElementById("search-results");
if (results && !document.querySelector("h1")) {
  const heading = document.createElement("h1");
  heading.textContent = "Search";
  results.before(heading);
}
const scrolls = () => {
  for (const part of document.querySelectorAll("pre, .table-wrapper"))
    if (part.scrollWidth > part.clientWidth) part.tabIndex = 0; // the arrow keys scroll what has the focus
};
scrolls();
addEventListener("resize", scrolls);
