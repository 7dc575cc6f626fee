// Ticked rows of one kind are decided together; a tick on another kind starts anew. The ticks
// outlive the rows: news swaps the whole list.
const bar = document.querySelector("[data-bulk]");
let kept = new Set();

function ticks() {
  return [...document.querySelectorAll("[data-list] .row-tick")];
}

function show() {
  const chosen = ticks().filter((box) => box.checked);
  kept = new Set(chosen.map((box) => box.value));
  bar.hidden = chosen.length === 0;
  bar.querySelector("[data-bulk-count]").textContent = chosen.length
    ? document.getElementById("words").dataset.selected.replace("{n}", chosen.length)
    : "";
  document.querySelector("[data-list]")?.classList.toggle("is-selecting", chosen.length > 0);
}

document.addEventListener("change", (event) => {
  const box = event.target;
  if (!bar || !box.matches?.("[data-list] .row-tick")) return;
  const kind = box.closest("[data-row]").dataset.kind;
  if (box.checked) {
    ticks().forEach((other) => {
      if (other.closest("[data-row]").dataset.kind !== kind) other.checked = false;
    });
  }
  show();
});
document.addEventListener("list-swapped", () => {
  if (!bar) return;
  ticks().forEach((box) => { box.checked = kept.has(box.value); });
  show();
});
document.addEventListener("fragment-replaced", () => bar && show());
document.addEventListener("verdict-signed", () => bar && show());
