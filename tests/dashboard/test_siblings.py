"""Reject an item and those beside it with one message: each by its own version, none in silence."""

from __future__ import annotations

import re

from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from orchestration.models import AuditEvent, Decision, Project
from orchestration.states import DecisionKind
from tests.dashboard.conftest import make_waiting
from tests.dashboard.kinds import ask
from tests.factories import agent_step, child, decide, drive, new_project, step, submit_plan

HIDDEN = re.compile(r'<input type="hidden" name="((?:version|digest)-\d+)" value="(\w+)"')
RED = "删除生产数据库"
REASON = "The whole approach is wrong"


def ask_beside(slug: str = "asks") -> list[Decision]:
    """A question and a clarification on sibling steps, a stop beside them, and another root's."""
    project = new_project(slug)
    root = submit_plan(project, *(agent_step(str(n)) for n in range(1, 5)))
    other = submit_plan(project, agent_step("1"), text="Another root")
    drive(project)
    kinds = (DecisionKind.WAITING_HUMAN, DecisionKind.CLARIFICATION, DecisionKind.MAX_RETRIES)
    rows = [ask(kind, project, child(root, str(n))) for n, kind in enumerate(kinds, start=1)]
    return [*rows, ask(DecisionKind.WAITING_HUMAN, project, other)]


def failing_steps(project: Project, count: int) -> list[Decision]:
    """Medium defects on sibling steps, by the engine itself."""
    medium = {"severity": "medium"}
    keys = [str(n) for n in range(1, count + 1)]
    submit_plan(project, *(step(key, run=["false"], on_failure=medium) for key in keys))
    drive(project)
    return list(Decision.objects.filter(project=project, status="open").order_by("pk"))


def shown_on(client: Client, subject: Decision) -> dict[str, str]:
    """What the page carries of each item, as a person without script would send it."""
    page = client.get(reverse("dashboard:siblings", args=[subject.pk])).content.decode()
    return dict(HIDDEN.findall(page))


def test_every_card_that_can_be_rejected_leads_there_and_no_stop_does(
    sir: User, sir_client: Client
) -> None:
    question, clarification, stop, _other = ask_beside()
    for row in (question, clarification):
        page = sir_client.get(reverse("dashboard:decision", args=[row.pk])).content.decode()
        assert f'href="/inbox/{row.pk}/siblings/"' in page, row.kind
    page = sir_client.get(reverse("dashboard:decision", args=[stop.pk])).content.decode()
    assert "/siblings/" not in page
    assert sir_client.get(reverse("dashboard:siblings", args=[stop.pk])).status_code == 303


def test_page_shows_the_siblings_and_nothing_of_other_roots(sir: User, sir_client: Client) -> None:
    question, clarification, _stop, _other = ask_beside()
    shown = shown_on(sir_client, question)
    assert shown == {
        f"version-{question.pk}": "1", f"digest-{question.pk}": question.digest,
        f"version-{clarification.pk}": "1", f"digest-{clarification.pk}": clarification.digest,
    }  # fmt: skip


def test_second_question_names_how_many_and_decides_nothing(sir: User, sir_client: Client) -> None:
    question, *_rest = ask_beside()
    url = reverse("dashboard:siblings", args=[question.pk])
    shown = shown_on(sir_client, question)
    before = AuditEvent.objects.count()
    assert sir_client.post(url, shown | {"reason": " ", "confirmed": "1"}).status_code == 422
    asked = sir_client.post(url, shown | {"reason": REASON}).content.decode()
    assert "<h1>Reject 2 items?</h1>" in asked
    assert "Sign: reject 2 items" in asked
    assert dict(HIDDEN.findall(asked)) == shown
    assert AuditEvent.objects.count() == before


def test_each_is_rejected_by_its_own_kind_and_all_get_the_message(
    sir: User, sir_client: Client
) -> None:
    project = new_project("roots")
    submit_plan(project, agent_step("1"), text=RED)
    submit_plan(project, step("1", run=["nc -z host 22"]), is_trusted=False)
    drive(project)
    red_line, commands = Decision.objects.filter(project=project).order_by("pk")
    sent = shown_on(sir_client, red_line) | {"reason": REASON, "confirmed": "1"}
    answer = sir_client.post(reverse("dashboard:siblings", args=[red_line.pk]), sent)
    assert "2 of 2 signed" in answer.content.decode()
    rows = Decision.objects.filter(pk__in=[red_line.pk, commands.pk]).order_by("pk")
    assert [(row.kind, row.verdict, row.reason) for row in rows] == [
        ("waiting_human", "reject", REASON), ("command_approval", "reject", REASON),
    ]  # fmt: skip
    events = AuditEvent.objects.filter(kind="decision.decided", project=project)
    assert events.count() == 2


def test_changed_one_and_one_decided_meanwhile_say_so_and_the_rest_is_signed(
    sir: User, sir_client: Client
) -> None:
    first, second, third = failing_steps(new_project("three"), 3)
    sent = shown_on(sir_client, first) | {"reason": REASON, "confirmed": "1"}
    sent[f"version-{first.pk}"] = "99"
    decide(second, "accept_as_is", reason="for now")
    url = reverse("dashboard:siblings", args=[first.pk])
    answer = sir_client.post(url, sent).content.decode()
    assert "1 of 3 signed" in answer
    assert answer.count("<span>Not signed</span>") == 2
    assert "the item changed since it was shown" in answer
    assert "“Accepted as is” by sir" in answer
    verdicts = Decision.objects.filter(pk__in=[first.pk, second.pk, third.pk]).order_by("pk")
    assert [row.verdict for row in verdicts] == ["", "accept_as_is", "reject"]


def test_those_that_end_with_the_first_are_named_as_withdrawn(
    sir: User, sir_client: Client
) -> None:
    rows = failing_steps(new_project("both"), 3)
    sent = shown_on(sir_client, rows[1]) | {"reason": REASON, "confirmed": "1"}
    answer = sir_client.post(reverse("dashboard:siblings", args=[rows[1].pk]), sent)
    page = answer.content.decode()
    assert "1 of 3 signed" in page
    assert page.count("<span>Withdrawn</span>") == 2
    assert page.count("<span>Not signed</span>") == 0
    assert not Decision.objects.filter(project=rows[0].project, status="open").exists()


def test_one_that_was_not_on_the_page_is_never_signed(sir: User, sir_client: Client) -> None:
    first, second, _third = failing_steps(new_project("three"), 3)
    other = make_waiting("other").decision
    sent = shown_on(sir_client, first) | {"reason": REASON, "confirmed": "1"}
    sent |= {f"version-{other.pk}": str(other.version), f"digest-{other.pk}": other.digest}
    del sent[f"version-{second.pk}"]
    answer = sir_client.post(reverse("dashboard:siblings", args=[first.pk]), sent)
    assert "1 of 2 signed" in answer.content.decode()
    rows = Decision.objects.filter(pk__in=[second.pk, other.pk]).order_by("pk")
    assert [row.verdict for row in rows] == ["", ""]
    assert rows[1].status == "open"
