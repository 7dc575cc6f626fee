"""What agents meet after Sir refused a red line: his reason at once, and no second question."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.models import Decision, Project, Task
from tests.api.callers import Caller, problem
from tests.api.test_deviations_api import deviate
from tests.api.test_hooks_api import answer, denied, tool
from tests.api.test_marks_of_origin import CROSSING, HARMLESS, start
from tests.api.test_spawn import spawn
from tests.factories import (
    agent_step,
    confirm_intent,
    drive,
    fresh,
    new_agent,
    open_decision_of,
    submit_plan,
)
from tests.services.test_planning import hand_in_plan

NO = "use the copy"
DROP = tool("PreToolUse", tool_input={"command": "psql -c 'DROP TABLE orders'"})


def refuse(sir: Caller, project: Project) -> None:
    """Say no over REST to the one red line that is open."""
    decision = open_decision_of(project, "waiting_human")
    verdict = {"verdict": "reject", "version": decision.version, "digest": decision.digest}
    done = sir.send(f"/api/decisions/{decision.pk}/decide", {**verdict, "reason": NO})
    assert done.status_code == 200, done.content


def claim_confirmed(agent: Caller, task: str) -> None:
    """Claim a task that became critical, and have its intent confirmed."""
    assert agent.send(f"{task}/claim").status_code == 200
    assert agent.agent is not None
    confirm_intent(Task.objects.get(), agent.agent)


def test_refused_command_stays_denied_and_the_agent_goes_on(
    agent: Caller, sir: Caller, project: Project, task: str
) -> None:
    agent.send(f"{task}/claim")
    agent.send(f"{task}/status", {"status": "working"})
    assert "red line" in denied(answer(agent, DROP))
    refuse(sir, project)
    shown = agent.read(f"{task}?expand=all")
    assert (shown["status"], shown["attempt"]) == ("working", 1)
    assert shown["comments"][-1]["body"] == NO
    assert NO in denied(answer(agent, DROP))
    assert answer(agent, tool("PreToolUse")) == {}
    assert agent.read(task)["status"] == "working"
    assert Decision.objects.count() == 1


def test_refused_light_plan_is_one_try_and_the_same_plan_fails_without_a_question(
    agent: Caller, sir: Caller, project: Project, task: str
) -> None:
    agent.send(f"{task}/claim")
    start(agent, task, CROSSING)
    refuse(sir, project)
    again = Task.objects.get()
    assert (again.status, again.failure_count) == ("pending", 1)
    assert NO in again.failure_context[-1]["root_cause"]
    claim_confirmed(agent, task)
    assert start(agent, task, CROSSING).status_code == 200
    assert fresh(again).failure_count == 2
    assert NO in fresh(again).failure_context[-1]["root_cause"]
    assert Decision.objects.filter(kind="waiting_human").count() == 1


def test_another_light_plan_goes_on(
    agent: Caller, sir: Caller, project: Project, task: str
) -> None:
    agent.send(f"{task}/claim")
    start(agent, task, CROSSING)
    refuse(sir, project)
    claim_confirmed(agent, task)
    assert start(agent, task, HARMLESS).json()["status"] == "working"


def test_refused_child_is_not_spawned_again(
    agent: Caller, sir: Caller, project: Project, held: str
) -> None:
    red = {"title": "one", "description": "删除生产数据"}
    made = spawn(agent, held, **red).json()
    refuse(sir, project)
    assert agent.read(f"/api/projects/demo/tasks/{made['id']}")["status"] == "failed"
    told = problem(spawn(agent, held, **red), 409, "red_line_refused")
    assert NO in told["detail"]
    assert agent.read(held)["status"] == "working"
    assert Decision.objects.count() == 1


def test_refused_step_is_not_added_to_the_plan_again(
    agent: Caller, sir: Caller, project: Project
) -> None:
    red: dict[str, Any] = {"id": "n", "action": "delete the production database"}
    root = submit_plan(project, agent_step("a"), is_trusted=False, backend="external")
    drive(project)
    assert deviate(agent, root, "added", new_step=red).status_code == 201
    refuse(sir, project)
    drive(project)
    assert fresh(root).attempt == 2
    hand_in_plan(root, new_agent(), {"steps": [agent_step("a")]})
    told = problem(deviate(agent, root, "added", new_step=red), 409, "red_line_refused")
    assert NO in told["detail"]


@pytest.mark.parametrize("verdict", ["reject", "abort"])
def test_no_needs_a_reason(
    agent: Caller, sir: Caller, project: Project, held: str, verdict: str
) -> None:
    spawn(agent, held, description="删除生产数据")
    decision = open_decision_of(project, "waiting_human")
    body = {"verdict": verdict, "version": decision.version, "digest": decision.digest}
    problem(sir.send(f"/api/decisions/{decision.pk}/decide", body), 422, "invalid")
