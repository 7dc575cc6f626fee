"""Who has the prompt and nothing else can answer an intent, be marked, and say what it cost.

The requests are not written here: they are the forms of the prompt, filled in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from django.urls import resolve

from orchestration.models import Assignment, Project, Task, ToolCall
from orchestration.states import Seat
from tests.api.callers import Caller, agent_client
from tests.factories import fresh, new_project
from tests.services.mesh_rooms import handshake_of, new_task, spawned

pytestmark = pytest.mark.django_db
REQUEST = re.compile(r"`(POST|PUT) http://[^/`\s]+(/[^`\s]+)` `(\{.*?\})`(?= [|]|[.。]|$)", re.M)

UNDERSTOOD = ("the P99 of the API", "The whole week?", "message_id: what-i-read")


def forms(text: str) -> list[tuple[str, dict[str, Any]]]:
    """The requests of a prompt whose body is shown whole: path and body."""
    found = [(path, body) for _, path, body in REQUEST.findall(text) if "…}" not in body]
    return [(path, json.loads(body.replace("[…]", "[]"))) for path, body in found]


def form(text: str, end: str, **having: str) -> tuple[str, dict[str, Any]]:
    """The one request of a prompt at an address, with these values in its body."""
    [found] = [
        (path, body)
        for path, body in forms(text)
        if path.endswith(end) and having.items() <= body.items()
    ]
    return found


def filled_in(body: Mapping[str, Any], **values: Any) -> dict[str, Any]:
    """A form with values in the place of its dots; what stays open is left out."""
    known = {key: held for key, held in body.items() if held not in ("…", ["…"], [])}
    return {**known, **values}


def intent(caller: Caller, task: Task, **rest: Any) -> None:
    """Put up what an executor understood."""
    body = {"type": "intent_confirmation", "message_id": "what-i-read", "task": str(task),
            "project": task.project.slug, "scope": ["the P99 of the API"], "approach": "traces",
            "questions": ["The whole week?"], **rest}  # fmt: skip
    assert caller.send("/api/mail/", body).status_code == 201


def awaiting_auditor(language: str) -> tuple[Task, Caller, dict[str, Any]]:
    """A medium task whose intent waits for an auditor, that auditor, and what it claimed."""
    project = new_project("demo", policy={"seats": {"auditor": ["external"]}})
    Project.objects.filter(pk=project.pk).update(language=language)
    task = fresh(new_task(project))
    worker, auditor = agent_client(project), agent_client(project, name="ada")
    worker.send(f"/api/projects/demo/tasks/{task}/claim")
    intent(worker, task)
    claimed = auditor.send("/api/assignments/claim", {"seats": ["auditor"]}).json()
    return task, auditor, claimed


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_an_auditor_is_told_the_understanding_and_how_to_answer(language: str) -> None:
    task, auditor, claimed = awaiting_auditor(language)
    text = auditor.read(claimed["prompt_url"])["text"]
    for said in (
        "the P99 of the API",
        "The whole week?",
        "message_id: what-i-read",
        "agent:worker",
    ):
        assert said in text
    assert "NEEDS_REVISION" not in text
    path, body = form(text, f"/api/assignments/{claimed['id']}/result")
    answer = filled_in(
        body,
        lease_token=claimed["lease_token"],
        status="confirmed_with_correction",
        corrections=["the last week"],
    )
    assert auditor.send(path, answer).status_code == 200
    assert handshake_of(task).corrections == ["the last week"]


def test_an_auditor_may_answer_by_the_mail_that_its_prompt_shows() -> None:
    task, auditor, claimed = awaiting_auditor("en")
    text = auditor.read(claimed["prompt_url"])["text"]
    path, body = form(text, "/api/mail/", type="intent_ack")
    answer = filled_in(body, message_id="my-ack", in_reply_to="what-i-read", status="confirmed")
    assert auditor.send(path, answer).status_code == 201
    assert handshake_of(task).status == "confirmed"


def test_an_auditor_of_a_plan_is_told_nothing_of_intents(agent: Caller, task: str) -> None:
    text = agent.read(f"{task}/bootstrap?role=auditor")["text"]
    assert "NEEDS_REVISION" in text
    assert "confirmed_with_correction" not in text


def test_a_spawner_is_told_what_its_child_understood_and_how_to_acknowledge(
    project: Project,
) -> None:
    spawner, bob = agent_client(project, name="alice"), agent_client(project, name="bob")
    child, _ = spawned(project, spawner.agent)
    bob.send(f"/api/projects/demo/tasks/{child}/claim")
    intent(bob, child, content="")
    text = spawner.read(f"/api/projects/demo/tasks/{child.parent}/bootstrap")["text"]
    for said in UNDERSTOOD:
        assert said in text
    path, body = form(text, "/api/mail/", type="intent_ack")
    answer = filled_in(body, message_id="my-ack", in_reply_to="what-i-read", status="confirmed")
    assert spawner.send(path, answer).status_code == 201
    assert handshake_of(child).answered_by == "agent:alice"


def test_an_executor_with_the_prompt_alone_records_its_calls_and_its_cost(
    agent: Caller, task: str
) -> None:
    claimed = agent.send(f"{task}/claim").json()
    text = agent.read(claimed["prompt_url"])["text"]
    held = {"lease_token": claimed["lease_token"]}
    path, body = form(text, "/tool-calls")
    calls = [filled_in(one, command="python -m pytest") for one in body["calls"]]
    assert agent.send(path, {**body, **held, "calls": calls}).status_code == 201
    assert ToolCall.objects.get().command == "python -m pytest"
    path, body = form(text, "/heartbeat")
    assert agent.send(path, {**body, **held}).status_code == 200
    usage = Assignment.objects.get(pk=claimed["id"]).usage
    assert usage["turns"] == body["usage"]["turns"]


@pytest.mark.parametrize("seat", [one for one in Seat if one is not Seat.EXECUTOR])
def test_every_seat_is_told_to_say_what_it_cost(agent: Caller, task: str, seat: Seat) -> None:
    assert '"usage": {' in agent.read(f"{task}/bootstrap?role={seat}")["text"]


def test_no_form_of_an_executors_prompt_has_a_field_that_is_refused(
    agent: Caller, task: str
) -> None:
    claimed = agent.send(f"{task}/claim").json()
    text = agent.read(claimed["prompt_url"])["text"]
    found = forms(text)
    assert len(found) >= 18
    for path, body in found:
        resolve(path)
        call = {"/shared/design": agent.put}.get(path[-14:], agent.send)
        assert "unknown_fields" not in call(path, body).content.decode(), (path, body)


def test_marks_are_named_in_the_prompt_as_they_are_shown(agent: Caller, task: str) -> None:
    text = agent.read(f"{task}/bootstrap")["text"]
    for mark in ("[independently verified ✓]", "[agent verified]", "[not verified]"):
        assert mark in text
