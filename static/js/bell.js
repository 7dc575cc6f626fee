// The browser's own notifications, for P0 items only and after a click that allowed them. Opening
// one shows its card; it never decides.
const KEY = "countersign-browser-notices";
const SHOWN = "countersign-shown-notices";
const KEPT = 50;
const isKnown = "Notification" in window && window.isSecureContext;

function read(key) {
  try {
    return localStorage.getItem(key) || "";
  } catch {
    return "";
  }
}

function write(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // A browser that keeps nothing shows an item again after a reload, at most.
  }
}

function isOn() {
  return isKnown && Notification.permission === "granted" && read(KEY) === "on";
}

function tell(bell) {
  const urgent = JSON.parse(bell.dataset.urgent || "[]");
  if (!isOn()) return;
  const shown = read(SHOWN).split(",").filter(Boolean);
  urgent.filter((one) => !shown.includes(String(one.id))).forEach((one) => {
    shown.push(String(one.id));
    const notice = new Notification(one.title, { body: one.text, tag: `countersign-${one.id}` });
    notice.addEventListener("click", () => {
      window.focus();
      location.assign(one.url);
    });
  });
  write(SHOWN, shown.slice(-KEPT).join(","));
}

function say(box) {
  const { on, off, denied, none } = box.dataset;
  const isDenied = isKnown && Notification.permission === "denied";
  box.querySelector("p").textContent = isOn() ? on : !isKnown ? none : isDenied ? denied : off;
  box.querySelector("[data-allow]").hidden = !isKnown || isDenied || isOn();
  box.querySelector("[data-stop]").hidden = !isOn();
}

const box = document.querySelector("[data-browser-notices]");
if (box) {
  say(box);
  box.addEventListener("click", async (event) => {
    if (event.target.closest("[data-stop]")) write(KEY, "off");
    else if (event.target.closest("[data-allow]")) {
      if ((await Notification.requestPermission()) === "granted") write(KEY, "on");
    } else return;
    say(box);
  });
}

document.addEventListener("fragment-replaced", (event) => {
  if (event.target.id === "bell") tell(event.target);
});

// What is urgent already when the page opens; later changes come with the fragment.
const bell = document.getElementById("bell");
if (bell && isOn()) {
  fetch(bell.dataset.fragment, { headers: { "HX-Request": "true" } }).then(async (answer) => {
    if (!answer.ok || answer.redirected) return;
    const held = document.createElement("template");
    held.innerHTML = await answer.text();
    const fresh = held.content.querySelector("#bell");
    if (fresh) tell(fresh);
  }).catch(() => {});
}
