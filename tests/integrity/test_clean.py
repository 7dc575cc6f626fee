"""What the engine writes itself is never a fault."""

from __future__ import annotations

import pytest

from orchestration.models import AuditEvent, Plan, Project, Task
from orchestration.services.intake import NewTask, create_task
from orchestration.services.integrity import check_project
from orchestration.services.work import SYSTEM
from tests.factories import (
    agent_step,
    child,
    claim,
    confirm_intent,
    decide,
    drive,
    execute,
    new_agent,
    new_project,
    open_decision_of,
    set_status,
    step,
    submit_plan,
)

pytestmark = pytest.mark.django_db
FIX = {"description": "make the file", "commands": ["touch missing.txt"]}


def faults_of(project: Project) -> list[str]:
    """Everything that a whole check finds."""
    found = check_project(project_id=project.pk, actor=SYSTEM, source="test")
    return [one.detail for one in found.faults]


def test_a_project_with_defects_failures_replans_and_agents_has_no_fault() -> None:
    project = new_project()
    agent = new_agent(project=project)
    submit_plan(
        project,
        step("1", run=["sh -c 'echo hi > made.txt'"], expected_artifacts=["made.txt"]),
        step("2", run=["ls missing.txt"], after=["1"],
             on_failure={"severity": "medium", "fix": FIX}),
        agent_step("3", after=["2"]),
        is_trusted=True,
    )  # fmt: skip
    drive(project)
    assert faults_of(project) == []
    decide(open_decision_of(project), "approve")
    drive(project)
    root = project.tasks.get(parent__isnull=True)
    execute(child(root, "3"), agent)
    drive(project)
    submit_plan(project, step("1", run=["false"]), text="fails")
    drive(project)
    assert faults_of(project) == []
    decide(open_decision_of(project, "max_retries"), "waive", reason="enough")
    drive(project)
    assert faults_of(project) == []
    assert Project.objects.get(pk=project.pk).status == "completed"


def begun_light(project: Project) -> Task:
    """A light task whose executor sent its plan."""
    agent = new_agent(project=project)
    new = NewTask(text="tidy the report", route="light_plan")
    task = create_task(project_id=project.pk, new=new, actor=SYSTEM)
    claim(task, agent)
    confirm_intent(task, agent)
    return set_status(task, agent, "working", light_plan=("read", "write"))


def test_a_light_plan_is_in_the_trail_and_no_fault() -> None:
    project = new_project()
    task = begun_light(project)
    plan = Plan.objects.get(task=task)
    event = AuditEvent.objects.get(subject=f"plan:{plan.pk}")
    assert (event.kind, event.task_id) == ("plan.drafted", task.pk)
    assert event.after == {"revision": 1, "is_light": True, "steps": 2}
    assert faults_of(project) == []


def test_a_light_plan_from_before_they_were_recorded_is_no_fault() -> None:
    project = new_project()
    task = begun_light(project)
    old = Plan.objects.create(
        task=task, attempt=1, revision=2, status="draft", is_light=True, backend="external",
        body={"steps": []},
    )  # fmt: skip
    assert faults_of(project) == []
    Plan.objects.filter(pk=old.pk).update(status="approved")
    assert faults_of(project) == [f"plan:{old.pk} is approved; no event of it is there"]
