// Send a verdict. In the list the row says so and the selection moves on; on its own page the dock
// is replaced by the card that stands. What was not signed says "Not signed" and keeps the text.
const words = document.getElementById("words")?.dataset;
const LEAVE_AFTER_MS = 1500;
const TELL_MS = 6000;

function announce(text, urgent) {
  document.body.dispatchEvent(new CustomEvent("announce", { bubbles: true, detail: { text, urgent } }));
}

function travel(row, state, note) {
  if (!row) return;
  row.classList.remove("is-signing", "is-signed", "is-refused", "is-changed");
  row.classList.add(`is-${state}`);
  const where = row.querySelector(".row-where, .row-note");
  where.dataset.before ??= where.textContent;
  where.className = "row-note";
  where.textContent = note;
  row.querySelector(".row-blocks")?.remove();
}

function putBack(row) {
  if (!row) return;
  const note = row.querySelector(".row-note");
  row.classList.remove("is-signing");
  row.classList.add("is-refused");
  note.textContent = words.notSigned;
}

function leave(row) {
  setTimeout(() => {
    const group = row.closest("[data-group]");
    row.remove();
    if (group && !group.querySelector("[data-row]")) group.remove();
    if (!document.querySelector("[data-list] [data-row]")) document.dispatchEvent(new CustomEvent("list-emptied"));
  }, LEAVE_AFTER_MS);
}

// What another closed leaves the list too, but not before it was read that this verdict does not stand.
function tell(row) {
  row?.classList.add("is-told");
  setTimeout(() => row?.classList.remove("is-told"), TELL_MS);
}

async function send(form, button) {
  const body = new FormData(form, button);
  const id = form.dataset.verdictForm;
  const row = document.getElementById(`row-${id}`);
  const dock = form.closest("[data-dock]");
  form.setAttribute("aria-busy", "true");
  travel(row, "signing", words.signing.replace("{verdict}", button.dataset.sign.split(/[:：]\s*/).pop()));
  if (row) document.dispatchEvent(new CustomEvent("verdict-sent", { detail: { id } }));
  let answer;
  try {
    answer = await fetch(form.action, { method: "POST", body, headers: { "HX-Request": "true" } });
    if (answer.status >= 500) throw new Error(String(answer.status));
  } catch {
    form.removeAttribute("aria-busy");
    putBack(row);
    const error = form.querySelector("[data-reason-error]");
    error.textContent = words.notSigned;
    error.hidden = false;
    announce(words.notSigned, true);
    return;
  }
  form.removeAttribute("aria-busy");
  const box = document.createElement("template");
  box.innerHTML = (await answer.text()).trim();
  const fresh = box.content.firstElementChild;
  const outcome = fresh?.matches("[data-outcome]") ? fresh : fresh?.querySelector("[data-outcome]");
  const text = outcome?.dataset.outcome || fresh?.querySelector("[role=alert]")?.textContent.trim() || "";
  if (answer.ok) {
    travel(row, "signed", text);
    document.dispatchEvent(new CustomEvent("verdict-signed", { detail: { id } }));
    if (row) leave(row);
  } else {
    travel(row, answer.status === 412 ? "changed" : "refused", text);
    tell(row);
  }
  announce(text, !answer.ok);
  if (dock?.isConnected && fresh) dock.replaceWith(fresh);
  fresh?.dispatchEvent(new CustomEvent("fragment-replaced", { bubbles: true }));
}

document.addEventListener("submit", (event) => {
  if (!event.target.matches("[data-verdict-form]") || event.defaultPrevented) return;
  event.preventDefault();
  if (event.target.getAttribute("aria-busy") !== "true") send(event.target, event.submitter);
}, true);
