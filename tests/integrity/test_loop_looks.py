"""The loop looks at a root before a verdict moves it: no move explains what no service wrote."""

from __future__ import annotations

import logging

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orchestration.contracts.validation import parse_package
from orchestration.models import ControlCommand, Project, Task, TaskDependency
from orchestration.services.integrity import check_next_project
from orchestration.services.integrity_looks import quick_faults
from orchestration.services.validation import Posted, post_package
from orchestration.services.work import Actor
from tests.factories import (
    agent_step,
    child,
    decide,
    drive,
    execute,
    fresh,
    new_agent,
    new_project,
    open_decision_of,
    step,
    submit_plan,
)
from tests.integrity.planting import EDGE, EVENT, TASK, force

pytestmark = pytest.mark.django_db(transaction=True)
SIR = Actor("human:sir")
GO = {"verdict": "GO", "at": "2026-01-01T00:00:00Z", "basis": "all is well", "summary": []}
NO_GO = GO | {"verdict": "NO-GO", "root_cause": "bad", "failure_class": "check_failed"}


def commands(project: Project) -> list[str]:
    """What the loop commanded."""
    rows = ControlCommand.objects.filter(project=project).order_by("pk")
    return list(rows.values_list("next_action", flat=True))


def state_of(project: Project) -> str:
    """A project's state as it is stored."""
    return str(Project.objects.get(pk=project.pk).status)


def test_a_root_that_passed_waits_for_repair_and_is_judged_then() -> None:
    project = new_project("demo")
    root = submit_plan(project, step("1"))
    far = submit_plan(new_project("far"), agent_step("1"))
    edge = TaskDependency.objects.create(task=root, requires=far)
    behind = submit_plan(project, agent_step("1"), text="behind")
    drive(project)
    assert (fresh(root).status, state_of(project)) == ("review", "safe_stop")
    assert commands(project) == []
    assert fresh(behind).status == "pending"
    assert open_decision_of(project, "safe_stop").content["source"] == "loop"
    force(f"DELETE FROM {EDGE} WHERE id = %s", edge.pk)
    decide(open_decision_of(project, "safe_stop"), "resume", reason="repaired")
    drive(project)
    assert (fresh(root).status, state_of(project)) == ("done", "active")
    assert commands(project) == ["PROCEED_TO_NEXT_TASK"]
    assert fresh(behind).status == "working"


@pytest.mark.parametrize("package", [GO, NO_GO])
def test_a_verdict_does_not_explain_what_was_forced(package: dict[str, object]) -> None:
    project = new_project("demo")
    root = submit_plan(project, step("1"), agent_step("2"))
    drive(project)
    step_2 = child(root, "2")
    force(f"UPDATE {TASK} SET status = 'done' WHERE id = %s", step_2.pk)
    force(f"UPDATE {TASK} SET status = 'review', awaits_verdict = TRUE WHERE id = %s", root.pk)
    posted = Posted(package=parse_package(package), is_loop_state=True)
    judged = post_package(task_id=root.pk, posted=posted, actor=SIR)
    assert judged.command is None
    assert commands(project) == []
    assert (fresh(root).status, fresh(root).failure_count) == ("review", 0)
    assert state_of(project) == "safe_stop"
    named = [one["subject"] for one in open_decision_of(project, "safe_stop").content["faults"]]
    assert named == [f"task:{root.pk}", f"task:{step_2.pk}"]


def test_a_forced_step_alone_is_seen_when_its_root_ends() -> None:
    project = new_project("demo")
    root = submit_plan(project, step("1"), agent_step("2"), agent_step("3"))
    drive(project)
    step_2 = child(root, "2")
    force(f"UPDATE {TASK} SET status = 'done' WHERE id = %s", step_2.pk)
    execute(child(root, "3"), new_agent(project=project))
    drive(project)
    assert (fresh(root).status, state_of(project)) == ("review", "safe_stop")
    force(f"UPDATE {TASK} SET status = 'pending' WHERE id = %s", step_2.pk)
    assert quick_faults(project.pk, root.pk) == []


def test_the_look_reads_the_trail_by_the_task_alone() -> None:
    project = new_project("demo")
    root = submit_plan(project, step("1"), agent_step("2"))
    drive(project)
    with CaptureQueriesContext(connection) as seen:
        assert quick_faults(project.pk, root.pk) == []
    assert len(seen) == 2
    told = [one["sql"] for one in seen if EVENT in one["sql"]]
    assert len(told) == 1
    assert '"project_id" =' not in told[0]


def test_the_schedule_checks_completed_projects_too(caplog: pytest.LogCaptureFixture) -> None:
    project = new_project("demo")
    root: Task = submit_plan(project, step("1"))
    drive(project)
    assert (state_of(project), check_next_project()) == ("completed", 0)
    pk = child(root, "1").pk
    force(f"UPDATE {TASK} SET status = 'review' WHERE id = %s", pk)
    with caplog.at_level(logging.ERROR):
        assert check_next_project() == 1
    assert f"task:{pk} is review; its history left it done" in caplog.text
    assert state_of(project) == "completed"
