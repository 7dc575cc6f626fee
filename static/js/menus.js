// Menus are <details>: a press elsewhere or Escape closes them and gives the focus back.
function close(menu, refocus) {
  menu.open = false;
  if (refocus) menu.querySelector("summary").focus();
}

document.addEventListener("click", (event) => {
  document.querySelectorAll("details.menu[open], .phone-tabs details[open]").forEach((menu) => {
    if (!menu.contains(event.target)) close(menu, false);
  });
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const menu = event.target.closest?.("details.menu[open]");
  if (!menu) return;
  event.stopPropagation();
  close(menu, true);
});
