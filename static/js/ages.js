// Ages grow while the page stands: "12 min" becomes "13 min" without asking the server.
const words = document.getElementById("words")?.dataset;
const EVERY_MS = 20000;

function short(seconds) {
  if (seconds >= 86400) return words.days.replace("{n}", Math.floor(seconds / 86400));
  if (seconds >= 3600) return words.hours.replace("{n}", Math.floor(seconds / 3600));
  if (seconds >= 60) return words.minutes.replace("{n}", Math.floor(seconds / 60));
  return words.seconds.replace("{n}", Math.floor(seconds));
}

function long(seconds) {
  if (seconds < 3600 || seconds >= 86400) return short(seconds);
  const minutes = String(Math.floor(seconds / 60) % 60).padStart(2, "0");
  return `${words.hours.replace("{n}", Math.floor(seconds / 3600))} ${words.minutes.replace("{n}", minutes)}`;
}

if (words) {
  setInterval(() => {
    document.querySelectorAll("time[data-age]").forEach((element) => {
      const seconds = Math.max((Date.now() - Date.parse(element.dateTime)) / 1000, 0);
      const text = element.dataset.age === "length" ? long(seconds) : short(seconds);
      if (element.textContent !== text) element.textContent = text;
    });
  }, EVERY_MS);
}
