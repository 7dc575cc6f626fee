// Side by side or unified; the choice is remembered on this browser. CSS shows it where it fits.
const KEY = "diff-view";

function apply(view) {
  document.documentElement.dataset.diffView = view;
  document.querySelectorAll("[data-diff-choice]").forEach((button) => {
    button.setAttribute("aria-pressed", String(button.dataset.diffChoice === view));
  });
}

document.addEventListener("click", (event) => {
  const here = event.target.closest("[data-diff-here-toggle]");
  if (here) {
    const block = here.closest(".diff-block");
    block.dataset.diffHere = block.dataset.diffHere === "sides" ? "" : "sides";
    [here.textContent, here.dataset.other] = [here.dataset.other, here.textContent];
    return;
  }
  const button = event.target.closest("[data-diff-choice]");
  if (!button) return;
  localStorage.setItem(KEY, button.dataset.diffChoice);
  apply(button.dataset.diffChoice);
});
document.addEventListener("pane-loaded", () => apply(document.documentElement.dataset.diffView));
document.addEventListener("fragment-replaced", () => apply(document.documentElement.dataset.diffView));
apply(localStorage.getItem(KEY) || "sides");
