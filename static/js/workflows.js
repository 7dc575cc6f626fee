// A workflow of the list: its command goes to the start of the message, in place of another one.
const COMMAND = /^\s*\/[A-Za-z][\w-]*\s*/;

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("button[data-workflow]");
  const field = document.getElementById("text");
  if (!button || !field) return;
  field.value = button.dataset.workflow + field.value.replace(COMMAND, "");
  field.dispatchEvent(new Event("input", { bubbles: true }));
  field.focus();
  field.setSelectionRange(field.value.length, field.value.length);
});
