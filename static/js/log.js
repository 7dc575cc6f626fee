// The live log follows its end; scrolling up pauses it and says how much came since.
const words = document.getElementById("words")?.dataset;
const box = document.querySelector("[data-log]");
const button = document.querySelector("[data-log-follow]");
const NEAR_END_PX = 24;
const KEEP_LINES = 2000;
let follows = true;
let missed = 0;
let busy = false;
let again = false;

function show() {
  if (!button) return;
  button.setAttribute("aria-pressed", String(follows));
  button.querySelector("span").textContent = follows ? words.following : words.paused.replace("{n}", missed);
}

function toEnd() {
  box.scrollTop = box.scrollHeight;
}

function filter() {
  const text = (document.querySelector("[data-log-search]")?.value || "").toLowerCase();
  const step = document.querySelector("[data-log-step]")?.value || "";
  const isOn = Boolean(text || step);
  box.toggleAttribute("data-filtering", isOn);
  box.querySelectorAll(".log-line").forEach((line) => {
    const hit = (!text || line.textContent.toLowerCase().includes(text)) && (!step || line.dataset.step === step);
    line.classList.toggle("is-hit", isOn && hit);
  });
}

async function more() {
  if (busy) {
    again = true;
    return;
  }
  busy = true;
  again = false;
  try {
    const address = new URL(box.dataset.logUrl, location.href);
    if (box.dataset.logAfter) address.searchParams.set("after", box.dataset.logAfter);
    const answer = await fetch(address, { headers: { "HX-Request": "true" } });
    if (answer.ok && !answer.redirected) {
      box.dataset.logAfter = answer.headers.get("X-Log-After") || box.dataset.logAfter || "";
      const piece = document.createElement("template");
      piece.innerHTML = (await answer.text()).trim();
      const lines = piece.content.querySelectorAll(".log-line");
      if (lines.length) box.querySelector(".log-empty")?.remove();
      box.append(...lines);
      while (follows && box.childElementCount > KEEP_LINES) box.firstElementChild.remove();
      if (follows) toEnd();
      else missed += lines.length;
      filter();
      show();
      if (answer.headers.get("X-Log-More")) again = true;
    }
  } catch {
    // The connection's own indicator tells; the next hint asks again.
  } finally {
    busy = false;
    if (again) more();
  }
}

if (box) {
  toEnd();
  box.addEventListener("scroll", () => {
    const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END_PX;
    if (atEnd === follows) return;
    follows = atEnd;
    missed = 0;
    show();
  });
  button?.addEventListener("click", () => {
    follows = !follows;
    missed = 0;
    if (follows) toEnd();
    show();
  });
  document.addEventListener("input", (event) => {
    if (event.target.matches("[data-log-search], [data-log-step]")) filter();
  });
  document.body.addEventListener("topic-changed", (event) => {
    if (box.dataset.logUrl && box.dataset.logTopic.split(" ").includes(event.detail.topic)) more();
  });
  document.body.addEventListener("catch-up", () => { if (box.dataset.logUrl) more(); });
}
