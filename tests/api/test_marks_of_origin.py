"""Work that an agent thought of by itself is marked; plans and texts that cross a red line wait."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.models import Decision, Plan, Task
from tests.api.callers import Caller, events, facts, problem
from tests.factories import confirm_intent

TASKS = "/api/projects/demo/tasks"
MESSAGES = "/api/projects/demo/messages"
HARMLESS = ["read the page", "write the note"]
CROSSING = ["read the page", "delete the production database"]


@pytest.mark.parametrize(
    ("path", "body"),
    [(MESSAGES, {"text": "Implement a nightly check"}), (TASKS, {"title": "打开日志"})],
)
def test_self_initiated_work_passes_s0_and_is_marked_everywhere(
    agent: Caller, path: str, body: dict[str, Any]
) -> None:
    made = agent.send(path, {**body, "self_initiated": True}).json()
    task = made.get("task", made)
    assert task["self_initiated"] is True
    whole = agent.read(f"{TASKS}/{task['id']}?expand=all")
    assert whole["assessments"][0]["stage"] == "S0"
    assert facts(events("task.pending")[0])["self_initiated"] is True
    assert agent.send(path, body).json().get("task", {}).get("self_initiated", False) is False


@pytest.mark.parametrize(
    ("path", "body"), [(MESSAGES, {"text": "Implement it"}), (TASKS, {"title": "打开日志"})]
)
def test_people_initiate_nothing_by_themselves(
    sir: Caller, project: Any, path: str, body: dict[str, Any]
) -> None:
    found = problem(sir.send(path, {**body, "self_initiated": True}), 422, "invalid")
    assert found["errors"][0]["path"] == "self_initiated"
    assert not Task.objects.exists()


def start(agent: Caller, path: str, steps: list[str]) -> Any:
    """Start a task with a light plan."""
    return agent.send(f"{path}/status", {"status": "working", "light_plan": steps})


def test_light_plan_that_crosses_a_red_line_waits_for_sir(
    agent: Caller, sir: Caller, task: str
) -> None:
    agent.send(f"{task}/claim")
    waiting = start(agent, task, CROSSING).json()
    assert (waiting["status"], waiting["risk_level"]) == ("waiting_human", "critical")
    decision = Decision.objects.get()
    assert decision.content["reason"] == "red_line"
    assert "2. delete the production database" in decision.content["detail"]
    problem(start(agent, task, HARMLESS), 409, "illegal_transition")
    verdict = {"verdict": "approve", "version": decision.version, "digest": decision.digest}
    assert sir.send(f"/api/decisions/{decision.pk}/decide", verdict).status_code == 200
    assert agent.read(task)["status"] == "working"
    again = start(agent, task, CROSSING).json()
    assert again["status"] == "working"
    assert Decision.objects.count() == 1
    assert Plan.objects.filter(is_light=True).count() == 2


def test_light_plan_that_crosses_none_starts(agent: Caller, task: str) -> None:
    agent.send(f"{task}/claim")
    working = start(agent, task, HARMLESS).json()
    assert (working["status"], working["estimated_steps"]) == ("working", 2)


def test_what_sir_approved_in_the_task_is_not_asked_again_in_its_plan(
    agent: Caller, sir: Caller
) -> None:
    body = {"title": "Delete the production database", "route": "direct"}
    path = f"{TASKS}/{agent.send(TASKS, body).json()['id']}"
    decision = Decision.objects.get()
    verdict = {"verdict": "approve", "version": decision.version, "digest": decision.digest}
    assert sir.send(f"/api/decisions/{decision.pk}/decide", verdict).status_code == 200
    agent.send(f"{path}/claim")
    assert agent.agent is not None
    confirm_intent(Task.objects.get(), agent.agent)  # critical risk is high complexity
    plan = ["Delete the production database"]
    assert start(agent, path, plan).json()["status"] == "working"
    assert Decision.objects.count() == 1
