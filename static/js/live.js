// The page's one socket. Hints in, `topic-changed` events out; what was missed is asked for.
// The socket says {"topic", "version"}; a gap it knows of says {"catch_up": true}; {"beat": true}
// comes every ten seconds, so that a connection that died quietly is noticed. What came together is
// one {"batch": [...]}.
const host = document.getElementById("live");
const POLL_SECONDS = 10;
const LONGEST_WAIT_SECONDS = 30;
const SILENT_SECONDS = 25;
const REPAIR_SECONDS = 60;
let socket = null;
let wait = 0.5;
let poll = null, retry = null;
let heardAt = Date.now();
let position = Number(host?.dataset.position || 0);

function state(name) {
  document.body.dispatchEvent(new CustomEvent("connection", { detail: { state: name } }));
}

function hint(detail) {
  if (detail.position > position) position = detail.position;
  document.body.dispatchEvent(new CustomEvent("topic-changed", { detail }));
}

async function catchUp() {
  const url = host.dataset.changes;
  if (!url) {
    document.body.dispatchEvent(new CustomEvent("catch-up"));
    return true;
  }
  const address = new URL(url, location.href);
  address.searchParams.set("after", position);
  try {
    const answer = await fetch(address, { headers: { Accept: "application/json" } });
    if (answer.redirected) state("signed-out");
    if (!answer.ok || answer.redirected) return false;
    const changes = await answer.json();
    if (changes.reset) document.body.dispatchEvent(new CustomEvent("catch-up"));
    (changes.hints || []).forEach(hint);
    position = Math.max(position, changes.position || 0);
    return true;
  } catch {
    return false;
  }
}

function pollWhileDown() {
  if (poll) return;
  poll = setInterval(async () => {
    // A server that answers again has a socket too: it need not wait as long as it meant to.
    if (await catchUp()) { state("polled"); if (retry) connect(); }
  }, POLL_SECONDS * 1000);
}

function connect() {
  retry = clearTimeout(retry);
  const address = new URL(host.dataset.socket, location.href);
  address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  socket = new WebSocket(address);
  socket.addEventListener("open", async () => {
    wait = 0.5;
    heardAt = Date.now();
    clearInterval(poll);
    poll = null;
    state("catching");
    const mine = socket;
    await catchUp();
    if (mine === socket && mine.readyState === WebSocket.OPEN) state("live");
  });
  socket.addEventListener("message", (event) => {
    const message = JSON.parse(event.data);
    heardAt = Date.now();
    const batch = message.batch || [message];
    if (batch.some((one) => one.catch_up)) catchUp();
    batch.filter((one) => one.topic).forEach(hint);
    document.body.dispatchEvent(new CustomEvent("heard"));
  });
  socket.addEventListener("close", (event) => {
    state("offline");
    if (event.code === 4401 || event.code === 4403) return;
    pollWhileDown();
    retry = setTimeout(connect, wait * 1000 * (0.75 + Math.random() / 2));
    wait = Math.min(wait * 2, LONGEST_WAIT_SECONDS);
  });
}

if (host) {
  connect();
  setInterval(() => {
    const isOpen = socket.readyState === WebSocket.OPEN;
    if (isOpen && Date.now() - heardAt > SILENT_SECONDS * 1000) socket.close();
  }, 5000);
  // A hint is delivered at most once: what was lost on the way is repaired now and then.
  setInterval(() => { if (socket.readyState === WebSocket.OPEN) catchUp(); }, REPAIR_SECONDS * 1000);
  window.addEventListener("online", () => { wait = 0.5; if (retry) connect(); });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && socket?.readyState === WebSocket.OPEN) catchUp();
  });
}
