// Tell the server that an item was seen, once its whole card has stood on the screen for a moment.
const MOMENT_MS = 800;
const told = new Set();

function token() {
  return JSON.parse(document.body.getAttribute("hx-headers") || "{}")["X-CSRFToken"] || "";
}

function look() {
  document.querySelectorAll("[data-seen-url]").forEach((card) => {
    const url = card.dataset.seenUrl;
    if (told.has(url)) return;
    setTimeout(async () => {
      if (!card.isConnected || document.hidden || told.has(url)) return;
      told.add(url);
      try {
        await fetch(url, { method: "POST", headers: { "X-CSRFToken": token(), "HX-Request": "true" } });
      } catch {
        told.delete(url);
      }
    }, MOMENT_MS);
  });
}

document.addEventListener("pane-loaded", look);
look();
