// Keys of every page: g i, g o, g b, n, ?, Ctrl K. Single keys can be turned off in the key help.
const SWITCH = "single-keys";
const PAUSE_MS = 1200;
let pendingGo = 0;

document.documentElement.dataset.singleKeys = localStorage.getItem(SWITCH) || "on";

function isTyping(event) {
  return event.isComposing || event.keyCode === 229 || event.altKey
    || Boolean(event.target.closest?.("textarea, select, [contenteditable], input:not([type=checkbox], [type=radio])"));
}

function visit(selector) {
  const link = document.querySelector(selector);
  if (link) link.click();
  return Boolean(link);
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && event.target.matches?.("input[type=search]") && !event.isComposing) {
    event.preventDefault(); // The browser would empty the field.
    event.target.blur();
    return;
  }
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    const search = document.querySelector("[data-search]");
    if (!search) return;
    event.preventDefault();
    search.focus();
    return;
  }
  if (event.ctrlKey || event.metaKey || isTyping(event) || document.querySelector("dialog[open]")) return;
  if (document.documentElement.dataset.singleKeys === "off" && event.key !== "?") return;
  const isSecond = Date.now() - pendingGo < PAUSE_MS;
  pendingGo = 0;
  if (isSecond) {
    const link = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
    if (!link) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    link.click();
  } else if (event.key === "g") {
    pendingGo = Date.now();
  } else if (event.key === "n") {
    visit(".new-work");
  } else if (event.key === "?") {
    document.getElementById("key-help")?.showModal();
  }
});

const box = document.querySelector("[data-single-keys]");
if (box) {
  box.checked = document.documentElement.dataset.singleKeys !== "off";
  box.addEventListener("change", () => {
    document.documentElement.dataset.singleKeys = box.checked ? "on" : "off";
    localStorage.setItem(SWITCH, box.checked ? "on" : "off");
  });
}
