// A step that ended draws its edges as met, and what waits for it says anew what it still needs.
document.addEventListener("fragment-replaced", ({ target: node }) => {
  const graph = node.matches("[data-node]") && node.closest("[data-graph]");
  if (!graph) return;
  const isMet = "finished" in node.dataset;
  const edges = graph.querySelectorAll(`[data-from="${CSS.escape(node.dataset.node)}"]:not([data-blocks]) > path`);
  const changed = [...edges].filter((path) => path.classList.contains(`${path.classList[0]}--met`) !== isMet);
  changed.forEach((path) => {
    const [kind] = path.classList;
    path.setAttribute("class", `${kind} ${kind}--${isMet ? "met" : "open"}`);
  });
  if (!changed.length) return;
  node.dataset.next.split(" ").filter(Boolean).forEach((key) => {
    const topic = graph.querySelector(`[data-node="${CSS.escape(key)}"]`)?.dataset.topic;
    if (topic) document.body.dispatchEvent(new CustomEvent("topic-changed", { detail: { topic } }));
  });
});
