"""Verdicts over the page's own form: with script and without, refused, repeated, asked again."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from orchestration.models import Decision, DecisionView
from orchestration.services.inbox import decision_digest, open_decision, withdraw_open
from orchestration.services.work import SYSTEM, unit_of_work
from orchestration.states import DecisionKind, TaskStatus
from tests.dashboard.conftest import PATCH, Waiting, verdict_form
from tests.factories import child, decide, drive, fresh

SCRIPT = {"HX-Request": "true"}
BROKEN_PATCH = f"{PATCH}@@ -9 +9 @@\n-a\n"


class FormReader(HTMLParser):
    """Reads the verdict form of a page as a browser without script would send it."""

    def __init__(self) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self.action = ""
        self.verdicts: dict[str, str] = {}
        self.in_form = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.in_form = "data-verdict-form" in held or "dialog--page" in held.get("class", "")
            self.action = held["action"] if self.in_form else self.action
        elif self.in_form and tag in ("input", "textarea") and held.get("name"):
            self.fields[held["name"]] = held.get("value", "")
        elif self.in_form and tag == "button" and held.get("name") == "verdict":
            self.verdicts[held["value"]] = held.get("aria-describedby", "")

    def handle_endtag(self, tag: str) -> None:
        self.in_form = self.in_form and tag != "form"


def read_form(answer: Any) -> FormReader:
    reader = FormReader()
    reader.feed(answer.content.decode())
    return reader


def send(client: Client, held: Waiting | Decision, verdict: str, **rest: str) -> Any:
    """Send a verdict as the page's script does."""
    decision = held.decision if isinstance(held, Waiting) else held
    url = reverse("dashboard:decide", args=[decision.pk])
    return client.post(url, verdict_form(decision, verdict, **rest), headers=SCRIPT)


# --- Without script -------------------------------------------------------------------------------


def test_decision_page_is_one_form_with_what_is_signed(
    waiting: Waiting, sir_client: Client
) -> None:
    decision = waiting.decision
    answer = sir_client.get(reverse("dashboard:decision", args=[decision.pk]))
    form = read_form(answer)
    assert form.fields["version"] == str(decision.version)
    assert form.fields["digest"] == decision.digest
    assert list(form.verdicts) == ["approve", "request_changes", "accept_as_is", "reject"]
    assert all(
        f'id="{described}"'.encode() in answer.content for described in form.verdicts.values()
    )
    assert b"Spell the <code>greeting</code> right." in answer.content


def test_approving_without_script_leads_to_the_closed_card_and_the_work_goes_on(
    waiting: Waiting, sir_client: Client
) -> None:
    page = sir_client.get(reverse("dashboard:decision", args=[waiting.decision.pk]))
    form = read_form(page)
    answer = sir_client.post(form.action, {**form.fields, "verdict": "approve"})
    assert answer.status_code == 303
    card = sir_client.get(answer["Location"])
    assert b"Approved by sir" in card.content
    assert read_form(card).verdicts == {}
    drive(waiting.project)
    assert fresh(waiting.root).status == TaskStatus.DONE


def test_destructive_verdict_without_script_is_asked_once_more_by_post(
    waiting: Waiting, sir_client: Client
) -> None:
    form = read_form(sir_client.get(reverse("dashboard:decision", args=[waiting.decision.pk])))
    sent = {**form.fields, "verdict": "reject", "reason": "not like this"}
    question = sir_client.post(form.action, sent)
    assert question.status_code == 200
    assert b"Reject step 2?" in question.content
    assert b"There is no undo" in question.content
    assert waiting.decision.status == "open"
    again = read_form(question)
    assert again.fields["reason"] == "not like this"
    assert sir_client.post(again.action, again.fields).status_code == 303
    assert child(waiting.root, "2").status == TaskStatus.FAILED


