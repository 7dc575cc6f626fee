// One count in the page, the tab's title and the favicon's dot: after every fragment that carries it.
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

document.addEventListener("fragment-replaced", (event) => {
  if (event.target.matches?.("[data-inbox-count]")) show(Number(event.target.dataset.count || 0));
});
