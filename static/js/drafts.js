// What is typed and not sent survives reload, swap and reconnect: in the browser at once, on the
// server after a pause of one second when the page gives an address. The page that answers a sent
// form names its draft in a cookie, so that a refused or lost one is kept.
const words = document.getElementById("words")?.dataset;
const PAUSE_MS = 1000;
const SENT = /(?:^|; )draft_sent=([^;]*)/;
const timers = new WeakMap();

function key(field) {
  return `draft:${document.body.dataset.user || ""}:${field.dataset.draft}`;
}

function token() {
  return JSON.parse(document.body.getAttribute("hx-headers") || "{}")["X-CSRFToken"] || "";
}

function note(field, text) {
  const form = field.closest("form");
  const place = form?.querySelector("[data-draft-note]");
  if (place) place.textContent = text;
}

async function keepOnServer(field) {
  if (!field.dataset.draftUrl) return true;
  try {
    const answer = await fetch(field.dataset.draftUrl, {
      method: "PUT",
      headers: { "Content-Type": "application/json", "X-CSRFToken": token() },
      body: JSON.stringify({ text: field.value }),
    });
    return answer.ok;
  } catch {
    return false;
  }
}

function restore(root) {
  root.querySelectorAll("textarea[data-draft]").forEach((field) => {
    const kept = localStorage.getItem(key(field));
    const carried = sessionStorage.getItem("carried-reason");
    if (field.value === "" && kept) field.value = kept;
    if (field.value === "" && carried) {
      field.value = carried;
      sessionStorage.removeItem("carried-reason");
    }
  });
}

function forgetSent() {
  const sent = SENT.exec(document.cookie)?.[1];
  if (!sent) return;
  localStorage.removeItem(`draft:${document.body.dataset.user || ""}:${sent}`);
  document.cookie = "draft_sent=; path=/; max-age=0; samesite=lax";
}

document.addEventListener("input", (event) => {
  const field = event.target;
  if (!field.matches?.("textarea[data-draft]")) return;
  if (field.value) localStorage.setItem(key(field), field.value);
  else localStorage.removeItem(key(field));
  note(field, "");
  clearTimeout(timers.get(field));
  timers.set(field, setTimeout(async () => {
    await keepOnServer(field);
    note(field, field.value ? words.draftSaved : "");
  }, PAUSE_MS));
});

document.addEventListener("verdict-signed", (event) => {
  localStorage.removeItem(`draft:${document.body.dataset.user || ""}:${event.detail.id}`);
});

document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-carry-reason]");
  if (!link) return;
  const kept = localStorage.getItem(`draft:${document.body.dataset.user || ""}:${link.dataset.carryReason}`);
  if (kept) sessionStorage.setItem("carried-reason", kept);
});

document.addEventListener("fragment-replaced", (event) => restore(event.target.parentElement || document));
document.addEventListener("pane-loaded", () => restore(document));
forgetSent();
restore(document);
