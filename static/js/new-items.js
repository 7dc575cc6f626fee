// The inbox list: new rows wait behind "2 new" while the list has focus or the pointer is over it.
// Counts change at once. A P0 row is put in at once, above what is being read.
const words = document.getElementById("words")?.dataset;
const TRAVEL_MS = 500;
let waiting = null;
let later = 0;

function list() {
  return document.querySelector("[data-list][data-list-url]");
}

function rows(root) {
  return [...root.querySelectorAll("[data-row]")];
}

const isBusy = (element) => element.matches(":hover") || element.contains(document.activeElement);
const scroller = (element) => element.closest(".inbox-scroll") || element;

function firstVisible(element) {
  const top = scroller(element).getBoundingClientRect().top;
  return rows(element).find((row) => row.getBoundingClientRect().bottom > top);
}

// The server marks the row that it would open: the reader's own stands.
function unmark(row) {
  row.classList.remove("is-current");
  row.querySelector("a")?.removeAttribute("aria-current");
  return row;
}

function swap(element, fresh) {
  const active = element.contains(document.activeElement) ? document.activeElement : null;
  const focused = active?.closest("[data-row]");
  const current = element.querySelector(".item.is-current")?.dataset.row;
  const travelling = rows(element).filter((row) => row.matches(".is-signing, .is-signed, .is-refused, .is-changed"));
  const anchor = firstVisible(element);
  const before = anchor?.getBoundingClientRect().top;
  const bar = element.querySelector("button[data-new-items]");
  element.replaceChildren(...(bar ? [bar] : []), ...fresh.childNodes);
  travelling.forEach((row) => element.querySelector(`#${CSS.escape(row.id)}`)?.replaceWith(row));
  const selected = current && element.querySelector(`[data-row="${CSS.escape(current)}"]`);
  if (selected) {
    rows(element).forEach(unmark);
    selected.classList.add("is-current");
    selected.querySelector("a")?.setAttribute("aria-current", "true");
  }
  const same = anchor && document.getElementById(anchor.id);
  const held = focused && document.getElementById(focused.id);
  held?.querySelector(active.matches(".row-tick") ? ".row-tick" : "a.row-link")?.focus({ preventScroll: true });
  element.dispatchEvent(new CustomEvent("list-swapped", { bubbles: true }));
  if (same) scroller(element).scrollTop += same.getBoundingClientRect().top - before;
  waiting = null;
  showCount(0);
}

function showCount(n) {
  const bar = document.querySelector("button[data-new-items]");
  if (!bar) return;
  bar.hidden = n === 0;
  const text = words.newItems.replace("{n}", n);
  bar.querySelector("[data-new-count]").textContent = text;
  if (n) document.body.dispatchEvent(new CustomEvent("announce", { bubbles: true, detail: { text } }));
}

async function refresh() {
  const element = list();
  if (!element) return;
  if (element.querySelector(".is-signing, .is-signed, .is-told")) {
    // A row that says what became of it stays until it has been read.
    clearTimeout(later);
    return void (later = setTimeout(refresh, TRAVEL_MS));
  }
  const answer = await fetch(element.dataset.listUrl, { headers: { "HX-Request": "true" } });
  if (!answer.ok || answer.redirected) return;
  const box = document.createElement("template");
  box.innerHTML = (await answer.text()).trim();
  const fresh = box.content.querySelector("[data-list]") || box.content;
  const known = new Set(rows(element).map((row) => row.dataset.row));
  const added = rows(fresh).filter((row) => !known.has(row.dataset.row));
  if (!isBusy(element)) {
    swap(element, fresh);
    return;
  }
  const urgent = added.filter((row) => row.classList.contains("is-p0"));
  urgent.reverse().forEach((row) => element.querySelector("ul")?.prepend(unmark(row.cloneNode(true))));
  urgent.forEach((row) => document.body.dispatchEvent(new CustomEvent("announce", {
    bubbles: true, detail: { text: row.querySelector(".row-title").textContent, urgent: true },
  })));
  waiting = fresh;
  showCount(added.length - urgent.length);
}

document.body.addEventListener("topic-changed", (event) => {
  if (event.detail.topic === "inbox") refresh();
});
document.body.addEventListener("catch-up", refresh);
document.addEventListener("click", (event) => {
  if (event.target.closest("button[data-new-items]") && waiting) swap(list(), waiting);
});
