// At an item's deadline the page asks for what stands now: the policy has decided then. The time left
// is counted from when the part came, by the server's clock, so that a wrong clock here does no harm.
const LOOK_MS = 250;
const LATER_MS = 100;
const due = new WeakMap();

function look() {
  document.querySelectorAll("[data-dock][data-expires-in]").forEach((dock) => {
    if (!due.has(dock)) due.set(dock, performance.now() + Number(dock.dataset.expiresIn) + LATER_MS);
    if (performance.now() < due.get(dock)) return;
    delete dock.dataset.expiresIn;
    const detail = { topic: `decision:${dock.dataset.dock}` };
    document.body.dispatchEvent(new CustomEvent("topic-changed", { detail }));
  });
}

look();
setInterval(look, LOOK_MS);
document.addEventListener("pane-loaded", look);
