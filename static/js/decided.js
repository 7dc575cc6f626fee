// An item that was signed here is asked for anew at once: its state, what waits, its rounds. Its
// place among the open ones is gone.
document.addEventListener("verdict-signed", ({ detail: { id } }) => {
  if (!document.querySelector(`[data-dock="${CSS.escape(id)}"]`)) return;
  document.querySelectorAll("[data-item-place]").forEach((place) => { place.hidden = true; });
  document.body.dispatchEvent(new CustomEvent("topic-changed", { detail: { topic: `decision:${id}` } }));
});
