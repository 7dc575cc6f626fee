// Speak through the page's two live regions. Dispatch `announce` on body with {text, urgent}.
document.addEventListener("announce", (event) => {
  const region = document.getElementById(event.detail.urgent ? "assertive" : "polite");
  if (!region) return;
  region.textContent = "";
  requestAnimationFrame(() => { region.textContent = event.detail.text; });
});
