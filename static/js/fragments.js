// A changed topic refetches the fragments that declare it. One is replaced only by a newer version,
// and never while it holds focus, a selection or unsent text: then it says that it changed.
// data-also names a prefix of further topics; data-every is the least time between two fetches.
const asked = new WeakMap();
const fetchedAt = new Map();
const waiting = new Set();

function isHeld(element) {
  if (element.dataset.replace === "always") return false;
  const selection = document.getSelection();
  return [...element.querySelectorAll("textarea, input[type=text], input[type=number]")]
    .some((field) => field.value !== field.defaultValue)
    || (document.activeElement !== document.body && element.contains(document.activeElement))
    || (!selection.isCollapsed && element.contains(selection.anchorNode));
}

function markChanged(element) {
  if (element.dataset.stale) return;
  element.dataset.stale = "1";
  if (!element.querySelector("textarea")) return;
  const note = document.createElement("p");
  note.className = "changed-note";
  note.textContent = document.getElementById("words").dataset.changed;
  element.prepend(note);
}

function replace(element, fresh) {
  element.querySelectorAll("details[id][open]").forEach((held) => {
    fresh.querySelector(`#${CSS.escape(held.id)}`)?.setAttribute("open", "");
  });
  if (fresh.isEqualNode(element)) return;
  const current = element.matches("[aria-current], .is-current");
  // Where Tab enters a group of items stays where it was.
  if (element.hasAttribute("tabindex")) fresh.tabIndex = element.tabIndex;
  const { scrollTop, scrollLeft } = element;
  element.replaceWith(fresh);
  fresh.scrollTo(scrollLeft, scrollTop);
  if (current && fresh.matches(".item")) {
    fresh.classList.add("is-current");
    fresh.querySelector("a")?.setAttribute("aria-current", "true");
  } else if (current) fresh.setAttribute("aria-current", "true");
  window.htmx?.process(fresh);
  fresh.dispatchEvent(new CustomEvent("fragment-replaced", { bubbles: true }));
}

async function refresh(element) {
  if (!element.isConnected || element.matches(".is-signing, .is-signed, .is-told")) return;
  if (isHeld(element)) return void markChanged(element);
  const ticket = Symbol("request");
  asked.set(element, ticket);
  fetchedAt.set(element.dataset.fragment, Date.now());
  const answer = await fetch(element.dataset.fragment, { headers: { "HX-Request": "true" } }).catch(() => null);
  if (!answer || asked.get(element) !== ticket || !element.isConnected || answer.redirected) return;
  if ([204, 404, 410].includes(answer.status) && !isHeld(element)) element.remove();
  if (!answer.ok || answer.status === 204) return;
  const box = document.createElement("template");
  box.innerHTML = (await answer.text()).trim();
  const fresh = box.content.firstElementChild;
  const isNewer = fresh && (!("version" in fresh.dataset) || element.dataset.replace === "same"
    || Number(fresh.dataset.version) > Number(element.dataset.version || 0));
  if (!isNewer || !element.isConnected) return;
  if (isHeld(element)) markChanged(element);
  else replace(element, fresh);
}

function soon(element) {
  const url = element.dataset.fragment;
  const wait = Number(element.dataset.every || 0) - (Date.now() - (fetchedAt.get(url) || 0));
  if (wait <= 0) refresh(element);
  else if (!waiting.has(url)) {
    waiting.add(url);
    setTimeout(() => {
      waiting.delete(url);
      document.querySelectorAll(`[data-fragment="${CSS.escape(url)}"]`).forEach(refresh);
    }, wait);
  }
}

document.body.addEventListener("topic-changed", ({ detail: { topic, version } }) => {
  document.querySelectorAll("[data-topic][data-fragment]").forEach((element) => {
    const { topic: own, also, replace: how } = element.dataset;
    const known = Number(element.dataset.version || 0);
    const isMine = own === topic && (!version || !known || version > known || how || element.dataset.every);
    if (isMine || (also && topic.startsWith(also))) soon(element);
  });
});

document.body.addEventListener("catch-up", () => document.querySelectorAll("[data-topic][data-fragment]").forEach(soon));

document.addEventListener("focusout", (event) => {
  const element = event.target.closest?.("[data-stale][data-fragment]");
  if (!element) return;
  setTimeout(() => {
    if (!element.isConnected || isHeld(element)) return;
    delete element.dataset.stale;
    refresh(element);
  });
});
