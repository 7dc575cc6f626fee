// A verdict that needs a reason focuses the box instead of sending. Ctrl+Enter signs from the box.
const words = document.getElementById("words")?.dataset;

function box(form) {
  return form.querySelector("textarea[name=reason]");
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  const button = event.submitter;
  if (!form.matches("[data-verdict-form]") || !button?.hasAttribute("data-requires-reason")) return;
  if (box(form).value.trim()) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  form.dataset.wanted = button.value;
  const error = form.querySelector("[data-reason-error]");
  error.textContent = words.reasonNeeded;
  error.hidden = false;
  box(form).focus();
}, true);

document.addEventListener("input", (event) => {
  const form = event.target.closest?.("[data-verdict-form]");
  if (form && event.target === box(form)) form.querySelector("[data-reason-error]").hidden = true;
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.isComposing) return;
  const form = event.target.closest?.("[data-verdict-form]");
  if (!form || event.target !== box(form)) return;
  event.preventDefault();
  const wanted = form.dataset.wanted;
  const button = wanted
    ? form.querySelector(`button[type=submit][value="${CSS.escape(wanted)}"]`)
    : form.querySelector("button[type=submit].btn--solid:not(:disabled)");
  if (button) form.requestSubmit(button);
});
