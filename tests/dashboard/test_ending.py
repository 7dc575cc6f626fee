"""A project is put away from the browser, after a second question that says what ends with it."""

from __future__ import annotations

from django.test import Client
from django.urls import reverse

from orchestration.models import AuditEvent, Decision, Task
from tests.dashboard.conftest import Waiting
from tests.factories import new_project

URL = "/projects/hello/end/"


def test_board_leads_to_the_question_and_a_reader_is_not_offered_it(
    waiting: Waiting, sir_client: Client, viewer_client: Client
) -> None:
    board = reverse("dashboard:board", args=["hello"])
    assert f'href="{URL}"' in sir_client.get(board).content.decode()
    assert URL not in viewer_client.get(board).content.decode()
    assert viewer_client.post(URL, {"reason": "x"}).status_code == 403


def test_question_says_what_ends_and_ends_nothing(waiting: Waiting, sir_client: Client) -> None:
    page = sir_client.get(URL).content.decode()
    assert "Archive “hello”?" in page
    assert "3 unfinished tasks are cancelled. Running work is stopped." in page
    assert "1 open question is withdrawn." in page
    assert "There is no undo." in page
    waiting.project.refresh_from_db()
    assert waiting.project.status == "active"


def test_archived_with_a_reason_its_work_and_questions_end(
    waiting: Waiting, sir_client: Client
) -> None:
    asked = waiting.decision
    assert sir_client.post(URL, {"reason": " "}).status_code == 422
    answer = sir_client.post(URL, {"reason": "The customer left"})
    assert answer["Location"] == reverse("dashboard:board", args=["hello"])
    waiting.project.refresh_from_db()
    assert waiting.project.status == "archived"
    assert not Task.objects.filter(project=waiting.project, status="pending").exists()
    assert Decision.objects.get(pk=asked.pk).status == "withdrawn"
    event = AuditEvent.objects.get(kind="project.archived")
    assert (event.actor, event.why) == ("human:sir", "The customer left")
    board = sir_client.get(answer["Location"])
    assert board.status_code == 200
    assert URL not in board.content.decode()


def test_archived_again_is_refused_in_the_shell(waiting: Waiting, sir_client: Client) -> None:
    sir_client.post(URL, {"reason": "enough"})
    again = sir_client.post(URL, {"reason": "enough"})
    assert again.status_code == 409
    assert b'role="alert"' in again.content


def test_empty_project_says_that_nothing_ends(sir_client: Client) -> None:
    new_project("idle")
    page = sir_client.get("/projects/idle/end/").content.decode()
    assert "No work is under way." in page
    assert "No question is open." in page
