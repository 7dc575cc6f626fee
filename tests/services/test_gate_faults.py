"""The gate before a task starts: red lines in every text, a planner for every plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestration.models import Decision, Project, Task
from orchestration.services.importing import import_master_list
from orchestration.services.intake import NewTask, create_task
from orchestration.services.progress import Progress, report_progress
from orchestration.services.projects import ProjectChange, update_project
from orchestration.services.sweeping import sweep
from orchestration.services.tasks import StatusChange, change_status
from orchestration.services.work import Actor
from orchestration.states import TaskStatus
from tests.factories import (
    actor_of,
    agent_step,
    child,
    claim,
    confirm_intent,
    decide,
    drive,
    fresh,
    hand_in,
    new_agent,
    new_project,
    open_decision_of,
    set_status,
    step,
    submit_plan,
)

pytestmark = pytest.mark.django_db
SIR = Actor("human:sir")
RED = "删除生产数据库"
ONLY_RULES = {"seats": {"planner": ["rules"]}, "commands": {"allow": ["false"]}}
BIG = "重构整个支付系统架构，开发、测试、部署、迁移数据库"


def red_line_of(project: Project) -> Decision:
    decision = open_decision_of(project, "waiting_human")
    assert decision.content["reason"] == "red_line"
    return decision


@pytest.mark.parametrize(
    "fix",
    [
        {"description": RED, "commands": ["touch fixed"]},
        {"description": "d", "commands": ["sh -c 'echo DROP TABLE users > fixed'"]},
        {
            "description": "d",
            "patch": "--- a/a.sql\n+++ b/a.sql\n@@ -1 +1 @@\n-a\n+DROP TABLE users\n",
        },
    ],
)
def test_a_planned_fix_that_crosses_a_red_line_stops_the_step(fix: dict[str, Any]) -> None:
    project = new_project()
    (Path(project.workspace) / "a.sql").write_text("a\n")
    root = submit_plan(
        project, step("1", run=["false"], on_failure={"severity": "critical", "fix": fix})
    )
    drive(project)
    assert child(root, "1").status == TaskStatus.WAITING_HUMAN
    assert not child(root, "1").assignments.exists()
    assert red_line_of(project).content["fix"]["description"] == fix["description"]
    assert (Path(project.workspace) / "a.sql").read_text() == "a\n"
    assert not (Path(project.workspace) / "fixed").exists()


def test_an_imported_failed_root_meets_its_red_line_before_it_is_planned_again() -> None:
    project = new_project()
    document = {"A": {"status": "FAILED", "description": RED, "reason": "x"}}
    root = import_master_list(project_id=project.pk, document=document, actor=SIR).tasks[0]
    sweep()
    assert fresh(root).status == TaskStatus.WAITING_HUMAN
    decide(red_line_of(project), "approve")
    assert fresh(root).status == TaskStatus.WORKING
    assert root.assignments.get(status="queued").seat == "planner"


def test_an_amended_text_meets_its_red_line() -> None:
    project = new_project()
    root = submit_plan(project, step("1", run=["false"]))
    drive(project)
    decide(open_decision_of(project, "max_retries"), "amend", reason="x", payload={"text": RED})
    assert fresh(root).status == TaskStatus.WAITING_HUMAN
    red_line_of(project)


def test_a_root_that_waits_at_its_red_line_holds_up_no_other() -> None:
    project = new_project()
    first = submit_plan(project, agent_step("1"), text=RED)
    second = submit_plan(project, agent_step("1"))
    third = submit_plan(project, agent_step("1"))
    assert fresh(first).status == TaskStatus.WAITING_HUMAN
    assert [fresh(one).status for one in (second, third)] == ["working", "pending"]
    decide(red_line_of(project), "approve")
    assert fresh(first).status == TaskStatus.PENDING


def test_a_root_that_nobody_can_plan_again_asks_sir_at_once() -> None:
    project = new_project(policy=ONLY_RULES)
    root = submit_plan(project, step("1", run=["false"]), is_trusted=False, backend="external")
    drive(project)
    root = fresh(root)
    assert (root.status, root.failure_count) == (TaskStatus.FATAL, 1)
    assert root.project.status == "suspended"
    assert "Nobody can plan" in open_decision_of(project, "max_retries").question
    sweep()
    decide(open_decision_of(project, "max_retries"), "retry", reason="now it can")
    assert fresh(root).status == TaskStatus.WAITING_HUMAN
    policy = {"seats": {"planner": ["rules", "external"]}}
    update_project(project_id=project.pk, change=ProjectChange(policy=policy), actor=SIR)
    decide(open_decision_of(project, "waiting_human"), "approve")
    assert fresh(root).status == TaskStatus.WORKING
    assert root.assignments.get(status="queued").seat == "planner"


def test_an_imported_root_that_nobody_can_plan_spoils_no_sweep() -> None:
    project = new_project(policy={"seats": {"planner": ["rules"]}})
    document = {"A": {"status": "FAILED", "description": BIG, "reason": "x"}}
    root = import_master_list(project_id=project.pk, document=document, actor=SIR).tasks[0]
    sweep()
    assert fresh(root).status == TaskStatus.FATAL


def test_a_new_root_that_nobody_can_plan_waits_for_sir_and_the_next_one_runs() -> None:
    project = new_project(policy={"seats": {"planner": ["rules"]}})
    root = create_task(project_id=project.pk, new=NewTask(text=BIG, route="three_step"), actor=SIR)
    assert fresh(root).status == TaskStatus.WAITING_HUMAN
    assert open_decision_of(project).content["reason"] == "seat_unfilled"
    other = submit_plan(project, step("1"))
    drive(project)
    assert fresh(other).status == TaskStatus.DONE


def planner_of(task: Task) -> dict[str, Any]:
    row = task.assignments.filter(seat="planner").latest("pk")
    document: dict[str, Any] = row.input
    return document


def test_an_upgraded_tasks_outputs_become_planning_input() -> None:
    project = new_project()
    agent = new_agent(project=project)
    task = create_task(project_id=project.pk, new=NewTask(text=BIG, route="light_plan"), actor=SIR)
    claim(task, agent)
    confirm_intent(task, agent)
    change = StatusChange("working", light_plan=("a",))
    change_status(task_id=task.pk, change=change, agent=agent, actor=actor_of(agent))
    hand_in(task, agent, "PARTIAL WORK")
    for domain in ("db", "ops", "front"):
        if fresh(task).route == "three_step":
            break
        report_progress(
            task_id=task.pk,
            progress=Progress(step=20, new_domain=domain, is_uncertain=True),
            agent=agent,
            actor=actor_of(agent),
        )
    assert fresh(task).route == "three_step"
    shown = planner_of(task)["outputs"]
    assert [(one["title"], one["content"]) for one in shown] == [("work", "PARTIAL WORK")]


def test_a_planner_is_shown_profiles_artifacts_and_what_failed() -> None:
    project = new_project()
    root = submit_plan(
        project, step("1"), agent_step("2", after=["1"]), is_trusted=False, backend="external"
    )
    drive(project)
    decide(open_decision_of(project, "command_approval"), "approve")
    drive(project)
    agent = new_agent(project=project)
    for _ in range(2):
        claim(child(root, "2"), agent)
        set_status(child(root, "2"), agent, "failed", detail="the disk is full")
    drive(project)
    asked = planner_of(root)
    assert "SubCoding" in {one["name"] for one in asked["profiles"]}
    assert {one["step"] for one in asked["artifacts"]} == {"1"}
    assert asked["failures"][-1]["root_cause"] == "the disk is full"