def test_reason_that_is_missing_is_asked_for_beside_the_box(
    waiting: Waiting, sir_client: Client
) -> None:
    form = read_form(sir_client.get(reverse("dashboard:decision", args=[waiting.decision.pk])))
    answer = sir_client.post(form.action, {**form.fields, "verdict": "request_changes"})
    assert answer.status_code == 422
    assert b"This verdict needs a reason." in answer.content
    assert read_form(answer).fields["digest"] == form.fields["digest"]


# --- With script ----------------------------------------------------------------------------------


def test_verdict_by_script_answers_with_the_card_in_the_docks_place(
    waiting: Waiting, sir_client: Client
) -> None:
    decision = waiting.decision
    answer = send(sir_client, waiting, "approve")
    assert answer.status_code == 200
    assert f'id="dock-{decision.pk}"'.encode() in answer.content
    assert b'data-outcome="Approved. Fix round 1 of 3 starts."' in answer.content
    assert b"<html" not in answer.content


@pytest.mark.parametrize(
    ("verdict", "state"),
    [("request_changes", "reproposing"), ("accept_as_is", "accepted_as_is")],
)
def test_verdicts_with_a_reason_do_what_they_say(
    verdict: str, state: str, waiting: Waiting, sir_client: Client
) -> None:
    defect = waiting.decision.defect
    assert defect is not None
    assert send(sir_client, waiting, verdict, reason="because").status_code == 200
    defect.refresh_from_db()
    assert defect.status == state


def test_identical_repeat_is_answered_like_the_first(waiting: Waiting, sir_client: Client) -> None:
    decision = waiting.decision
    first = send(sir_client, decision, "approve")
    again = send(sir_client, decision, "approve")
    assert (first.status_code, again.status_code) == (200, 200)


def test_second_verdict_is_409_with_the_one_that_stands(
    waiting: Waiting, sir_client: Client
) -> None:
    decision = waiting.decision
    decide(decision, "approve")
    answer = send(sir_client, decision, "reject", reason="no", confirmed="1")
    assert answer.status_code == 409
    assert b'role="alert"' in answer.content
    assert "“Approved” by sir".encode() in answer.content


def test_old_version_is_412_and_keeps_the_text(waiting: Waiting, sir_client: Client) -> None:
    url = reverse("dashboard:decide", args=[waiting.decision.pk])
    sent = verdict_form(waiting.decision, "request_changes", reason="my words", version="99")
    answer = sir_client.post(url, sent, headers=SCRIPT)
    assert answer.status_code == 412
    assert b'role="alert"' in answer.content
    assert b"my words" in answer.content
    assert waiting.decision.status == "open"


def test_changed_item_leads_to_its_successor_and_the_words_travel(
    waiting: Waiting, sir: User, sir_client: Client
) -> None:
    old = waiting.decision
    with unit_of_work(SYSTEM) as work:
        new = open_decision(
            work, kind=DecisionKind.MEDIUM_DEFECT, project=old.project, task=old.task,
            defect=old.defect, title=old.title, question="Apply another fix?",
            content={**old.content, "fix": {"description": "another"}},
        )  # fmt: skip
    answer = send(sir_client, old, "request_changes", reason="typed before it changed")
    assert answer.status_code == 409
    assert b"This item changed while you read it." in answer.content
    assert f'href="/inbox/{new.pk}/"'.encode() in answer.content
    assert DecisionView.objects.get(decision=new, user=sir).draft == "typed before it changed"


def test_withdrawn_item_shows_a_closed_card(waiting: Waiting, sir_client: Client) -> None:
    old = waiting.decision
    with unit_of_work(SYSTEM) as work:
        withdraw_open(work, [waiting.step.pk], why="task ended")
    page = sir_client.get(reverse("dashboard:decision", args=[old.pk]))
    assert b"Its task ended." in page.content
    assert read_form(page).verdicts == {}
    assert send(sir_client, old, "approve").status_code == 409


