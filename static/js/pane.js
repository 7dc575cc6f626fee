// The reading pane of the inbox: selecting a row loads it after 120 ms rest, the next is prefetched.
// Enter, and a press below 1024, open the decision page instead.
const REST_MS = 120;
const KEEP_MS = 20000;
const wide = matchMedia("(width >= 1024px)");
const cache = new Map();
let timer = 0;
let unread = null;

function pane() {
  return document.querySelector("[data-pane-slot]");
}

function load(url) {
  const kept = cache.get(url);
  if (kept && Date.now() - kept.at < KEEP_MS) return kept.text;
  const text = fetch(url, { headers: { "HX-Request": "true" } }).then((answer) => {
    if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
    return answer.text();
  });
  cache.set(url, { at: Date.now(), text });
  text.catch(() => cache.delete(url));
  return text;
}

async function show(row, focusTitle) {
  const link = row.querySelector("a[data-pane]");
  const slot = pane();
  if (!link || !slot) return;
  let text;
  try {
    text = await load(link.dataset.pane);
  } catch (error) {
    // Without a line the link would lead to the browser's own page, and this one be lost.
    if (error instanceof TypeError) unread = row;
    else location.assign(link.href);
    return;
  }
  if (!row.classList.contains("is-current")) return;
  slot.innerHTML = text;
  window.htmx?.process(slot);
  row.classList.remove("is-unseen");
  slot.dispatchEvent(new CustomEvent("pane-loaded", { bubbles: true, detail: { id: row.dataset.row } }));
  if (focusTitle) slot.querySelector("h1")?.focus();
  const next = row.nextElementSibling?.querySelector("a[data-pane]");
  if (next) load(next.dataset.pane);
}

function showUnread() {
  const row = unread;
  unread = null;
  if (row?.isConnected && row.classList.contains("is-current")) show(row, false);
}

window.addEventListener("online", showUnread);
document.body.addEventListener("connection", ({ detail }) => { if (detail.state === "live") showUnread(); });

document.addEventListener("row-selected", (event) => {
  const { row, now } = event.detail;
  const address = new URL(location.href);
  address.searchParams.set("item", row.dataset.row);
  history.replaceState(null, "", address);
  clearTimeout(timer);
  timer = setTimeout(() => show(row, now), now ? 0 : REST_MS);
});

document.addEventListener("click", (event) => {
  const link = event.target.closest(".row-link[data-pane]");
  if (!link || !wide.matches || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  if (event.detail === 0) return;
  event.preventDefault();
  document.dispatchEvent(new CustomEvent("select-row", { detail: { row: link.closest("[data-row]"), now: true } }));
});

// The last item has left, signed here: its card makes room.
document.addEventListener("list-emptied", async () => {
  const answer = await fetch(pane().dataset.clearUrl, { headers: { "HX-Request": "true" } }).catch(() => null);
  if (!answer?.ok || answer.redirected || document.querySelector("[data-list] [data-row]")) return;
  pane().innerHTML = await answer.text();
  pane().querySelector("h1")?.focus();
});

document.addEventListener("verdict-signed", () => cache.clear());
document.body.addEventListener("topic-changed", (event) => {
  if (event.detail.topic.startsWith("decision:") || event.detail.topic === "inbox") cache.clear();
});
