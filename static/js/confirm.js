// The second question for destructive verdicts: full consequences and the reason, once more.
// Without script the server asks it on a page of its own.
const dialog = document.getElementById("confirm");
let asked = null;

function fill(form, button) {
  dialog.querySelector("[data-confirm-title]").textContent = button.dataset.title;
  const sentences = form.querySelector(`[data-sentences="${CSS.escape(button.value)}"]`);
  dialog.querySelector("[data-confirm-list]").replaceChildren(
    ...[...sentences.children].map((line) => line.cloneNode(true)),
  );
  const reason = form.querySelector("textarea[name=reason]").value.trim();
  const place = dialog.querySelector("[data-confirm-reason]");
  place.hidden = !reason;
  place.querySelector(".dialog-reason").textContent = reason;
  dialog.querySelector("[data-confirm-sign]").textContent = button.dataset.sign;
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  const button = event.submitter;
  if (!dialog || !form.matches("[data-verdict-form]")) return;
  if (!button?.hasAttribute("data-destructive") || form.elements.confirmed.value === "1") return;
  event.preventDefault();
  event.stopImmediatePropagation();
  asked = { form, button };
  fill(form, button);
  dialog.showModal();
  dialog.querySelector("[data-confirm-back]").focus();
}, true);

if (dialog) {
  dialog.querySelector("[data-confirm-back]").addEventListener("click", () => dialog.close());
  dialog.querySelector("[data-confirm-sign]").addEventListener("click", () => {
    const { form, button } = asked;
    dialog.close();
    if (!form.isConnected) return;
    form.elements.confirmed.value = "1";
    form.requestSubmit(button);
    form.elements.confirmed.value = "";
  });
}
