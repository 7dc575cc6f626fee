"""Sir's "no" to a red line: it is final for that text, and the project goes on without it."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.models import AuditEvent, Decision, Project, Task
from orchestration.services.intake import NewTask, create_task
from orchestration.services.projects import ProjectChange, update_project
from orchestration.services.sweeping import sweep
from orchestration.services.work import Actor
from orchestration.states import TaskStatus
from tests.factories import (
    agent_step,
    child,
    decide,
    drive,
    fresh,
    new_agent,
    new_project,
    open_decision_of,
    step,
    submit_plan,
)
from tests.services.test_planning import hand_in_plan

pytestmark = pytest.mark.django_db
SIR = Actor("human:sir")
RED = {"run": ["rm -r olddata"], "risks": ["old data goes"]}
ALLOWED = {"commands": {"allow": ["rm", "true"]}}
NO = "keep the old data"


@pytest.fixture
def project() -> Project:
    return new_project(policy=ALLOWED)


def red_lines(project: Project) -> int:
    """How often Sir was asked about a red line."""
    return Decision.objects.filter(project=project, content__reason="red_line").count()


def refuse(project: Project) -> None:
    """Say no to the one red line that is open, and let everything run on."""
    decision = open_decision_of(project, "waiting_human")
    assert decision.content["reason"] == "red_line"
    decide(decision, "reject", reason=NO)
    drive(project)
    sweep()
    drive(project)


def consequences(project: Project) -> list[str]:
    """What the card says a "no" does."""
    options = open_decision_of(project, "waiting_human").options
    [reject] = [one for one in options if one["verdict"] == "reject"]
    return [one["code"] for one in reject["consequences"]]


def test_no_to_a_step_of_a_fixed_plan_ends_its_task_and_nothing_else(project: Project) -> None:
    root = submit_plan(project, step("1", **RED), step("2"), agent_step("3", after=["1"]))
    following = submit_plan(project, agent_step("1"))
    drive(project)
    assert consequences(project) == ["root_ends", "not_asked_again"]
    refuse(project)
    root = fresh(root)
    assert (root.status, root.cancel_reason) == (TaskStatus.CANCELLED, "cancelled_by_sir")
    assert root.failure_count == 0
    ended = AuditEvent.objects.get(task=root, kind="task.cancelled")
    assert (ended.actor, ended.why) == ("human:sir", f"red line refused: {NO}")
    assert child(root, "1").status == TaskStatus.CANCELLED
    assert child(root, "3").status == TaskStatus.CANCELLED
    assert root.project.status == "active"
    assert fresh(following).status == TaskStatus.WORKING
    assert red_lines(project) == 1
    assert not Decision.objects.filter(project=project, status="open").exists()


@pytest.mark.parametrize("route", ["direct", "light_plan", "three_step"])
def test_no_to_a_tasks_own_text_ends_it_at_once(project: Project, route: str) -> None:
    root = create_task(
        project_id=project.pk, new=NewTask(text="删除生产数据库", route=route), actor=SIR
    )
    assert consequences(project) == ["task_cancelled", "not_asked_again"]
    refuse(project)
    root = fresh(root)
    assert (root.status, root.project.status) == (TaskStatus.CANCELLED, "active")
    assert red_lines(project) == 1


def planned(project: Project, document: dict[str, Any]) -> Task:
    """A root that an agent plans, with its first plan handed in."""
    new = NewTask(text="把散落的配置收拢起来", route="three_step")
    root = create_task(project_id=project.pk, new=new, actor=SIR)
    hand_in_plan(root, new_agent(), document)
    return root


def test_no_to_a_planners_step_counts_once_and_its_reason_reaches_the_planner(
    project: Project,
) -> None:
    root = planned(project, {"steps": [step("1", **RED)]})
    assert consequences(project) == ["step_fails", "root_replans", "not_asked_again"]
    refuse(project)
    root = fresh(root)
    assert (root.status, root.attempt, root.failure_count) == (TaskStatus.WORKING, 2, 1)
    assert NO in root.failure_context[-1]["root_cause"]
    asked = root.assignments.get(seat="planner", status="queued").input
    assert NO in asked["failures"][-1]["root_cause"]
    hand_in_plan(root, new_agent(), {"steps": [step("1", run=["true"])]})
    drive(project)
    assert fresh(root).status == TaskStatus.DONE
    assert red_lines(project) == 1


def test_the_same_red_line_in_another_plan_goes_back_to_the_planner_not_to_sir(
    project: Project,
) -> None:
    root = planned(project, {"steps": [step("1", **RED)]})
    refuse(project)
    again = {"summary": "worded otherwise", "steps": [step("0"), step("b", **RED, after=["0"])]}
    hand_in_plan(root, new_agent(), again)
    asked = root.assignments.get(seat="planner", status="queued").input
    assert asked["findings"] == [f"step b crosses a red line that Sir refused: {NO}"]
    assert fresh(root).revisions_used == 1
    for number in range(2):
        hand_in_plan(root, new_agent(), {**again, "summary": f"wording {number}"})
    decision = open_decision_of(project, "plan_rejected")
    assert decision.content["findings"] == asked["findings"]
    assert red_lines(project) == 1


def test_a_plan_accepted_over_the_refusal_asks_again_and_says_what_was_said(
    project: Project,
) -> None:
    root = planned(project, {"steps": [step("1", **RED)]})
    refuse(project)
    for number in range(3):
        document = {"summary": f"wording {number}", "steps": [step("b", **RED)]}
        hand_in_plan(root, new_agent(), document)
    decide(open_decision_of(project, "plan_rejected"), "accept", reason="now it may")
    drive(project)
    decision = open_decision_of(project, "waiting_human")
    assert decision.content["refused_before"] == NO
    decide(decision, "approve")
    drive(project)
    assert child(root, "b").status != TaskStatus.WAITING_HUMAN


def test_a_root_that_sir_sends_back_may_ask_again(project: Project) -> None:
    once = ProjectChange(policy={"thresholds": {"max_retries": 1}})
    update_project(project_id=project.pk, change=once, actor=SIR)
    root = planned(project, {"steps": [step("1", **RED)]})
    refuse(project)
    assert fresh(root).status == TaskStatus.FATAL
    decide(open_decision_of(project, "max_retries"), "retry", reason="the data is saved now")
    hand_in_plan(root, new_agent(), {"summary": "again", "steps": [step("1", **RED)]})
    drive(project)
    decision = open_decision_of(project, "waiting_human")
    assert (decision.content["reason"], decision.content["refused_before"]) == ("red_line", NO)
    refuse(project)
    assert (
        "red line refused"
        in open_decision_of(project, "max_retries").content["failures"][-1]["root_cause"]
    )


def test_what_one_task_was_refused_another_may_ask(project: Project) -> None:
    submit_plan(project, step("1", **RED))
    drive(project)
    refuse(project)
    submit_plan(project, step("1", **RED))
    drive(project)
    decision = open_decision_of(project, "waiting_human")
    assert "refused_before" not in decision.content
