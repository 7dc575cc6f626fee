// Light or dark: a cookie that the server reads on the next page, and the attribute on this one.
const root = document.documentElement;
const YEAR_SECONDS = 31536000;

document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-theme-switch]")) return;
  const isDark = root.dataset.bsTheme
    ? root.dataset.bsTheme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  const theme = isDark ? "light" : "dark";
  root.dataset.bsTheme = theme;
  document.cookie = `theme=${theme}; path=/; max-age=${YEAR_SECONDS}; samesite=lax`;
});
