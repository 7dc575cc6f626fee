// Ticked rows of one kind are decided together; a tick on another kind starts anew.
const bar = document.querySelector("[data-bulk]");

function ticks() {
  return [...document.querySelectorAll("[data-list] .row-tick")];
}

function show() {
  const chosen = ticks().filter((box) => box.checked);
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
document.addEventListener("fragment-replaced", () => bar && show());
document.addEventListener("verdict-signed", () => bar && show());
