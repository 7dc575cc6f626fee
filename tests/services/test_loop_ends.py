"""How the loop ends, or stops for Sir, whatever the last root was and however it ended."""

from __future__ import annotations

import pytest

from orchestration.models import ControlCommand, Decision, Project, Task
from orchestration.services.intake import NewTask, create_task
from orchestration.services.projects import pause_project, resume_project
from orchestration.services.sweeping import sweep
from orchestration.services.tasks import cancel_task
from orchestration.services.work import Actor
from orchestration.states import TaskStatus
from tests.factories import (
    agent_step,
    child,
    claim,
    decide,
    drive,
    execute,
    fresh,
    new_agent,
    new_project,
    open_decision_of,
    set_status,
    step,
    submit_plan,
)

pytestmark = pytest.mark.django_db
SIR = Actor("human:sir")
ONE_TRY = {"thresholds": {"max_retries": 1, "step_attempts": 1}}


def commands(project: Project) -> list[tuple[str, str]]:
    """List what was commanded, and after which root."""
    rows = ControlCommand.objects.filter(project=project).order_by("pk")
    return list(rows.values_list("next_action", "task__external_key"))


def direct_task(project: Project, key: str) -> Task:
    """Put up a root outside the loop."""
    new = NewTask(text="open it", route="direct", external_key=key)
    return create_task(project_id=project.pk, new=new, actor=SIR)


def asked_of(project: Project) -> list[list[str]]:
    """List what each open item of the loop names as its blockers."""
    rows = Decision.objects.filter(project=project, status="open", kind="waiting_human")
    return [[one["name"] for one in row.content["blockers"]] for row in rows.order_by("pk")]


def test_the_end_is_commanded_when_the_last_root_is_direct() -> None:
    project = new_project()
    small = direct_task(project, "small")
    submit_plan(project, step("1"), external_key="planned")
    drive(project)
    assert commands(project) == [("PROCEED_TO_NEXT_TASK", "planned")]
    execute(small, new_agent(project=project))
    assert fresh(small).project.status == "completed"
    assert commands(project)[1:] == [("TERMINATE_SUCCESS", "small")]
    end = ControlCommand.objects.filter(project=project).last()
    assert end is not None
    assert "PASSED" in str(end.final_report)
    assert {one["status"] for one in end.master_list_after.values()} == {"COMPLETED"}


def test_the_end_is_commanded_when_the_last_root_is_cancelled() -> None:
    project = new_project()
    submit_plan(project, step("1"), external_key="done")
    gone = submit_plan(project, agent_step("1"), external_key="gone")
    drive(project)
    cancel_task(task_id=gone.pk, actor=SIR, reason="enough")
    assert fresh(gone).project.status == "completed"
    assert commands(project)[1:] == [("TERMINATE_SUCCESS", "gone")]
    assert ControlCommand.objects.get(task=gone).master_list_after["gone"]["status"] == "CANCELLED"


@pytest.mark.parametrize("verdict", ["abort", "waive"])
def test_the_end_is_commanded_once_when_sir_ends_the_last_fatal_root(verdict: str) -> None:
    project = new_project(policy=ONE_TRY)
    submit_plan(project, step("1"), external_key="done")
    fatal = submit_plan(project, agent_step("1"), external_key="fatal")
    drive(project)
    fail_once(project, fatal)
    decide(open_decision_of(project, "max_retries"), verdict, reason="enough")
    assert fresh(fatal).project.status == "completed"
    assert commands(project)[1:] == [
        ("SUSPEND_FOR_HUMAN", "fatal"), ("TERMINATE_SUCCESS", "fatal"),
    ]  # fmt: skip


def test_a_project_in_which_the_loop_did_nothing_ends_without_a_command() -> None:
    project = new_project()
    small = direct_task(project, "small")
    execute(small, new_agent(project=project))
    assert fresh(small).project.status == "completed"
    assert commands(project) == []


def fail_once(project: Project, root: Task) -> None:
    """Let a step of a root fail for good: the root is fatal, the project stands."""
    agent = new_agent(project=project)
    claim(child(root, "1"), agent)
    set_status(child(root, "1"), agent, "failed", detail="no")
    assert fresh(root).status == TaskStatus.FATAL


def two_in_a_row(project: Project) -> tuple[Task, Task]:
    """Put up a root at work and one that waits for it."""
    first = submit_plan(project, agent_step("1"), external_key="first")
    behind = submit_plan(project, step("1"), external_key="behind", depends_on=("first",))
    drive(project)
    return first, behind


def test_sir_is_asked_when_what_the_rest_needs_is_cancelled() -> None:
    project = new_project()
    first, behind = two_in_a_row(project)
    cancel_task(task_id=first.pk, actor=SIR, reason="enough")
    assert asked_of(project) == [["behind"]]
    decide(open_decision_of(project, "waiting_human"), "approve", reason="look again")
    assert asked_of(project) == [["behind"]]
    sweep()
    assert asked_of(project) == [["behind"]]
    decide(open_decision_of(project, "waiting_human"), "abort", reason="then not")
    assert asked_of(project) == []
    assert fresh(behind).status == TaskStatus.CANCELLED


def test_sir_is_asked_when_he_gives_up_what_the_rest_needs() -> None:
    project = new_project(policy=ONE_TRY)
    first, _ = two_in_a_row(project)
    fail_once(project, first)
    decide(open_decision_of(project, "max_retries"), "abort", reason="enough")
    assert asked_of(project) == [["behind"]]


def test_sir_is_asked_when_a_project_resumes_in_which_nothing_can_start() -> None:
    project = new_project()
    first, _ = two_in_a_row(project)
    pause_project(project_id=project.pk, actor=SIR)
    cancel_task(task_id=first.pk, actor=SIR, reason="enough")
    assert asked_of(project) == []
    resume_project(project_id=project.pk, actor=SIR)
    assert asked_of(project) == [["behind"]]


def test_the_sweep_asks_about_a_project_of_which_nobody_was_asked() -> None:
    project = new_project()
    first, _ = two_in_a_row(project)
    assert sweep()["stalled"] == 0
    cancel_task(task_id=first.pk, actor=SIR, reason="enough")
    Decision.objects.filter(project=project).delete()
    assert sweep()["stalled"] == 1
    assert asked_of(project) == [["behind"]]
    assert sweep()["stalled"] == 0


def test_aborting_all_that_is_stuck_asks_nothing_on_the_way() -> None:
    project = new_project()
    first, _ = two_in_a_row(project)
    submit_plan(project, step("1"), external_key="last", depends_on=("behind",))
    cancel_task(task_id=first.pk, actor=SIR, reason="enough")
    asked = Decision.objects.filter(project=project).count()
    decide(open_decision_of(project, "waiting_human"), "abort", reason="then not")
    assert Decision.objects.filter(project=project).count() == asked
    assert not Task.objects.filter(project=project, parent=None).exclude(status="cancelled")
