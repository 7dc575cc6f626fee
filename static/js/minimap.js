// A small picture of a graph that does not fit its box: states as colours, the seen part as a frame.
// A press or a drag moves the box there; keys move it anyway, so nobody needs this picture.
const LARGEST = { width: 180, height: 96 };
// What hides less than this needs no picture, which would hide more.
const LITTLE = 1.15;
const ROLES = ["grey", "green", "ink", "blue", "red", "amber"];
const SVG = "http://www.w3.org/2000/svg";
let map = null;
let scale = 1;
let asked = 0;

function shape(name, attributes) {
  const made = document.createElementNS(SVG, name);
  Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
  return made;
}

// Each role is one path, so that two thousand nodes are six shapes.
function paths(box) {
  const drawn = Object.fromEntries(ROLES.map((role) => [role, ""]));
  const origin = box.getBoundingClientRect();
  const add = (node, x, y, width, height) => {
    const role = ROLES.find((one) => node.classList.contains(`node--${one}`)) || "grey";
    drawn[role] += `M${(x * scale).toFixed(1)} ${(y * scale).toFixed(1)}h${(width * scale).toFixed(1)}v${(height * scale).toFixed(1)}h-${(width * scale).toFixed(1)}z`;
  };
  box.querySelectorAll(".band-svg").forEach((drawing) => {
    const place = drawing.getBoundingClientRect();
    const zoom = place.width / drawing.dataset.width;
    const [left, top] = [place.left - origin.left + box.scrollLeft, place.top - origin.top + box.scrollTop];
    drawing.querySelectorAll("foreignObject").forEach((one) => add(
      one.firstElementChild, left + one.getAttribute("x") * zoom, top + one.getAttribute("y") * zoom,
      one.getAttribute("width") * zoom, one.getAttribute("height") * zoom,
    ));
  });
  return ROLES.filter((role) => drawn[role]).map((role) => shape("path", { class: `minimap-${role}`, d: drawn[role] }));
}

function frame(box) {
  const seen = map?.querySelector(".minimap-frame");
  if (!seen) return;
  const { scrollLeft: x, scrollTop: y, clientWidth: width, clientHeight: height } = box;
  Object.entries({ x, y, width, height }).forEach(([key, value]) => seen.setAttribute(key, value * scale));
}

function draw() {
  const box = document.querySelector("[data-graph]");
  map?.remove();
  map = null;
  if (!box || (box.scrollWidth <= box.clientWidth * LITTLE && box.scrollHeight <= box.clientHeight * LITTLE)) return;
  scale = Math.min(LARGEST.width / box.scrollWidth, LARGEST.height / box.scrollHeight);
  const [width, height] = [Math.ceil(box.scrollWidth * scale), Math.ceil(box.scrollHeight * scale)];
  map = shape("svg", { class: "minimap", width, height, "aria-hidden": "true" });
  map.append(...paths(box), shape("rect", { class: "minimap-frame" }));
  map.addEventListener("pointerdown", (event) => { map.setPointerCapture(event.pointerId); go(event); });
  map.addEventListener("pointermove", (event) => { if (event.buttons) go(event); });
  box.parentElement.after(map);
  frame(box);
}

function go(event) {
  const box = document.querySelector("[data-graph]");
  const place = map.getBoundingClientRect();
  box.scrollTo(
    (event.clientX - place.left) / scale - box.clientWidth / 2,
    (event.clientY - place.top) / scale - box.clientHeight / 2,
  );
}

function soon() {
  cancelAnimationFrame(asked);
  asked = requestAnimationFrame(draw);
}

document.addEventListener("scroll", (event) => { if (event.target.matches?.("[data-graph]")) frame(event.target); }, true);
document.addEventListener("graph-drawn", soon);
document.addEventListener("fragment-replaced", (event) => {
  if (event.target.matches("#graph-slot, .band, .past") || event.target.closest("[data-graph]")) soon();
});
window.addEventListener("resize", soon);
soon();
