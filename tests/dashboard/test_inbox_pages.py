"""The inbox: its order and groups, filters, history, counts, and the cards of every kind."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
import time_machine
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from orchestration.models import Decision, Project, Task
from orchestration.services.work import SYSTEM, unit_of_work
from orchestration.states import DecisionKind
from tests.dashboard.conftest import Waiting, make_waiting
from tests.dashboard.kinds import CONTENT, ask, ask_each
from tests.factories import (
    agent_step,
    child,
    claim,
    decide,
    drive,
    new_agent,
    new_project,
    open_decision_of,
    set_status,
    step,
    submit_plan,
)

ROW = re.compile(r'<li id="row-(\d+)"')
HEAD = re.compile(r'<h2 id="group-(\d)">(.*?) <span>(\d+)</span>')


@pytest.fixture
def full(sir: User) -> Project:
    """A project with one open decision of every kind."""
    project = new_project("full")
    root = submit_plan(project, *(agent_step(str(n)) for n in range(1, len(CONTENT) + 1)))
    drive(project)
    ask_each(project, root)
    return project


def listed(client: Client, **query: str) -> list[int]:
    """The ids of the rows in the order of the list."""
    answer = client.get(reverse("dashboard:inbox"), query)
    return [int(pk) for pk in ROW.findall(answer.content.decode())]


def test_groups_stand_in_their_order_and_empty_ones_are_absent(
    full: Project, sir_client: Client
) -> None:
    page = sir_client.get(reverse("dashboard:inbox")).content.decode()
    assert HEAD.findall(page) == [
        ("1", "Stopped projects", "2"), ("2", "Medium defects and final reviews", "2"),
        ("3", "Plans and commands", "2"), ("4", "Questions", "3"),
        ("5", "Notices, nothing waits", "1"),
    ]  # fmt: skip


def test_group_of_medium_defects_alone_is_named_so(waiting: Waiting, sir_client: Client) -> None:
    page = sir_client.get(reverse("dashboard:inbox")).content.decode()
    assert HEAD.findall(page) == [("2", "Medium defects", "1")]


def test_inside_a_group_blocked_work_comes_before_age(sir: User, sir_client: Client) -> None:
    small, large = make_waiting("small"), new_project("large")
    root = submit_plan(
        large,
        step("1", run=["false"], on_failure={"severity": "medium"}),
        *(step(f"after-{n}", after=["1"]) for n in range(4)),
    )
    drive(large)
    old = Decision.objects.get(project=small.project)
    Decision.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(days=1))
    new = Decision.objects.get(task=child(root, "1"))
    assert listed(sir_client) == [new.pk, old.pk]


def test_badge_rows_and_cards_are_the_same_set(full: Project, sir_client: Client) -> None:
    open_ids = set(Decision.objects.filter(status="open").values_list("pk", flat=True))
    assert set(listed(sir_client)) == open_ids
    api = sir_client.get("/api/decisions/").json()["results"]
    assert {int(one["id"]) for one in api if one["status"] == "open"} == open_ids
    count = sir_client.get(reverse("dashboard:inbox_count")).content.decode()
    assert f'data-count="{len(open_ids)}"' in count
    title = sir_client.get(reverse("dashboard:overview")).content.decode()
    assert f"<title>({len(open_ids)}) " in title


def test_every_kind_shows_each_of_its_verdicts(full: Project, sir_client: Client) -> None:
    for decision in Decision.objects.filter(project=full):
        page = sir_client.get(reverse("dashboard:decision", args=[decision.pk])).content.decode()
        shown = re.findall(r'name="verdict" value="(\w+)"', page)
        assert shown == [option["verdict"] for option in decision.options], decision.kind
        assert "Pause project" in page, decision.kind


@pytest.mark.parametrize("reason", ["red_line", "seat_failed", "irreversible_cut_off"])
def test_yes_or_no_question_is_approved_not_answered(
    reason: str, full: Project, sir_client: Client
) -> None:
    task = Task.objects.filter(project=full, parent__isnull=False).first()
    assert task is not None
    asked = ask(DecisionKind.WAITING_HUMAN, full, task, reason=reason)
    page = sir_client.get(reverse("dashboard:decision", args=[asked.pk])).content.decode()
    keys = re.findall(r'name="verdict" value="(\w+)" aria-keyshortcuts="(.)"', page)
    assert keys == [("approve", "a"), ("reject", "r"), ("abort", "3")]


def test_closed_defect_says_what_came_of_it_and_no_longer_asks(
    waiting: Waiting, sir_client: Client
) -> None:
    asked = waiting.decision
    url = reverse("dashboard:decision", args=[asked.pk])
    before = sir_client.get(url).content.decode()
    for text in ("If it waits", "none, keeps waiting", "not tried yet", "Impact"):
        assert text in before, text
    decide(asked, "approve")
    drive(waiting.project)
    after = sir_client.get(url).content.decode()
    for text in ("If it waits", "keeps waiting", "not tried yet", "Impact", "Waiting for you"):
        assert text not in after, text
    rounds = reverse("dashboard:decision_part", args=[asked.pk, "rounds"])
    rows = re.findall(r"<td class=\"nowrap\">(.*?)</td>", sir_client.get(rounds).content.decode())
    assert rows == ["Step output", "Fix round 1"]
    status = reverse("dashboard:decision_part", args=[asked.pk, "status"])
    assert "Approved" in sir_client.get(status).content.decode()
    unknown = reverse("dashboard:decision_part", args=[asked.pk, "card"])
    assert sir_client.get(unknown).status_code == 404


def test_pane_of_a_stop_has_no_verdicts_and_leads_to_its_page(
    full: Project, sir_client: Client
) -> None:
    stop = Decision.objects.get(project=full, kind="max_retries")
    pane = sir_client.get(reverse("dashboard:decision_pane", args=[stop.pk])).content.decode()
    assert 'name="verdict"' not in pane
    assert f'href="/inbox/{stop.pk}/"' in pane
    assert f'value="{stop.pk}" form="bulk"' not in sir_client.get("/inbox/").content.decode()


def test_item_closed_meanwhile_is_among_the_results_with_who_closed_it(
    sir: User, sir_client: Client
) -> None:
    first, second = (make_waiting(slug).decision for slug in ("first", "second"))
    sent: dict[str, object] = {"selected": [first.pk, second.pk], "verdict": "approve"}
    for one in (first, second):
        sent |= {f"version-{one.pk}": one.version, f"digest-{one.pk}": one.digest}
    decide(first, "accept_as_is", reason="enough")
    page = sir_client.post(reverse("dashboard:bulk"), sent).content.decode()
    assert "1 of 2 signed" in page
    assert "Not signed: “Accepted as is” by " in page
    second.refresh_from_db()
    assert second.verdict == "approve"


def test_viewer_reads_cards_without_a_dock(full: Project, viewer_client: Client) -> None:
    decision = Decision.objects.get(project=full, kind="medium_defect")
    page = viewer_client.get(reverse("dashboard:decision", args=[decision.pk])).content.decode()
    assert 'name="verdict"' not in page
    assert "Only Sir decides." in page


def test_filters_narrow_the_list(full: Project, sir_client: Client) -> None:
    other = make_waiting("other")
    assert listed(sir_client, project="other") == [other.decision.pk]
    assert len(listed(sir_client, kind="medium_defect")) == 2
    assert listed(sir_client, q="HELLO-1") == []
    assert listed(sir_client, q="OTHER-1") == [other.decision.pk]
    assert other.decision.pk in listed(sir_client, blocks="1")
    assert len(listed(sir_client, kind="nonsense")) == len(CONTENT) + 1


def test_filter_without_hits_says_so_and_offers_to_clear(
    waiting: Waiting, sir_client: Client
) -> None:
    page = sir_client.get(reverse("dashboard:inbox"), {"q": "no such thing"}).content
    assert b"No open decision matches the filter" in page
    assert b"Clear" in page


def test_list_refresh_is_only_the_rows(waiting: Waiting, sir_client: Client) -> None:
    answer = sir_client.get(reverse("dashboard:inbox"), headers={"HX-Request": "true"})
    assert b"<html" not in answer.content
    assert ROW.findall(answer.content.decode()) == [str(waiting.decision.pk)]


def test_row_of_a_closed_item_is_gone(waiting: Waiting, sir_client: Client) -> None:
    decision = waiting.decision
    url = reverse("dashboard:decision_row", args=[decision.pk])
    assert sir_client.get(url).status_code == 200
    decide(decision, "approve")
    assert sir_client.get(url).status_code == 204


def test_empty_inbox_says_what_was_decided_today(waiting: Waiting, sir_client: Client) -> None:
    sir_client.get(reverse("dashboard:decision", args=[waiting.decision.pk]))
    decide(waiting.decision, "approve")
    drive(waiting.project)
    page = sir_client.get(reverse("dashboard:inbox")).content.decode()
    assert "Nothing needs you" in page
    assert "You decided 1 item today." in page
    assert "All clear since" in page


def test_tabs_and_empty_inbox_read_as_sentences_in_chinese(
    waiting: Waiting, sir_client: Client
) -> None:
    chinese = {"Accept-Language": "zh-hans"}
    page = sir_client.get(reverse("dashboard:inbox"), headers=chinese).content.decode()
    assert re.search(r">待处理 <span[^>]*data-inbox-count>1<", page)
    decide(waiting.decision, "approve")
    drive(waiting.project)
    page = sir_client.get(reverse("dashboard:inbox"), headers=chinese).content.decode()
    assert re.search(r"自 <time[^>]*>[^<]+</time> 起没有待办", page)


def test_history_shows_verdict_reason_by_whom_and_how_fast(
    waiting: Waiting, sir_client: Client
) -> None:
    decision = waiting.decision
    # As fast as can be, also on a machine on which these two calls take seconds.
    with time_machine.travel(decision.created_at, tick=False):
        sir_client.get(reverse("dashboard:decision", args=[decision.pk]))
        decide(decision, "accept_as_is", reason="good enough for now")
    page = sir_client.get(reverse("dashboard:inbox_history")).content.decode()
    assert "Accepted as is" in page
    assert "“good enough for now”" in page
    assert "sir, in 0 s" in page
    assert f'href="/inbox/{decision.pk}/"' in page


def test_history_is_searched_and_paged(sir: User, sir_client: Client) -> None:
    project = new_project("many")
    root = submit_plan(project, agent_step("1"))
    drive(project)
    task = child(root, "1")
    for number in range(60):
        decision = ask(DecisionKind.CLARIFICATION, project, task, detail=str(number))
        with unit_of_work(SYSTEM) as work:
            work.now = timezone.now() - timedelta(minutes=number)
        Decision.objects.filter(pk=decision.pk).update(
            status="withdrawn", decided_at=timezone.now(), reason=f"because {number}"
        )
    first = sir_client.get(reverse("dashboard:inbox_history")).content.decode()
    older = re.search(r'href="([^"]+before=\d+)"', first)
    assert older is not None
    second = sir_client.get(older.group(1).replace("&amp;", "&")).content.decode()
    rows = re.compile(r'href="/inbox/(\d+)/"')
    both = rows.findall(first) + rows.findall(second)
    assert (len(both), len(set(both))) == (60, 60)
    found = sir_client.get(reverse("dashboard:inbox_history"), {"q": "BECAUSE 5"}).content.decode()
    wanted = Decision.objects.filter(reason__startswith="because 5").values_list("pk", flat=True)
    assert len(wanted) == 11
    assert {int(pk) for pk in rows.findall(found)} == set(wanted)
    assert "before=" not in found
    nothing = sir_client.get(reverse("dashboard:inbox_history"), {"q": "no such reason"})
    assert rows.findall(nothing.content.decode()) == []


def test_question_of_an_agent_is_shown_and_its_answer_reaches_it(
    sir: User, sir_client: Client
) -> None:
    project, agent = new_project("asks"), new_agent("coder")
    root = submit_plan(project, agent_step("1"))
    drive(project)
    claim(child(root, "1"), agent)
    set_status(child(root, "1"), agent, "working")
    set_status(child(root, "1"), agent, "waiting_human", detail="Which rate?")
    decision = Decision.objects.get(project=project)
    page = sir_client.get(reverse("dashboard:decision", args=[decision.pk])).content.decode()
    assert "Which rate?" in page
    sent = {
        "verdict": "answer", "version": decision.version, "digest": decision.digest,
        "reason": "the yearly mean",
    }  # fmt: skip
    url = reverse("dashboard:decide", args=[decision.pk])
    assert sir_client.post(url, {**sent, "reason": ""}).status_code == 422
    assert sir_client.post(url, sent).status_code == 303
    assert child(root, "1").comments.last().body == "the yearly mean"  # type: ignore[union-attr]


def test_commands_are_struck_out_by_amending(sir: User, sir_client: Client) -> None:
    project = new_project("cmds")
    submit_plan(
        project, step("1", run=["nc -z host 22"]), step("2", run=["rsync --version"]),
        is_trusted=False,
    )  # fmt: skip
    drive(project)
    decision = Decision.objects.get(project=project)
    struck = decision.content["commands"][0]["digest"]
    sent = {
        "verdict": "amend", "version": decision.version, "digest": decision.digest,
        "reason": "no port scans", "remove": [struck],
    }  # fmt: skip
    answer = sir_client.post(reverse("dashboard:decide", args=[decision.pk]), sent)
    assert answer.status_code == 303
    following = Decision.objects.get(project=project, status="open")
    assert [one["digest"] for one in following.content["commands"]] == [
        one["digest"] for one in decision.content["commands"][1:]
    ]


# --- Words ----------------------------------------------------------------------------------------


def test_card_without_a_fix_promises_none(sir: User, sir_client: Client) -> None:
    project = new_project("bare")
    submit_plan(project, step("1", run=["false"], on_failure={"severity": "medium"}))
    drive(project)
    decision = open_decision_of(project)
    page = sir_client.get(reverse("dashboard:decision", args=[decision.pk])).content.decode()
    assert "A fixer mends it, round 1/3" in page
    assert "Applies the patch" not in page
    assert "Frees 0" not in page
    assert "Nothing waits for it" in page


def test_filter_shows_what_is_chosen(waiting: Waiting, sir_client: Client) -> None:
    page = sir_client.get("/inbox/", {"kind": "medium_defect", "project": "hello"}).content.decode()
    assert '<span class="choice-word">Medium defect</span>' in page
    assert '<span class="choice-word">hello</span>' in page


def test_pane_is_cleared_after_the_last_verdict(waiting: Waiting, sir_client: Client) -> None:
    assert b"All clear" not in sir_client.get(reverse("dashboard:inbox_clear")).content
    decide(waiting.decision, "approve")
    clear = sir_client.get(reverse("dashboard:inbox_clear")).content
    assert b"All clear since" in clear
    assert b"<html" not in clear
