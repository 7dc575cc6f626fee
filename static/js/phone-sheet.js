// Below 768 a tap never signs: it opens a sheet with the consequences, the reason and what is signed.
const sheet = document.getElementById("verdict-sheet");
const phone = matchMedia("(width < 768px)");
let asked = null;

function part(name) {
  return sheet.querySelector(`[data-sheet-${name}]`);
}

function open(form, button) {
  asked = { form, button };
  const danger = button.hasAttribute("data-destructive");
  part("title").textContent = button.dataset.title;
  const full = form.querySelector(`[data-sentences="${CSS.escape(button.value)}"]`);
  const short = document.getElementById(button.getAttribute("aria-describedby"));
  part("list").replaceChildren(...[...(danger ? full : short).children].map((line) => line.cloneNode(true)));
  const reason = form.querySelector("textarea[name=reason]");
  part("reason").value = reason.value;
  part("reason").placeholder = reason.placeholder;
  part("error").hidden = true;
  part("sign").textContent = button.dataset.sign;
  part("sign").classList.toggle("btn--stop", danger);
  part("sign").classList.toggle("btn--solid", !danger);
  part("signed").replaceChildren(...[...form.querySelector(".signed-note").childNodes].map((node) => node.cloneNode(true)));
  sheet.showModal();
  if (button.hasAttribute("data-requires-reason")) part("reason").focus();
  else part("title").focus();
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!sheet || !phone.matches || !form.matches("[data-verdict-form]")) return;
  if (form.dataset.fromSheet === "1") return;
  event.preventDefault();
  event.stopImmediatePropagation();
  open(form, event.submitter);
}, true);

document.addEventListener("click", (event) => {
  const tap = event.target.closest("[data-taps]");
  if (!tap || !sheet) return;
  const form = document.querySelector(`[data-verdict-form="${CSS.escape(tap.dataset.for)}"]`);
  const button = form?.querySelector(`button[name=verdict][value="${CSS.escape(tap.dataset.taps)}"]`);
  if (button && !button.disabled) open(form, button);
});

if (sheet) {
  part("back").addEventListener("click", () => sheet.close());
  part("reason").addEventListener("input", () => {
    const field = asked.form.querySelector("textarea[name=reason]");
    field.value = part("reason").value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    part("error").hidden = true;
  });
  part("sign").addEventListener("click", () => {
    const { form, button } = asked;
    if (button.hasAttribute("data-requires-reason") && !part("reason").value.trim()) {
      part("error").textContent = document.getElementById("words").dataset.reasonNeeded;
      part("error").hidden = false;
      part("reason").focus();
      return;
    }
    sheet.close();
    form.dataset.fromSheet = "1";
    form.elements.confirmed.value = button.hasAttribute("data-destructive") ? "1" : "";
    form.requestSubmit(button);
    delete form.dataset.fromSheet;
    form.elements.confirmed.value = "";
  });
}
