// The one button of a choice speaks for the verdict that is chosen, as a button of its own would.
// A text that is amended shows at once what was changed in it.
const TOLD = ["sign", "title", "requiresReason", "destructive"];
const MOST_WORDS = 800;

function speak(form) {
  const chosen = form.querySelector("input[name=verdict]:checked");
  const button = form.querySelector("[data-choice-sign]");
  if (!chosen) return;
  button.value = chosen.value;
  button.setAttribute("aria-describedby", chosen.getAttribute("aria-describedby"));
  TOLD.forEach((name) => {
    if (name in chosen.dataset) button.dataset[name] = chosen.dataset[name];
    else delete button.dataset[name];
  });
}

// The longest run of words that both texts share, by a table of lengths.
function compare(before, after) {
  const sizes = Array.from({ length: before.length + 1 }, () => new Uint16Array(after.length + 1));
  for (let i = before.length - 1; i >= 0; i -= 1) {
    for (let j = after.length - 1; j >= 0; j -= 1) {
      sizes[i][j] = before[i] === after[j] ? sizes[i + 1][j + 1] + 1 : Math.max(sizes[i + 1][j], sizes[i][j + 1]);
    }
  }
  const parts = [];
  const add = (look, text) => {
    const last = parts.at(-1);
    if (last?.[0] === look) last[1] += text;
    else parts.push([look, text]);
  };
  let i = 0;
  let j = 0;
  while (i < before.length || j < after.length) {
    if (i < before.length && j < after.length && before[i] === after[j]) {
      add("", before[i]);
      i += 1;
      j += 1;
    } else if (j === after.length || (i < before.length && sizes[i + 1][j] >= sizes[i][j + 1])) {
      add("del", before[i]);
      i += 1;
    } else {
      add("ins", after[j]);
      j += 1;
    }
  }
  return parts;
}

function words(text) {
  return text.match(/[\u3400-\u9fff]|[^\s\u3400-\u9fff]+|\s+/g) || [];
}

function show(field) {
  const place = field.closest(".choice-more").querySelector("[data-text-diff]");
  const [before, after] = [words(field.defaultValue), words(field.value)];
  place.hidden = field.value === field.defaultValue || before.length * after.length > MOST_WORDS ** 2;
  if (place.hidden) return;
  place.replaceChildren(...compare(before, after).map(([look, text]) => {
    if (!look) return document.createTextNode(text);
    const part = document.createElement(look);
    part.textContent = text;
    return part;
  }));
}

document.addEventListener("change", ({ target }) => {
  if (!target.matches("[data-choice-form] input[name=verdict]")) return;
  target.focus(); // A digit chooses too, and Tab goes on from what is chosen.
  speak(target.form);
});
document.addEventListener("input", ({ target }) => {
  if (target.matches("textarea[data-compared]")) show(target);
});
document.addEventListener("fragment-replaced", () => document.querySelectorAll("[data-choice-form]").forEach(speak));
document.querySelectorAll("[data-choice-form]").forEach(speak);
document.querySelectorAll("textarea[data-compared]").forEach(show);
