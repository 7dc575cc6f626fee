// Replay: the slider, its arrow keys and the steps fetch the board of another moment. Without
// script the same form and links load the page.
const REST_MS = 120;
let timer = 0;
let wanted = "";

function slider() {
  return document.querySelector("[data-replay-slider]");
}

async function show(url) {
  wanted = url;
  const kept = document.activeElement?.dataset?.replayStep;
  const answer = await fetch(url, { headers: { "HX-Request": "true" } }).catch(() => null);
  if (wanted !== url) return;
  if (!answer?.ok || answer.redirected) {
    location.assign(url);
    return;
  }
  const box = document.createElement("template");
  box.innerHTML = (await answer.text()).trim();
  const fresh = box.content.firstElementChild;
  if (!fresh || wanted !== url) return;
  document.querySelector("[data-past]").replaceWith(fresh);
  slider().value = fresh.dataset.at;
  history.replaceState(null, "", url);
  if (kept) fresh.querySelector(`[data-replay-step="${CSS.escape(kept)}"]`)?.focus();
  fresh.dispatchEvent(new CustomEvent("fragment-replaced", { bubbles: true }));
}

function atSlider() {
  const form = slider().form;
  return `${form.action.split("?")[0]}?${new URLSearchParams(new FormData(form))}`;
}

function step(name) {
  const link = document.querySelector(`[data-replay-step="${CSS.escape(name)}"]`);
  if (link && link.getAttribute("aria-disabled") !== "true") show(link.href);
}

document.addEventListener("input", (event) => {
  if (!event.target.matches?.("[data-replay-slider]")) return;
  clearTimeout(timer);
  timer = setTimeout(() => show(atSlider()), REST_MS);
});

document.addEventListener("keydown", (event) => {
  if (!event.target.matches?.("[data-replay-slider]") || event.ctrlKey || event.metaKey || event.altKey) return;
  const moves = { ArrowLeft: "earlier", ArrowDown: "earlier", ArrowRight: "later", ArrowUp: "later", Home: "first", End: "last" };
  if (!moves[event.key]) return;
  event.preventDefault();
  step(moves[event.key]);
});

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("[data-replay-step], [data-past] .master-row");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  if (link.getAttribute("aria-disabled") === "true") return;
  const task = new URL(link.href).searchParams.get("task");
  const held = document.querySelector("[data-replay-task]");
  if (task && held) held.value = task;
  show(link.href);
});

document.addEventListener("submit", (event) => {
  if (!event.target.matches("[data-replay]")) return;
  event.preventDefault();
  show(atSlider());
});
