// Refetch one fragment (`data-fragment`). It is replaced only by a newer version, and never while it
// holds focus, a selection or unsent text: then it says that it changed.
const asked = new WeakMap();

function isHeld(element) {
  if (element.dataset.replace === "always") return false;
  const selection = document.getSelection();
  const unsent = [...element.querySelectorAll("textarea, input[type=text], input[type=number]")]
    .some((field) => field.value !== field.defaultValue);
  return unsent
    || (element.contains(document.activeElement) && document.activeElement !== document.body)
    || (!selection.isCollapsed && element.contains(selection.anchorNode));
}

function markChanged(element) {
  if (element.dataset.stale) return;
  element.dataset.stale = "1";
  if (element.querySelector("textarea, input")) {
    const note = document.createElement("p");
    note.className = "changed-note";
    note.textContent = document.getElementById("words").dataset.changed;
    element.prepend(note);
  }
}

function replace(element, fresh) {
  const current = element.matches("[aria-current], .is-current");
  element.replaceWith(fresh);
  if (current && fresh.matches(".item")) {
    fresh.classList.add("is-current");
    fresh.querySelector("a")?.setAttribute("aria-current", "true");
  }
  window.htmx?.process(fresh);
  fresh.dispatchEvent(new CustomEvent("fragment-replaced", { bubbles: true }));
}

async function refresh(element) {
  if (isHeld(element)) {
    markChanged(element);
    return;
  }
  const ticket = Symbol("request");
  asked.set(element, ticket);
  let answer;
  try {
    answer = await fetch(element.dataset.fragment, { headers: { "HX-Request": "true" } });
  } catch {
    return;
  }
  if (asked.get(element) !== ticket || !element.isConnected || answer.redirected) return;
  if (answer.status === 204 || answer.status === 404 || answer.status === 410) {
    if (!isHeld(element)) element.remove();
    return;
  }
  if (!answer.ok) return;
  const box = document.createElement("template");
  box.innerHTML = (await answer.text()).trim();
  const fresh = box.content.firstElementChild;
  if (!fresh) return;
  const isNewer = !("version" in fresh.dataset)
    || Number(fresh.dataset.version) > Number(element.dataset.version || 0)
    || element.dataset.replace === "same";
  if (!isNewer) return;
  if (isHeld(element)) markChanged(element);
  else replace(element, fresh);
}

document.addEventListener("refresh-fragment", (event) => refresh(event.target));

document.addEventListener("focusout", (event) => {
  const element = event.target.closest?.("[data-stale][data-fragment]");
  if (!element) return;
  setTimeout(() => {
    if (!element.isConnected || isHeld(element)) return;
    delete element.dataset.stale;
    refresh(element);
  });
});
