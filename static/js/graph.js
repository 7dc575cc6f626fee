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

function nodes() {
  return [...graph().querySelectorAll("[data-node]")];
}

function focus(node) {
  if (!node) return;
  nodes().forEach((one) => { one.tabIndex = one === node ? 0 : -1; });
  node.focus();
  node.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function along(node, name) {
  const key = (node.dataset[name] || "").split(" ")[0];
  return key && graph().querySelector(`[data-node="${CSS.escape(key)}"]`);
}

function beside(node, direction) {
  const here = node.getBoundingClientRect();
  return nodes()
    .filter((one) => Math.abs(one.getBoundingClientRect().left - here.left) < 8)
    .filter((one) => (one.getBoundingClientRect().top - here.top) * direction > 4)
    .sort((a, b) => direction * (a.getBoundingClientRect().top - b.getBoundingClientRect().top))[0];
}

function nextWaiting(node) {
  const waiting = nodes().filter((one) => "waits" in one.dataset);
  return waiting[(waiting.indexOf(node) + 1) % waiting.length];
}

document.addEventListener("click", (event) => {
  const tool = event.target.closest("[data-graph-tool]");
  if (!tool || !graph()) return;
  if (tool.dataset.graphTool === "fit") fit();
  else by(tool.dataset.graphTool === "in" ? 1 : -1);
});

document.addEventListener("keydown", (event) => {
  const node = event.target.closest?.("[data-graph] [data-node]");
  if (!node || event.ctrlKey || event.metaKey || event.altKey) return;
  const moves = {
    ArrowRight: () => focus(along(node, "next")),
    ArrowLeft: () => focus(along(node, "previous")),
    ArrowDown: () => focus(beside(node, 1)),
    ArrowUp: () => focus(beside(node, -1)),
    "+": () => by(1), "=": () => by(1), "-": () => by(-1), f: fit,
    p: () => document.querySelector("[data-graph-phases]")?.click(),
    t: () => document.querySelector("[data-graph-table]")?.click(),
    "]": () => focus(nextWaiting(node)),
  };
  if (!moves[event.key]) return;
  event.preventDefault();
  moves[event.key]();
});
document.addEventListener("fragment-replaced", (event) => {
  if (event.target.closest?.("[data-graph]") && zoom !== 1) apply(zoom);
});
