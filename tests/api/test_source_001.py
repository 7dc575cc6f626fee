"""The tables of source document 001, section 3.2, word for word, with and without a slash."""

from __future__ import annotations

import pytest

from orchestration.models import Project
from orchestration.states import TASK_MOVES, TaskStatus
from tests.api.callers import Caller

ENDINGS = pytest.mark.parametrize("end", ["", "/"], ids=["bare", "slash"])
HANDOFF = "做了什么决策、为什么；遇到什么问题、怎么解决的；给下一个 Agent 的建议和注意事项"


@pytest.fixture
def claimed(agent: Caller, task: str) -> str:
    """A task whose next word is the agent's."""
    assert agent.send(f"{task}/claim").status_code == 200
    return task


@ENDINGS
def test_needed_operations(agent: Caller, claimed: str, end: str) -> None:
    seen = agent.read(f"{claimed}{end}", expand="all")
    assert {"comments", "outputs", "observations"} <= seen.keys()
    begun = agent.send(f"{claimed}/status{end}", {"status": "working"})
    assert (begun.status_code, begun.json()["status"]) == (200, "working")
    for kind in ("code", "document", "data", "config", "other"):
        body = {"type": kind, "title": f"a {kind}", "content": "x = 1", "summary": "one line"}
        made = agent.send(f"{claimed}/outputs{end}", body)
        assert (made.status_code, made.json()["type"]) == (201, kind)
        assert (made.json()["summary"], made.json()["content"]) == ("one line", "x = 1")
    body = {"comment_type": "handoff", "body": HANDOFF}
    assert agent.send(f"{claimed}/comments{end}", body).status_code == 201
    done = agent.send(f"{claimed}/status{end}", {"status": "review"})
    assert (done.status_code, done.json()["status"]) == (200, "done")
    kinds = [one["type"] for one in agent.read(f"{claimed}{end}", expand="all")["outputs"]]
    assert sorted(kinds) == ["code", "config", "data", "document", "other"]


@ENDINGS
def test_failure_with_its_reason(agent: Caller, claimed: str, end: str) -> None:
    answer = agent.send(f"{claimed}/status{end}", {"status": "failed", "detail": "原因"})
    assert answer.status_code == 200
    assert answer.json()["last_outcome"] == "failed: 原因"


@ENDINGS
def test_operations_of_working_together(
    agent: Caller, claimed: str, project: Project, end: str
) -> None:
    bodies = (
        ({"comment_type": "handoff", "body": HANDOFF}, "handoff"),
        ({"body": "讨论"}, "general"),
        ({"comment_type": "observation", "body": "发现风险"}, "observation"),
        ({"comment_type": "review", "body": "看过了"}, "review"),
    )
    for body, kind in bodies:
        made = agent.send(f"{claimed}/comments{end}", body)
        assert (made.status_code, made.json()["comment_type"]) == (201, kind)
    whole = agent.read(f"{claimed}{end}", expand="all")
    assert [one["comment_type"] for one in whole["comments"]] == [kind for _, kind in bodies]
    assert [one["body"] for one in whole["observations"]] == ["发现风险"]
    (listed,) = agent.read(f"/api/projects/{project.slug}/tasks{end}")["results"]
    assert listed["status"] == "claimed"


@ENDINGS
@pytest.mark.parametrize("status", ["failed", "blocked", "waiting_human"])
@pytest.mark.parametrize("before", [(), ("working",)], ids=["claimed", "working"])
def test_ways_out_of_the_work(
    agent: Caller, claimed: str, status: str, end: str, before: tuple[str, ...]
) -> None:
    for one in before:
        assert agent.send(f"{claimed}/status", {"status": one}).status_code == 200
    answer = agent.send(f"{claimed}/status{end}", {"status": status, "detail": "因为"})
    assert answer.status_code == 200
    # A failed leaf has another attempt at once, and who is blocked by nothing named asks Sir.
    kept = {"failed": "pending", "blocked": "blocked", "waiting_human": "waiting_human"}
    assert answer.json()["status"] == kept[status]


def test_diagram_of_the_source_is_in_the_table_of_moves() -> None:
    moves = {one: set(TASK_MOVES[one]) for one in TaskStatus}
    assert "working" in moves[TaskStatus.CLAIMED]
    assert {"review", "failed", "blocked", "waiting_human"} <= moves[TaskStatus.WORKING]
    assert {"done", "pending"} <= moves[TaskStatus.REVIEW]
