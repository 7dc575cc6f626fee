"""What the engine writes itself is never a fault."""

from __future__ import annotations

import pytest

from orchestration.models import Project
from orchestration.services.integrity import check_project
from orchestration.services.work import SYSTEM
from tests.factories import (
    agent_step,
    child,
    decide,
    drive,
    execute,
    new_agent,
    new_project,
    open_decision_of,
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
