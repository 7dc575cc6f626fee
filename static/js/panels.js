// Below 1440 the timeline and the log share one place: a press shows the other one.
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-show-panel]");
  if (!button) return;
  const wanted = button.dataset.showPanel;
  document.querySelectorAll("[data-panel]").forEach((panel) => {
    panel.classList.toggle("is-open", panel.dataset.panel === wanted);
  });
  document.querySelector(`[data-panel="${CSS.escape(wanted)}"] [data-show-panel="${CSS.escape(wanted)}"]`)?.focus();
});
