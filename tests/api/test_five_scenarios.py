"""The five scenarios of source document 001, section 5, from an agent's side of the wire."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from orchestration.models import Project, Task
from tests.api.callers import Caller, agent_client, problem, session_client
from tests.factories import agent_step, drive, submit_plan

TASKS = "/api/projects/demo/tasks"
MAIL = "/api/mail/"
CODE = {
    "type": "code",
    "title": "slug.py",
    "summary": "one function",
    "content": "def slug(text):\n    return '-'.join(text.lower().split())\n",
}
HANDOFF = {
    "comment_type": "handoff",
    "body": "Decided: no regular expression, it is slower. Problems: none. Advice: empty is empty.",
}


@pytest.fixture
def board(project: Project) -> Client:
    """Sir's browser."""
    return session_client()


def claim_ready(agent: Caller) -> str:
    """Claim the first task that is ready. Return its path."""
    first = agent.read(TASKS, ready="true")["results"][0]
    path = f"{TASKS}/{first['key']}"
    assert agent.send(f"{path}/claim").status_code == 200
    return path


def finish(agent: Caller, path: str) -> Any:
    """Do a claimed task to its end. Return the task."""
    agent.send(f"{path}/status", {"status": "working"})
    assert agent.send(f"{path}/outputs", CODE).status_code == 201
    assert agent.send(f"{path}/comments", HANDOFF).status_code == 201
    return agent.send(f"{path}/status", {"status": "review"}).json()


def test_1_simple_coding_task_is_done_without_being_told_the_steps(
    agent: Caller, sir: Caller
) -> None:
    """Each refusal names what is missing, so that nobody stands there not knowing what is next."""
    sir.send("/api/projects/demo/messages", {"text": "Implement a function that makes slugs"})
    path = claim_ready(agent)
    agent.send(f"{path}/status", {"status": "working"})
    problem(agent.send(f"{path}/status", {"status": "review"}), 409, "missing_output")
    agent.send(f"{path}/outputs", CODE)
    problem(agent.send(f"{path}/status", {"status": "review"}), 409, "missing_handoff")
    agent.send(f"{path}/comments", HANDOFF)
    assert agent.send(f"{path}/status", {"status": "review"}).json()["status"] == "done"
    task = agent.read(f"{path}?expand=all")
    assert [one["name"] for one in task["artifacts"]] == ["slug.py"]
    locked = agent.get(task["artifacts"][0]["content_url"])
    assert locked.content.decode() == CODE["content"]


def test_2_successor_starts_after_its_predecessor_and_finds_its_hand_off(
    agent: Caller, project: Project
) -> None:
    submit_plan(project, agent_step("first"), agent_step("second", after=["first"]))
    drive(project)
    first = claim_ready(agent)
    assert agent.read(TASKS, ready="true")["results"] == []
    assert finish(agent, first)["status"] == "done"
    second = claim_ready(agent)
    (needed,) = agent.read(second)["depends_on"]
    before = agent.read(f"{TASKS}/{needed}?expand=all")
    handoffs = [one for one in before["comments"] if one["comment_type"] == "handoff"]
    assert [one["body"] for one in handoffs] == [HANDOFF["body"]]
    assert before["outputs"][0]["summary"] == CODE["summary"]
    prompt = agent.get(f"{second}/bootstrap")
    assert prompt.status_code == 200
    assert "Decided: no regular expression, it is slower." in prompt.content.decode()


def test_3_failure_says_why_and_the_next_attempt_knows(agent: Caller, sir: Caller) -> None:
    sir.send("/api/projects/demo/messages", {"text": "Implement a function that makes slugs"})
    path = claim_ready(agent)
    agent.send(f"{path}/status", {"status": "working"})
    silent = problem(agent.send(f"{path}/status", {"status": "failed"}), 422, "invalid")
    assert silent["errors"][0]["path"] == "detail"
    why = "the interpreter is missing"
    failed = agent.send(f"{path}/status", {"status": "failed", "detail": why}).json()
    assert (failed["status"], failed["attempt"]) == ("pending", 2)
    assert failed["last_outcome"] == f"failed: {why}"
    again = claim_ready(agent)
    assert again == path
    context = agent.read(f"{again}?expand=all")["failure_context"]
    assert [(one["class"], one["root_cause"]) for one in context] == [("agent_failed", why)]
    assert finish(agent, again)["status"] == "done"


def test_4_collaboration_by_observation_is_seen_by_agents_and_on_the_board(
    agent: Caller, project: Project, sir: Caller, board: Client
) -> None:
    other = agent_client(project, name="zhangfei")
    sir.send("/api/projects/demo/messages", {"text": "Implement a function that makes slugs"})
    path = claim_ready(agent)
    risk = "Slugs of Chinese titles would all be empty."
    seen = {"comment_type": "observation", "body": risk}
    assert agent.send(f"{path}/comments", seen).status_code == 201
    asked = {"body": "@zhangfei which scripts do the titles use?"}
    assert agent.send(f"{path}/comments", asked).status_code == 201
    (mail,) = other.read(MAIL, box="in")["results"]
    assert (mail["sender"], mail["content"]) == ("agent:worker", asked["body"])
    answered = {"body": "Latin and Chinese; keep both."}
    assert other.send(f"{path}/comments", answered).status_code == 201
    task = agent.read(f"{path}?expand=all")
    assert [one["body"] for one in task["observations"]] == [risk]
    assert [one["author"] for one in task["comments"]] == ["worker", "worker", "zhangfei"]
    root = Task.objects.get()
    page = board.get(f"/projects/demo/tasks/{root.pk}/risks/").content.decode()
    assert risk in page
    assert finish(agent, path)["status"] == "done"


def test_5_mail_of_type_inform_arrives_expects_no_reply_and_creates_none(
    agent: Caller, project: Project
) -> None:
    other = agent_client(project, name="zhangfei")
    told = {"type": "inform", "to": "zhangfei", "message_id": "m-1", "content": "接口已改为 v2。"}
    for status in (201, 200):
        assert agent.send(MAIL, told).status_code == status
    (mail,) = other.read(MAIL, box="in")["results"]
    assert (mail["sender"], mail["content"], mail["expects_reply"]) == (
        "agent:worker", "接口已改为 v2。", False,
    )  # fmt: skip
    assert other.read(MAIL, box="in", unanswered="true")["results"] == []
    assert agent.read(MAIL, box="in")["results"] == []
    assert not Task.objects.exists()
