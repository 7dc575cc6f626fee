// Keys of the list and the card. A verdict key works only when the pane shows this row's version
// whole; otherwise it opens the row. Off while typing, composing, or when single keys are off.
const words = document.getElementById("words")?.dataset;

function isTyping(event) {
  return event.isComposing || event.keyCode === 229
    || Boolean(event.target.closest?.("textarea, select, [contenteditable], input:not([type=checkbox], [type=radio])"));
}

function rows() {
  return [...document.querySelectorAll("[data-list] [data-row]")];
}

function current() {
  return document.querySelector("[data-list] .item.is-current");
}

function select(row, now) {
  if (!row) return;
  rows().forEach((other) => {
    const is = other === row;
    other.classList.toggle("is-current", is);
    const link = other.querySelector("a.row-link");
    link.tabIndex = is ? 0 : -1;
    if (is) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  });
  row.querySelector("a.row-link").focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
  document.dispatchEvent(new CustomEvent("row-selected", { detail: { row, now } }));
}

function step(by) {
  const all = rows();
  const at = all.indexOf(current());
  if (all.length) select(all[Math.min(Math.max(at + by, 0), all.length - 1)], false);
  else document.querySelector(by > 0 ? "[data-next-item]" : "[data-previous-item]")?.click();
}

function tick(row, range) {
  const box = row?.querySelector(".row-tick");
  if (!box) return;
  const kind = row.dataset.kind;
  const boxes = rows().filter((one) => one.dataset.kind === kind).map((one) => one.querySelector(".row-tick"));
  const last = boxes.findIndex((one) => one?.dataset.last);
  const here = boxes.indexOf(box);
  if (range && last >= 0) boxes.slice(Math.min(last, here), Math.max(last, here) + 1).forEach((one) => { one.checked = true; });
  else box.checked = !box.checked;
  boxes.forEach((one) => one && delete one.dataset.last);
  box.dataset.last = "1";
  box.dispatchEvent(new Event("change", { bubbles: true }));
}

function verdict(key) {
  const dock = document.querySelector("[data-dock]");
  const row = current();
  if (row && (dock?.dataset.dock !== row.dataset.row || dock.dataset.version !== row.dataset.version)) {
    select(row, true);
    return;
  }
  const buttons = [...(dock?.querySelectorAll("[name=verdict]") || [])];
  const button = buttons.find((one) => one.dataset.key === key) || (/^[1-9]$/.test(key) && buttons[key - 1]);
  const note = document.querySelector("[data-key-note]");
  if (note) note.textContent = button ? "" : words.noKey.replace("{key}", key);
  if (button?.type === "radio") button.click();
  else if (button && !button.disabled) button.form.requestSubmit(button);
}

const ACTIONS = {
  j: () => step(1), ArrowDown: () => step(1), k: () => step(-1), ArrowUp: () => step(-1),
  x: (event) => tick(current(), event.shiftKey), X: () => tick(current(), true),
  ".": () => document.querySelector("button[data-new-items]:not([hidden])")?.click(),
  "/": () => {
    const field = document.querySelector("[data-list-search]");
    field?.closest("details")?.setAttribute("open", "");
    field?.focus();
  },
  u: () => document.querySelector("[data-back-to-list]")?.click(),
};

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && isTyping(event) && event.target.closest("[data-dock]")) event.target.blur();
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
  if (document.documentElement.dataset.singleKeys === "off" || document.querySelector("dialog[open]")) return;
  if (!document.querySelector("[data-list], [data-dock]")) return;
  const action = ACTIONS[event.key];
  if (event.key.startsWith("Arrow") && !event.target.closest("[data-list]")) return;
  if (!action && !/^[acrs1-9]$/.test(event.key)) return;
  event.preventDefault();
  if (action) action(event);
  else verdict(event.key);
});

document.addEventListener("select-row", (event) => select(event.detail.row, event.detail.now));
document.addEventListener("verdict-sent", (event) => {
  const row = document.getElementById(`row-${event.detail.id}`);
  const all = rows();
  select(all[all.indexOf(row) + 1] || all[all.indexOf(row) - 1], false);
});
