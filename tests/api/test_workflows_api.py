"""Workflows over REST: the list, the start, questions, refusals with lines, the zip."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest

from orchestration.models import AuditEvent, Project, Task
from tests.api.callers import Caller, agent_client, problem
from tests.factories import drive
from tests.flows.scripts import EXPLORED, FIVE_OK, PROPOSAL, TASK_LIST, UNDERSTOOD

BASE = "/api/projects/demo"
HANDOFF = {"comment_type": "handoff", "body": "done; nothing open"}
pytestmark = pytest.mark.django_db


@pytest.fixture
def root(project: Project, sir: Caller) -> str:
    """Sir starts a change. Return its path."""
    asked = {"workflow": "strict-plan", "text": "Add a calculator"}
    made = sir.send(f"{BASE}/workflows", asked)
    assert made.status_code == 201
    assert (made.json()["route"], made.json()["role"]) == ("workflow", "StrictPlan")
    drive(project)
    return f"{BASE}/tasks/{made.json()['key']}"


def step(agent: Caller, root: str, key: str) -> str:
    """Claim a step and start it. Return its path."""
    drive()
    found = Task.objects.get(parent_id=agent.read(root)["id"], step_key=key)
    path = f"{BASE}/tasks/{found.pk}"
    assert agent.send(f"{path}/claim").status_code == 200
    assert agent.send(f"{path}/status", {"status": "working"}).status_code == 200
    return path


def give(agent: Caller, path: str, title: str, content: Any, kind: str = "data") -> Any:
    """Hand in one output."""
    text = content if isinstance(content, str) else json.dumps(content)
    return agent.send(f"{path}/outputs", {"type": kind, "title": title, "content": text})


def review(agent: Caller, path: str) -> Any:
    """Hand off and ask for the review."""
    agent.send(f"{path}/comments", HANDOFF)
    return agent.send(f"{path}/status", {"status": "review"})


def test_list_names_each_command_with_its_agent(agent: Caller) -> None:
    listed = {one["name"]: one["agent"] for one in agent.read("/api/workflows")["results"]}
    assert listed == {
        "three-step": "planner", "strict-plan": "StrictPlan", "strict-spec": "StrictSpec",
        "test": "TddRunAndFix", "review-security": "QuickExplore",
    }  # fmt: skip


def explored(agent: Caller, root: str) -> None:
    """Understand and explore; what is no exploration is refused."""
    path = step(agent, root, "understand")
    give(agent, path, "understanding", UNDERSTOOD)
    assert review(agent, path).json()["status"] == "done"
    path = step(agent, root, "explore")
    refused = give(agent, path, "x.py", "import os", "code")
    problem(refused, 403, "read_only")
    assert AuditEvent.objects.filter(kind="permission.refused", after__code="read_only").exists()
    give(agent, path, "exploration", {"findings": [{"finding": "none", "evidence": []}]})
    unread = problem(review(agent, path), 422, "invalid")
    assert unread["errors"][0]["path"] == "findings.0.evidence"
    give(agent, path, "exploration", EXPLORED)
    assert review(agent, path).json()["status"] == "done"


def test_change_over_rest_up_to_its_documents(
    project: Project, agent: Caller, sir: Caller, root: str
) -> None:
    judge = agent_client(project, name="judge")
    explored(agent, root)
    path = step(agent, root, "clarify")
    asked = {"questions": [{"question": "Whole numbers?", "options": ["yes", "no"]}]}
    round_one = agent.send(f"{path}/questions", asked)
    assert round_one.status_code == 201
    assert round_one.json()["question"] == "1. Whole numbers? [a) yes / b) no]"
    item = sir.read(f"/api/decisions/{round_one.json()['decision']}/")
    verdict = {"verdict": "answer", "reason": "a", "version": item["version"],
               "digest": item["digest"]}  # fmt: skip
    assert sir.send(f"/api/decisions/{item['id']}/decide", verdict).status_code == 200
    give(agent, path, "decisions", "whole numbers", "document")
    assert review(agent, path).json()["status"] == "done"
    path = step(agent, root, "propose")
    give(agent, path, "proposal.md", PROPOSAL, "document")
    give(agent, path, "task.md", TASK_LIST.replace("- [ ] 1.2", "- [] 1.2"), "document")
    lines = problem(review(agent, path), 422, "document_invalid")["errors"]
    assert {"path": "task.md", "message": "line 11: a box is written [ ] or [x]"} in lines
    give(agent, path, "task.md", TASK_LIST, "document")
    assert review(agent, path).json()["status"] == "review"
    problem(agent.get(f"{root}/documents.zip"), 404, "not_found")
    held = judge.send("/api/assignments/claim", {"seats": ["qa"]}).json()
    assert held["input"]["profile"] == "TaskCheck"
    verdict = {"lease_token": held["lease_token"], "verdict": "pass", "checks": FIVE_OK}
    assert judge.send(f"/api/assignments/{held['id']}/result", verdict).status_code == 200
    packed = agent.get(f"{root}/documents.zip")
    assert packed.status_code == 200
    with zipfile.ZipFile(io.BytesIO(packed.content)) as archive:
        folder = ".cospec/plan/changes/add-calculator"
        assert archive.namelist() == [f"{folder}/proposal.md", f"{folder}/task.md"]
        assert archive.read(f"{folder}/task.md").decode() == TASK_LIST
    (run,) = agent.read(f"{BASE}/workflows")["results"]
    assert (run["change_id"], run["workflow"]) == ("add-calculator", "strict-plan")
    assert [one["path"] for one in run["documents"]] == archive.namelist()


def test_slash_text_comes_through_the_messages_door(sir: Caller, project: Project) -> None:
    sent = sir.send(f"{BASE}/messages", {"text": "/strict-spec add-sign-in: sign people in"})
    assert sent.status_code == 201
    assert sent.json()["assessment"] is None
    assert sent.json()["task"]["role"] == "StrictSpec"
    unknown = sir.send(f"{BASE}/messages", {"text": "/nothing at all"})
    problem(unknown, 422, "unknown_command")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"workflow": "nope", "text": "x"}, "unknown_command"),
        ({"workflow": "test", "text": "  "}, "command_without_text"),
        ({"workflow": "test"}, "invalid"),
        ({"workflow": "test", "text": "x", "more": 1}, "unknown_fields"),
    ],
)
def test_bad_start_is_422_and_makes_nothing(
    sir: Caller, project: Project, body: dict[str, Any], code: str
) -> None:
    problem(sir.send(f"{BASE}/workflows", body), 422, code)
    assert not Task.objects.exists()


def test_reader_may_not_start_one_and_strangers_find_nothing(
    project: Project, outsider: Caller, root: str
) -> None:
    reader = agent_client(project, name="reader", scopes=("observe", "execute"))
    body = {"workflow": "test", "text": "x"}
    problem(reader.send(f"{BASE}/workflows", body), 403, "scope_missing")
    problem(outsider.get(f"{root}/documents.zip"), 404, "not_found")
    problem(outsider.get(f"{BASE}/workflows"), 404, "not_found")


def test_too_many_questions_are_refused_with_every_fault(agent: Caller, root: str) -> None:
    path = step(agent, root, "understand")
    many = {"questions": [{"question": "?", "options": ["one"]}] * 6}
    problem(agent.send(f"{path}/questions", many), 422, "invalid")
    problem(agent.send(f"{path}/questions", {"questions": []}), 422, "invalid")
