"""Children over REST: who may spawn what, what the spawner waits for, how a child ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from orchestration.models import AuditEvent, Decision, Project, Task
from orchestration.states import TaskStatus
from tests.api.callers import Caller, agent_client, events, facts, problem

TASKS = "/api/projects/demo/tasks"
NOTE = {"title": "note", "content": "the work", "type": "document"}
COMPLEX = (
    "先分析需求，然后设计架构，再实现后端，最后优化前端；涉及前端、后端、数据库、安全、运维"
    "多个系统，目标还不清楚，想办法弄好，需要多套工具：docker、kubernetes、terraform、git。"
)
HANDOFF = {"comment_type": "handoff", "body": "Nothing is open."}


@pytest.fixture
def helper(project: Project) -> Caller:
    """A second agent, for the children."""
    return agent_client(project, name="helper")


def spawn(agent: Caller, held: str, **body: Any) -> Any:
    """Spawn a child and return the answer."""
    return agent.send(f"{held}/spawn", {"description": "打开说明文件", **body})


def do_work(agent: Caller, path: str) -> Any:
    """Do a whole task. Return the last answer."""
    assert agent.send(f"{path}/claim").status_code == 200
    agent.send(f"{path}/status", {"status": "working"})
    return hand_in(agent, path)


def hand_in(agent: Caller, path: str) -> Any:
    """Hand in a held task. Return the last answer."""
    agent.send(f"{path}/outputs", NOTE)
    agent.send(f"{path}/comments", HANDOFF)
    return agent.send(f"{path}/status", {"status": "review"})


def test_child_is_assessed_offered_and_done_before_its_spawner(
    agent: Caller, helper: Caller, held: str
) -> None:
    made = spawn(agent, held, scope=["docs/guide.md"])
    assert made.status_code == 201
    child = made.json()
    assert (child["depth"], child["parent"]) == (1, held.rpartition("/")[2])
    assert (child["status"], child["ready"], child["route"]) == ("pending", True, "direct")
    path = f"{TASKS}/{child['id']}"
    assert [one["stage"] for one in helper.read(f"{path}?expand=all")["assessments"]] == ["S0"]
    early = problem(hand_in(agent, held), 409, "children_open")
    assert early["children"] == [child["key"]]
    assert agent.read(held)["status"] == "working"
    assert do_work(helper, path).json()["status"] == "done"
    told = agent.read(f"{held}?expand=all")
    assert [one["body"] for one in told["comments"] if one["author"] == "system"] == [
        f"{child['key']} ended: done"
    ]
    assert [one["status"] for one in told["children"]] == ["done"]
    (mail,) = agent.read("/api/mail/", box="in")["results"]
    assert (mail["type"], mail["sender"], mail["expects_reply"]) == ("inform", "system", False)
    assert mail["content"] == f"{child['key']} ended: done"
    assert agent.send(f"{held}/status", {"status": "review"}).json()["status"] == "done"


def test_failed_child_does_not_fail_its_spawner(agent: Caller, helper: Caller, held: str) -> None:
    child = f"{TASKS}/{spawn(agent, held).json()['id']}"
    for _ in range(2):
        helper.send(f"{child}/claim")
        helper.send(f"{child}/status", {"status": "failed", "detail": "no compiler"})
    assert helper.read(child)["status"] == "failed"
    spawner = agent.read(f"{held}?expand=all")
    assert (spawner["status"], spawner["failure_count"]) == ("working", 0)
    assert "ended: failed, no compiler" in spawner["comments"][0]["body"]
    assert hand_in(agent, held).json()["status"] == "done"


def test_child_that_sir_cancels_does_not_end_its_spawner(
    agent: Caller, sir: Caller, held: str
) -> None:
    child = f"{TASKS}/{spawn(agent, held).json()['id']}"
    assert sir.send(f"{child}/cancel", {"reason": "not needed"}).status_code == 200
    assert agent.read(held)["status"] == "working"
    assert hand_in(agent, held).json()["status"] == "done"


def test_end_of_the_spawner_takes_its_children_with_it(
    agent: Caller, helper: Caller, sir: Caller, held: str
) -> None:
    first = f"{TASKS}/{spawn(agent, held).json()['id']}"
    helper.send(f"{first}/claim")
    agent.send(f"{held}/status", {"status": "failed", "detail": "cannot be done"})
    ended = sir.read(first)
    assert (ended["status"], ended["cancel_reason"]) == ("cancelled", "superseded")
    problem(helper.send(f"{first}/heartbeat"), 409, "lease_lost")
    agent.send(f"{held}/claim")
    agent.send(f"{held}/status", {"status": "working"})
    second = f"{TASKS}/{spawn(agent, held).json()['id']}"
    sir.send(f"{held}/cancel", {"reason": "no"})
    assert sir.read(second)["status"] == "cancelled"


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_child_that_scores_as_complex_takes_the_light_plan_at_every_depth(
    agent: Caller, held: str, depth: int
) -> None:
    Task.objects.filter(parent=None).update(depth=depth - 1)
    made = Task.objects.get(pk=spawn(agent, held, description=COMPLEX).json()["id"])
    assert (made.depth, made.route, made.is_planned) == (depth, "light_plan", False)
    assert made.score is not None
    assert made.score > 15
    assert (made.complexity, made.status) == ("high", "pending")
    assert made.assignments.get().seat == "executor"


def test_spawned_light_child_that_is_uncertain_is_scored_again_and_stays(
    agent: Caller, helper: Caller, held: str
) -> None:
    child = f"{TASKS}/{spawn(agent, held, description=COMPLEX).json()['id']}"
    helper.send(f"{child}/claim")
    Task.objects.filter(depth=1).update(status=TaskStatus.WORKING)
    assert helper.send(f"{child}/progress", {"uncertain": True}).status_code == 200
    made = Task.objects.get(depth=1)
    again = made.assessments.get(stage="S1", trigger="uncertain")
    assert again.total is not None
    assert again.total > 15
    assert (made.route, made.status) == ("light_plan", "working")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"role": "SubCoding"}, 403, "spawn_matrix"),
        ({"role": "Nobody"}, 422, "invalid"),
        ({"description": "  IMPLEMENT the  greeting! "}, 422, "not_smaller"),
        ({"description": ""}, 422, "invalid"),
        ({"scope": ["."]}, 422, "not_smaller"),
        ({"scope": ["../elsewhere"]}, 422, "workspace"),
        ({"depth": 0}, 422, "unknown_fields"),
        ({"estimated_steps": 0}, 422, "invalid"),
        ({"description": "x" * 1_000_001}, 413, "too_large"),
    ],
)
def test_child_that_may_not_be_is_refused_and_nothing_is_made(
    agent: Caller, held: str, body: Mapping[str, Any], status: int, code: str
) -> None:
    problem(spawn(agent, held, **body), status, code)
    assert Task.objects.count() == 1


def test_estimate_and_scope_are_below_those_of_the_task(agent: Caller, held: str) -> None:
    Task.objects.update(scope=["src"], estimated_steps=4)
    found = problem(spawn(agent, held, scope=["src"], estimated_steps=4), 422, "not_smaller")
    assert [one["path"] for one in found["errors"]] == ["scope", "estimated_steps"]
    assert spawn(agent, held, scope=["src/a"], estimated_steps=3).status_code == 201


def test_depth_and_width_end_the_spawning(agent: Caller, sir: Caller, held: str) -> None:
    sir.patch("/api/projects/demo/", {"policy": {"limits": {"children": 2}}}, format="json")
    assert spawn(agent, held).status_code == 201
    assert spawn(agent, held, description="打开日志").status_code == 201
    problem(spawn(agent, held, description="打开首页"), 403, "spawn_width")
    Task.objects.filter(parent=None).update(depth=3)
    found = problem(spawn(agent, held, description="打开首页"), 403, "spawn_depth")
    assert found["depth"] == 3
    assert len(events("permission.refused")) == 2


def test_only_the_holder_spawns_and_only_while_it_works(
    agent: Caller, helper: Caller, task: str
) -> None:
    problem(spawn(agent, task), 409, "lease_lost")
    agent.send(f"{task}/claim")
    claimed = problem(spawn(agent, task), 409, "illegal_transition")
    assert claimed["allowed"] == ["working"]
    agent.send(f"{task}/status", {"status": "working"})
    problem(spawn(helper, task), 409, "lease_lost")
    assert not Task.objects.filter(parent__isnull=False).exists()


def test_child_may_block_its_spawner_until_it_is_done(
    agent: Caller, helper: Caller, held: str
) -> None:
    child = spawn(agent, held).json()
    body = {"status": "blocked", "detail": "needs the child", "blocked_by": [child["key"]]}
    assert agent.send(f"{held}/status", body).json()["status"] == "blocked"
    ready = helper.read(TASKS, ready="true")["results"]
    assert [one["id"] for one in ready] == [child["id"]]
    assert do_work(helper, f"{TASKS}/{child['id']}").json()["status"] == "done"
    assert agent.read(held)["status"] == "pending"


def test_red_line_in_a_child_sends_it_to_sir(agent: Caller, held: str) -> None:
    child = spawn(agent, held, description="删除生产数据").json()
    assert (child["status"], child["risk_level"]) == ("waiting_human", "critical")
    assert Decision.objects.get().content["reason"] == "red_line"


def test_spawn_is_in_the_trail(agent: Caller, held: str) -> None:
    child = spawn(agent, held).json()
    (event,) = AuditEvent.objects.filter(task_id=child["id"], kind="task.pending")
    told = facts(event)
    assert (event.actor, event.why, told["depth"]) == ("agent:worker", "spawned", 1)
    assert told["status"] == TaskStatus.PENDING
