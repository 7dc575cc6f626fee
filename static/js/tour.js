// The first-run tour: one step at a time, in the rail; it rings what it speaks of and covers nothing.
const YEARS = 315360000;
const tour = document.querySelector("[data-tour]");
const steps = tour ? [...tour.querySelectorAll("[data-tour-step]")] : [];
const place = tour?.querySelector("[data-tour-place]");
const next = tour?.querySelector("[data-tour-next]");
let at = 0;

function ring(step) {
  document.querySelectorAll(".tour-target").forEach((one) => one.classList.remove("tour-target"));
  if (!step) return;
  const targets = [...document.querySelectorAll(step.dataset.tourTarget)];
  targets.find((one) => one.offsetParent !== null)?.classList.add("tour-target");
}

function show() {
  steps.forEach((step, index) => { step.hidden = index !== at; });
  place.textContent = place.textContent.replace(/\d+/, String(at + 1));
  if (at === steps.length - 1) next.textContent = next.dataset.last;
  ring(steps[at]);
}

function end() {
  document.cookie = `tour=done; path=/; max-age=${YEARS}; samesite=lax`;
  ring(null);
  tour.remove();
}

if (tour) {
  tour.hidden = false;
  show();
  next.addEventListener("click", () => {
    if (at === steps.length - 1) {
      end();
      return;
    }
    at += 1;
    show();
    next.focus();
  });
  tour.querySelector("[data-tour-skip]").addEventListener("click", end);
  // The lead is swapped by news; its ring comes back with it.
  document.body.addEventListener("htmx:afterSettle", () => { if (tour.isConnected) ring(steps[at]); });
}