@pytest.mark.parametrize(
    "sent",
    [
        {}, {"verdict": "approve"}, {"verdict": "approve", "version": "1"},
        {"verdict": "approve", "version": "one", "digest": "x"},
        {"verdict": "explode", "version": "1", "digest": "x", "reason": "y"},
    ],
)  # fmt: skip
def test_form_that_does_not_say_what_is_signed_signs_nothing(
    sent: dict[str, str], waiting: Waiting, sir_client: Client
) -> None:
    url = reverse("dashboard:decide", args=[waiting.decision.pk])
    assert sir_client.post(url, sent).status_code in (412, 422)
    assert waiting.decision.status == "open"


def test_form_from_elsewhere_is_refused(waiting: Waiting, sir: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(sir)
    url = reverse("dashboard:decide", args=[waiting.decision.pk])
    assert client.post(url, verdict_form(waiting.decision, "approve")).status_code == 403
    assert waiting.decision.status == "open"


def test_fix_that_cannot_be_shown_whole_cannot_be_approved_on_the_page(
    waiting: Waiting, sir_client: Client
) -> None:
    decision = waiting.decision
    content = {**decision.content, "fix": {"description": "odd", "patch": BROKEN_PATCH}}
    digest = decision_digest(decision.question, content, decision.options)
    Decision.objects.filter(pk=decision.pk).update(content=content, digest=digest)
    answer = sir_client.get(reverse("dashboard:decision", args=[decision.pk]))
    assert b"cannot be shown whole" in answer.content
    form = answer.content.decode().split('value="approve"', 1)[1].split(">", 1)[0]
    assert "disabled" in form
    assert b"@@ -9 +9 @@" in answer.content
    assert send(sir_client, waiting, "approve").status_code == 422
    assert waiting.decision.status == "open"


# --- Drafts and seen ------------------------------------------------------------------------------


def test_draft_is_kept_and_shown_again(waiting: Waiting, sir: User, sir_client: Client) -> None:
    url = reverse("dashboard:decision_draft", args=[waiting.decision.pk])
    answer = sir_client.put(url, {"text": "half a thought"}, content_type="application/json")
    assert answer.status_code == 204
    page = sir_client.get(reverse("dashboard:decision", args=[waiting.decision.pk]))
    assert b">half a thought</textarea>" in page.content


@pytest.mark.parametrize("body", ["", "[]", "{", '{"text": 3}', '{"words": "x"}'])
def test_malformed_draft_is_422(body: str, waiting: Waiting, sir_client: Client) -> None:
    url = reverse("dashboard:decision_draft", args=[waiting.decision.pk])
    assert sir_client.put(url, body, content_type="application/json").status_code == 422


def test_page_marks_its_item_as_seen_and_the_prefetched_pane_does_not(
    waiting: Waiting, sir: User, sir_client: Client
) -> None:
    decision = waiting.decision
    sir_client.get(reverse("dashboard:decision_pane", args=[decision.pk]))
    sir_client.head(reverse("dashboard:decision", args=[decision.pk]))
    assert not DecisionView.objects.filter(seen_at__isnull=False).exists()
    sir_client.get(reverse("dashboard:decision", args=[decision.pk]))
    assert DecisionView.objects.get(decision=decision, user=sir).seen_at is not None


def test_script_says_when_a_pane_was_seen(waiting: Waiting, viewer_client: Client) -> None:
    url = reverse("dashboard:decision_seen", args=[waiting.decision.pk])
    assert viewer_client.post(url).status_code == 204
    assert DecisionView.objects.filter(seen_at__isnull=False).count() == 1


# --- The dock as a fragment -----------------------------------------------------------------------


def test_dock_becomes_the_closed_card_when_decided_elsewhere(
    waiting: Waiting, sir_client: Client
) -> None:
    decision = waiting.decision
    url = reverse("dashboard:decision_dock", args=[decision.pk])
    before = sir_client.get(url)
    assert f'data-version="{decision.version}"'.encode() in before.content
    decide(decision, "approve")
    after = sir_client.get(url)
    assert b"Approved by sir" in after.content
    assert b"data-version" not in after.content
