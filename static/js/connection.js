// The indicator: live, catching up, or how old the page is. It speaks only of the connection.
const words = document.getElementById("words")?.dataset;
const indicator = document.querySelector("[data-live-indicator]");
const banner = document.querySelector("[data-connection-banner]");
const BANNER_AFTER_SECONDS = 10;
let lastHeard = new Date();
let lostAt = null;
let announced = false;
let isSignedOut = false;

function age(seconds) {
  const n = Math.max(Math.round(seconds), 0);
  if (n < 60) return words.seconds.replace("{n}", n);
  if (n < 3600) return words.minutes.replace("{n}", Math.floor(n / 60));
  return words.hours.replace("{n}", Math.floor(n / 3600));
}

function clock(moment) {
  return moment.toTimeString().slice(0, 8);
}

function show() {
  if (!lostAt || isSignedOut) return;
  const text = words.offline.replace("{age}", age((Date.now() - lastHeard) / 1000));
  indicator.querySelector("[data-live-age]").textContent = text;
  const lost = (Date.now() - lostAt) / 1000;
  if (lost < BANNER_AFTER_SECONDS) return;
  tell(words.lost.replace("{age}", age(lost)).replace("{time}", clock(lastHeard)), false);
  if (!announced) {
    announced = true;
    document.body.dispatchEvent(new CustomEvent("announce", { bubbles: true, detail: { text } }));
  }
}

function tell(text, url) {
  banner.hidden = !text;
  banner.querySelector("p").textContent = text;
  banner.querySelector("a").hidden = !url;
}

if (indicator && words) {
  document.body.addEventListener("connection", (event) => {
    const name = event.detail.state;
    if (name === "polled") {
      lastHeard = new Date();
      show();
      return;
    }
    if (name === "signed-out") {
      isSignedOut = true;
      tell(words.signedOut, true);
      return;
    }
    indicator.dataset.connection = name;
    if (name === "offline") {
      lostAt ??= new Date();
      show();
      return;
    }
    lastHeard = new Date();
    if (name === "live") {
      lostAt = null;
      announced = false;
      isSignedOut = false;
      tell("", false);
    }
  });
  document.body.addEventListener("heard", () => { lastHeard = new Date(); });
  setInterval(show, 1000);
}
