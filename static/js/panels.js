// The log and the cost share one place, below 1440 the timeline too: a press shows another one.
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-show-panel]");
  if (!button) return;
  event.preventDefault();
  const wanted = button.dataset.showPanel;
  document.querySelectorAll("[data-panel]").forEach((panel) => {
    panel.classList.toggle("is-open", panel.dataset.panel === wanted);
  });
  document.querySelector(`[data-panel="${CSS.escape(wanted)}"]`)?.dispatchEvent(new CustomEvent("panel-shown", { bubbles: true }));
  document.querySelector(`[data-panel="${CSS.escape(wanted)}"] [data-show-panel="${CSS.escape(wanted)}"]`)?.focus();
});
