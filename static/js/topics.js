// A changed topic asks for the fragments that declare it (`data-topic`). `data-every` is the shortest
// time between two fetches of one fragment, in milliseconds; the last change is never left out.
const waits = new Map();

function ask(element) {
  element.dispatchEvent(new CustomEvent("refresh-fragment", { bubbles: true }));
}

function askInTime(element) {
  const { every, fragment } = element.dataset;
  if (!every) {
    ask(element);
    return;
  }
  if (waits.has(fragment)) {
    waits.set(fragment, true);
    return;
  }
  waits.set(fragment, false);
  ask(element);
  setTimeout(() => {
    const isDue = waits.get(fragment);
    waits.delete(fragment);
    const current = document.querySelector(`[data-fragment="${CSS.escape(fragment)}"]`);
    if (isDue && current) askInTime(current);
  }, Number(every));
}

document.body.addEventListener("topic-changed", (event) => {
  const { topic, version } = event.detail;
  document.querySelectorAll(`[data-topic="${CSS.escape(topic)}"][data-fragment]`).forEach((element) => {
    const known = Number(element.dataset.version || 0);
    if (!version || !known || version > known || element.dataset.replace) askInTime(element);
  });
});

document.body.addEventListener("catch-up", () => {
  document.querySelectorAll("[data-topic][data-fragment]").forEach(ask);
});
