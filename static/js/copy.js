// A text with a copy button: without JavaScript, or outside a secure page, the text is selected by hand.
if (navigator.clipboard) {
  document.querySelectorAll("button[data-copy]").forEach((button) => {
    button.hidden = false;
  });
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("button[data-copy]");
  if (!button || !navigator.clipboard) return;
  const source = document.getElementById(button.dataset.copy);
  await navigator.clipboard.writeText(source.textContent);
  const word = button.firstChild;
  const before = word.textContent;
  word.textContent = button.dataset.copied;
  setTimeout(() => {
    word.textContent = before;
  }, 1500);
});
