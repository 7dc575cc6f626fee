// One count in the page, the tab's title and the favicon's dot: after every fragment that carries it.
// A section that was fetched anew carries its own count to its anchor at the top of the page.
const bare = document.title.replace(/^\(\d+\) /, "");

function show(count) {
  document.title = count > 0 ? `(${count}) ${bare}` : bare;
  document.querySelectorAll("[data-inbox-count]").forEach((element) => {
    element.textContent = count;
    element.hidden = !count;
  });
  const link = document.querySelector('link[rel="icon"]');
  const wanted = count > 0 ? link?.dataset.waiting : link?.dataset.clear;
  if (wanted && link.getAttribute("href") !== wanted) link.setAttribute("href", wanted);
}

function showSectionCount(section) {
  const anchor = document.querySelector(`.anchors a[href="#${CSS.escape(section.id)}"]`);
  if (!anchor) return;
  anchor.hidden = false;
  anchor.querySelector("span").textContent = section.dataset.sectionCount;
}

document.addEventListener("fragment-replaced", (event) => {
  const held = event.target.querySelectorAll?.("[data-section-count]") || [];
  [event.target, ...held].filter((one) => one.matches?.("[data-section-count]")).forEach(showSectionCount);
  if (event.target.matches?.("[data-inbox-count]")) show(Number(event.target.dataset.count || 0));
});
