"""Overview, audit trail, new work, search, deciding together, and the pages of errors."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import AsyncClient, Client
from django.urls import reverse
from django.utils import timezone

from orchestration.models import AuditEvent, AuditSeal, Decision, Project, Task
from orchestration.services.audit import seal_events
from orchestration.services.work import SYSTEM
from orchestration.states import TaskStatus
from orchestration.workflows.dispatch import dispatch_text
from tests.dashboard.conftest import Waiting, make_waiting
from tests.factories import agent_step, decide, drive, new_project, step, submit_plan

# --- Overview -------------------------------------------------------------------------------------


def test_overview_says_what_waits_and_orders_projects_by_need(
    sir: User, sir_client: Client
) -> None:
    make_waiting("waits")
    submit_plan(new_project("quiet"), step("1"))
    drive()
    page = sir_client.get("/").content.decode()
    assert "One decision waits for you" in page
    assert "It has waited" in page
    assert "1 task waits behind it." in page
    assert page.index("waits</span>") < page.index("quiet</span>")
    for text in ("nothing else can run", "Completed", "1 of 1", "Decided without you"):
        assert text in page, text
    make_waiting("second")
    page = sir_client.get("/").content.decode()
    assert "2 decisions wait for you" in page
    assert "2 tasks wait behind them." in page


def test_overview_of_a_fresh_installation_helps_to_begin(sir: User, sir_client: Client) -> None:
    page = sir_client.get("/").content.decode()
    assert "Make it yours" in page
    assert "none connected yet" in page
    assert "Nothing needs you" in page


def test_tour_is_gone_for_good_after_a_skip_or_the_first_verdict(
    sir: User, sir_client: Client
) -> None:
    held = make_waiting("demo")
    assert b"data-tour-step" in sir_client.get("/").content
    sir_client.cookies["tour"] = "done"
    assert b"data-tour-step" not in sir_client.get("/").content
    del sir_client.cookies["tour"]
    decide(held.decision, "approve")
    assert b"data-tour-step" not in sir_client.get("/").content


def test_overview_refresh_is_only_the_lead(waiting: Waiting, sir_client: Client) -> None:
    answer = sir_client.get("/", headers={"HX-Request": "true"})
    assert b"<html" not in answer.content
    assert b"One decision waits for you" in answer.content


def test_news_since_the_last_look_are_counted_once(waiting: Waiting, sir_client: Client) -> None:
    sir_client.get("/")
    decide(waiting.decision, "approve")
    drive(waiting.project)
    seal_events()
    news = sir_client.get("/").content.decode()
    assert "Since you last looked" in news
    assert "HELLO-1 done" in news
    assert "Since you last looked" not in sir_client.get("/").content.decode()


# --- Audit ----------------------------------------------------------------------------------------


def test_audit_is_filtered_and_paged_without_gaps(waiting: Waiting, sir_client: Client) -> None:
    url = reverse("dashboard:audit")
    rows = AuditSeal.objects.count()
    assert rows > 30
    page = sir_client.get(url).content.decode()
    assert f'id="event-{rows}"' in page
    narrowed = sir_client.get(url, {"noun": "decision", "project": "hello"}).content.decode()
    assert narrowed.count('<tr id="event-') == 1
    assert "decision.opened" in narrowed
    assert "No event matches" in sir_client.get(url, {"q": "zzz"}).content.decode()
    assert sir_client.get(url, {"on": "not-a-day", "before": "x"}).status_code == 200


def test_key_of_a_task_names_its_events_and_its_reasons_on_demand(
    waiting: Waiting, sir_client: Client
) -> None:
    url, root = reverse("dashboard:audit"), waiting.root
    own = AuditSeal.objects.filter(event__task=root).count()
    key = f"{root.project.key_prefix}-{root.number}"
    cited = AuditEvent.objects.create(
        kind="task.blocked", actor="system", subject="task:9", why=f"blocked by {key}"
    )
    seal_events()
    page = sir_client.get(url, {"q": key.lower()}).content.decode()
    assert page.count('<tr id="event-') == own
    assert f"The events of {key.lower()} itself." in page
    in_words = sir_client.get(url, {"q": key, "words": "1"}).content.decode()
    assert in_words.count('<tr id="event-') == own + 1
    assert f'id="event-{cited.seal.position}"' in in_words
    assert "itself." not in in_words
    position = sir_client.get(url, {"q": "#3"}).content.decode()
    assert position.count('<tr id="event-') == 1
    assert 'id="event-3"' in position


def test_search_of_words_says_how_far_it_came_and_goes_on(
    waiting: Waiting, sir_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = AuditSeal.objects.get(event__kind="project.created")
    newest = AuditSeal.objects.count()
    monkeypatch.setattr("orchestration.selectors.audit.SEARCHED", newest - first.position)
    page = sir_client.get(reverse("dashboard:audit"), {"q": "project.created"}).content.decode()
    assert "None of the events searched so far matches." in page
    assert f"down to #{first.position + 1}." in page
    on = re.search(r'href="([^"]+)"[^>]*>Search on<', page)
    assert on is not None
    rest = sir_client.get(on.group(1).replace("&amp;", "&")).content.decode()
    assert f'id="event-{first.position}"' in rest
    assert "Search on" not in rest


def test_verify_button_confirms_the_chain(waiting: Waiting, sir_client: Client) -> None:
    answer = sir_client.post(reverse("dashboard:audit_verify"))
    assert f"{AuditSeal.objects.count()} events verified" in answer.content.decode()


def test_verify_button_names_what_is_broken(waiting: Waiting, sir_client: Client) -> None:
    late = AuditEvent.objects.create(
        kind="task.done", actor="system", subject="task:1", at=timezone.now() - timedelta(days=1)
    )
    answer = sir_client.post(
        reverse("dashboard:audit_verify"), headers={"HX-Request": "true"}
    ).content.decode()
    assert 'role="alert"' in answer
    assert f"event {late.pk}: the event was never sealed" in answer
    assert "<html" not in answer


def test_one_event_is_shown_whole(waiting: Waiting, sir_client: Client) -> None:
    seal = AuditSeal.objects.filter(event__kind="decision.opened").latest("position")
    page = sir_client.get(f"/audit/{seal.position}/").content.decode()
    for text in (seal.hash, "decision.opened", f"/audit/{seal.position - 1}/", "Before and after"):
        assert text in page, text
    moved = AuditSeal.objects.filter(event__kind="task.working").first()
    assert moved is not None
    page = sir_client.get(f"/audit/{moved.position}/").content.decode()
    assert re.search(r"word-out\">pending<.*word-in\">working<", page, re.S)
    assert sir_client.get("/audit/999999/").status_code == 404
    assert sir_client.get("/audit/99999999999999999999/").status_code == 404


async def read_export(user: User, **query: str) -> tuple[str, str]:
    """Download the trail as a server does, asynchronously."""
    client = AsyncClient()
    await client.aforce_login(user)
    answer = await client.get(reverse("dashboard:audit_export"), query)
    content = b"".join([piece async for piece in answer])  # type: ignore[attr-defined]
    return content.decode(), answer["Content-Disposition"]


@pytest.mark.django_db(transaction=True)
async def test_export_holds_every_event_as_json_lines(
    transactional_db: None, exported: User
) -> None:
    text, name = await read_export(exported, form="jsonl")
    rows = [json.loads(line) for line in text.splitlines()]
    assert [row["position"] for row in rows] == list(range(1, len(rows) + 1))
    assert name == 'attachment; filename="audit-all.jsonl"'


@pytest.mark.django_db(transaction=True)
async def test_export_as_csv_defuses_formulas(transactional_db: None, exported: User) -> None:
    text, _ = await read_export(exported, form="csv", project="hello")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["kind"] for row in rows} >= {"task.pending", "decision.opened"}
    assert rows[-1]["why"] == "'=cmd()"


@pytest.fixture
def exported(transactional_db: None) -> User:
    held = make_waiting("hello")
    user = User.objects.create_user("reader", password="a good password")
    user.groups.create(name="viewer")
    AuditEvent.objects.create(
        kind="task.odd", actor="system", subject="x", why="=cmd()", project=held.project
    )
    seal_events()
    return user


def test_browser_finds_an_icon_where_no_page_names_one(client: Client) -> None:
    assert client.get("/favicon.ico")["Location"].endswith(".svg")


# --- New work -------------------------------------------------------------------------------------


def test_new_work_becomes_a_task(sir: User, sir_client: Client) -> None:
    new_project("inbox-of-work")
    answer = sir_client.post("/new/", {"project": "inbox-of-work", "text": "Summarise the log"})
    assert answer.status_code == 303
    task = Task.objects.get()
    assert answer["Location"] == f"/projects/inbox-of-work/tasks/{task.pk}/"
    assert answer.cookies["draft_sent"].value == "new-work"


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        ("", 422, "This field is required"), ("   ", 422, "the message is empty"),
        ("\u200b\u200b", 422, "the message is empty"),
        ("/nonsense do it", 422, "there is no command /nonsense"),
        ("/three-step", 422, "has no text"), ("x" * 1_000_001, 413, "1000001 bytes"),
    ],
)  # fmt: skip
def test_refused_text_stays_in_the_form(
    text: str, status: int, words: str, sir: User, sir_client: Client
) -> None:
    new_project("work")
    answer = sir_client.post("/new/", {"project": "work", "text": text})
    assert answer.status_code == status
    assert words in answer.content.decode()
    assert not Task.objects.exists()


def test_preview_says_what_s0_would_do_and_stores_nothing(sir: User, viewer_client: Client) -> None:
    new_project("work")
    url = reverse("dashboard:new_work_preview")
    direct = viewer_client.post(url, {"project": "work", "text": "谢谢"}).content.decode()
    assert "off the master list" in direct
    assessed = viewer_client.post(
        url, {"project": "work", "text": "谢谢，另外把整个支付系统重构一下"}
    )
    assert "To scoring" in assessed.content.decode()
    assert "重构" in assessed.content.decode()
    named = viewer_client.post(url, {"text": "/three-step tidy up"}).content.decode()
    assert "Starts the workflow /three-step" in named
    assert not Task.objects.exists()


def test_preview_says_that_a_red_line_waits_for_sir(sir: User, viewer_client: Client) -> None:
    project = new_project("work")
    url = reverse("dashboard:new_work_preview")
    text = "Delete the production database and drop all tables"
    for sent in (text, f"/three-step {text}"):
        page = viewer_client.post(url, {"project": "work", "text": sent}).content.decode()
        assert "A red line: it waits for Sir first" in page
        assert ">Delete the production database</span>" in page
        assert ">drop all tables</span>" in page
        assert "an executor does it at once" not in page
        assert "No signal in the text" not in page
        task = dispatch_text(project_id=project.pk, text=sent, actor=SYSTEM).task
        assert task.status == TaskStatus.WAITING_HUMAN
    chinese = viewer_client.post(
        url, {"project": "work", "text": text}, headers={"Accept-Language": "zh-hans"}
    )
    assert "触及红线：先由 Sir 裁定" in chinese.content.decode()
    harmless = viewer_client.post(url, {"project": "work", "text": "Fix a typo"})
    assert "red line" not in harmless.content.decode()


# --- Search ---------------------------------------------------------------------------------------


def test_search_jumps_to_a_key_a_step_and_a_project(waiting: Waiting, sir_client: Client) -> None:
    for text, target in (
        ("HELLO-1", waiting.root), ("hello-1", waiting.root), ("HELLO-1 / 2", waiting.step),
    ):  # fmt: skip
        answer = sir_client.get("/search/", {"q": text})
        assert answer["Location"] == f"/projects/hello/tasks/{target.pk}/", text
    assert sir_client.get("/search/", {"q": "hello"})["Location"] == "/projects/hello/"


def test_search_lists_what_holds_the_words(waiting: Waiting, sir_client: Client) -> None:
    page = sir_client.get("/search/", {"q": "right way"}).content.decode()
    assert f"/projects/hello/tasks/{waiting.root.pk}/" in page
    nothing = sir_client.get("/search/", {"q": "<b>none</b>"}).content.decode()
    assert "&lt;b&gt;none&lt;/b&gt;" in nothing


# --- Together -------------------------------------------------------------------------------------


def ask_thrice() -> list[Decision]:
    """Three open Medium defects of one project."""
    project = new_project("three")
    submit_plan(
        project,
        *(step(str(n), run=["false"], on_failure={"severity": "medium"}) for n in range(3)),
        agent_step("later"),
    )
    drive(project)
    return list(Decision.objects.filter(status="open").order_by("pk"))


def together(rows: list[Decision], verdict: str, **rest: str) -> dict[str, object]:
    """Fill the form of the stack."""
    sent: dict[str, object] = {"selected": [str(row.pk) for row in rows], "verdict": verdict}
    for row in rows:
        sent |= {f"version-{row.pk}": row.version, f"digest-{row.pk}": row.digest}
    return sent | rest


def test_items_are_decided_together_and_a_stale_one_is_left_out(
    sir: User, sir_client: Client
) -> None:
    rows = ask_thrice()
    stack = sir_client.get("/inbox/together/", {"selected": [row.pk for row in rows]})
    assert all(row.digest.encode() in stack.content for row in rows)
    sent = together(rows, "accept_as_is", reason="for now")
    sent[f"version-{rows[1].pk}"] = 99
    answer = sir_client.post("/inbox/together/", sent).content.decode()
    assert "2 of 3 signed" in answer
    assert answer.count("<span>Not signed</span>") == 1
    assert [Decision.objects.get(pk=row.pk).status for row in rows] == [
        "decided", "open", "decided",
    ]  # fmt: skip


def test_destructive_verdict_on_all_needs_the_tick(sir: User, sir_client: Client) -> None:
    rows = ask_thrice()
    answer = sir_client.post("/inbox/together/", together(rows, "reject", reason="no"))
    assert answer.status_code == 422
    assert Decision.objects.filter(status="open").count() == 3


def test_stack_is_of_one_kind_and_never_of_stops(sir: User, sir_client: Client) -> None:
    rows = ask_thrice()
    Decision.objects.filter(pk=rows[2].pk).update(kind="max_retries")
    page = sir_client.get("/inbox/together/", {"selected": [row.pk for row in rows]})
    assert f'name="selected" value="{rows[2].pk}"'.encode() not in page.content
    lone = sir_client.get("/inbox/together/", {"selected": [rows[2].pk]})
    assert lone["Location"] == "/inbox/"


# --- Errors, language, theme ----------------------------------------------------------------------


def test_broken_page_keeps_the_shell(waiting: Waiting, sir: User) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(sir)
    Project.objects.update(policy_json="{")
    answer = client.get(f"/inbox/{waiting.decision.pk}/")
    assert answer.status_code == 500
    assert b"The page broke" in answer.content
    assert b'class="side"' in answer.content


@pytest.mark.parametrize("kind", ["md", "json", "zip"])
def test_archive_that_was_not_written_is_refused_inside_the_shell(
    kind: str, waiting: Waiting, viewer_client: Client
) -> None:
    task = f"/projects/{waiting.project.slug}/tasks/{waiting.root.pk}/"
    answer = viewer_client.get(f"{task}archive.{kind}")
    assert answer.status_code == 409
    assert b"No archive was written" in answer.content
    assert b'class="side"' in answer.content


def test_language_is_switched_by_a_form(waiting: Waiting, sir_client: Client) -> None:
    sir_client.post(reverse("set_language"), {"language": "zh-hans", "next": "/inbox/"})
    page = sir_client.get("/inbox/").content.decode()
    assert '<html lang="zh-hans"' in page
    assert "收件箱" in page


def test_theme_comes_from_the_cookie_and_nothing_else(waiting: Waiting, sir_client: Client) -> None:
    sir_client.cookies["theme"] = "dark"
    assert b'data-bs-theme="dark"' in sir_client.get("/").content
    sir_client.cookies["theme"] = '"><script>'
    assert b"data-bs-theme=" not in sir_client.get("/").content
