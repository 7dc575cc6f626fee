// Pan, zoom and keys of the phase graph. Places come from the server; zoom sets the drawing's size.
const STEPS = [0.4, 0.5, 0.65, 0.8, 1, 1.25, 1.5];
let zoom = 1;

function graph() {
  return document.querySelector("[data-graph]");
}

function apply(value) {
  zoom = value;
  graph().querySelectorAll(".band-svg").forEach((drawing) => {
    drawing.setAttribute("width", drawing.dataset.width * zoom);
    drawing.setAttribute("height", drawing.dataset.height * zoom);
  });
  graph().dispatchEvent(new CustomEvent("graph-drawn", { bubbles: true }));
}

function by(direction) {
  const list = direction > 0 ? STEPS.filter((one) => one > zoom) : STEPS.filter((one) => one < zoom).reverse();
  if (list.length) apply(list[0]);
}

function fit() {
  apply(1);
  const box = graph();
  const needed = Math.max(box.scrollWidth / box.clientWidth, box.scrollHeight / box.clientHeight, 1);
  apply(Math.max(Math.floor(100 / needed) / 100, STEPS[0]));
}

const nodes = () => [...graph().querySelectorAll("[data-node]")];

function focus(node) {
  if (!node) return;
  nodes().forEach((one) => { one.tabIndex = one === node ? 0 : -1; });
  node.focus();
  node.scrollIntoView({ block: "nearest", inline: "nearest" });
}

const named = (key) => graph().querySelector(`[data-node="${CSS.escape(key)}"]`);

// Along an edge; where none leads on, to the nearest node of the next rank.
function along(node, name, direction) {
  const linked = (node?.dataset[name] || "").split(" ").filter(Boolean).map(named).find(Boolean);
  return linked || nearest(node, (from, to) => [(to.left - from.left) * direction, Math.abs(to.top - from.top)]);
}

function beside(node, direction) {
  return nearest(node, (from, to) => (Math.abs(to.left - from.left) < 8 ? [(to.top - from.top) * direction, 0] : [0, 0]));
}

function nearest(node, distance) {
  const from = node.getBoundingClientRect();
  return nodes()
    .map((one) => [one, ...distance(from, one.getBoundingClientRect())])
    .filter(([, ahead]) => ahead > 4)
    .sort((a, b) => a[1] - b[1] || a[2] - b[2])[0]?.[0];
}

function nextWaiting(node) {
  const waiting = nodes().filter((one) => "waits" in one.dataset);
  return waiting[(waiting.indexOf(node) + 1) % waiting.length];
}

function phasesOrSteps() {
  const phases = document.querySelector("[data-graph-phases]");
  (phases?.hasAttribute("aria-current") ? document.querySelector("[data-graph-steps]") : phases)?.click();
}

document.addEventListener("click", (event) => {
  const tool = event.target.closest("[data-graph-tool]");
  if (!tool || !graph()) return;
  if (tool.dataset.graphTool === "fit") fit();
  else by(tool.dataset.graphTool === "in" ? 1 : -1);
});

document.addEventListener("keydown", (event) => {
  const box = event.target.closest?.("[data-graph]");
  if (!box || event.ctrlKey || event.metaKey || event.altKey) return;
  const node = event.target.closest("[data-node]");
  const walk = node && {
    ArrowRight: () => focus(along(node, "next", 1)),
    ArrowLeft: () => focus(along(node, "previous", -1)),
    ArrowDown: () => focus(beside(node, 1)),
    ArrowUp: () => focus(beside(node, -1)),
    " ": () => node.click(),
  };
  const moves = {
    ...walk, "+": () => by(1), "=": () => by(1), "-": () => by(-1), f: fit, p: phasesOrSteps,
    t: () => document.querySelector("[data-graph-table]")?.click(), "]": () => focus(nextWaiting(node)),
  };
  if (!moves[event.key]) return;
  event.preventDefault();
  moves[event.key]();
});

document.addEventListener("fragment-replaced", (event) => {
  if (zoom !== 1 && graph()?.contains(event.target) && !event.target.matches("[data-node]")) apply(zoom);
});
