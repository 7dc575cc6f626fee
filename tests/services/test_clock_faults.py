"""All clocks of a project stand still while it is not active, whoever suspended it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from orchestration.models import Assignment, Decision, Project
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
EXPIRY = {"medium_defect": {"policy_id": "late", "after_seconds": 60, "outcome": "reject"}}


@pytest.fixture
def project(settings: Any) -> Project:
    settings.COUNTERSIGN_UNSANDBOXED = True
    return new_project()


def reread(held: Assignment) -> Assignment:
    return Assignment.objects.get(pk=held.pk)


def test_max_retries_stops_the_leases_of_the_project_and_the_verdict_starts_them(
    project: Project,
) -> None:
    agent = new_agent(project=project)
    other = create_task(project_id=project.pk, new=NewTask(text="one", route="direct"), actor=SIR)
    held = claim(other, agent)
    submit_plan(project, step("1", run=["false"]))
    drive(project)
    assert fresh(other).project.status == "suspended"
    assert reread(held).is_clock_stopped
    assert sweep()["expired_leases"] == 0
    decide(open_decision_of(project, "max_retries"), "abort", reason="not worth it")
    resumed = reread(held)
    assert resumed.status == "leased"
    assert resumed.lease_expires_at is not None
    assert resumed.lease_expires_at > timezone.now() + timedelta(minutes=10)


def test_a_pause_of_a_suspended_project_survives_the_verdict(project: Project) -> None:
    root = submit_plan(project, step("1", run=["false"]))
    drive(project)
    pause_project(project_id=project.pk, actor=SIR)
    decide(open_decision_of(project, "max_retries"), "abort", reason="no")
    assert fresh(root).project.status == "suspended"
    resume_project(project_id=project.pk, actor=SIR)
    assert fresh(root).project.status == "active"


def test_a_deadline_stands_still_and_goes_on_with_what_was_left() -> None:
    project = new_project(policy={"expiry": EXPIRY})
    submit_plan(project, step("1", run=["false"], on_failure={"severity": "medium"}))
    drive(project)
    decision = open_decision_of(project, "medium_defect")
    Decision.objects.filter(pk=decision.pk).update(deadline=timezone.now() + timedelta(seconds=30))
    pause_project(project_id=project.pk, actor=SIR)
    decision.refresh_from_db()
    assert decision.deadline is None
    assert sweep()["decisions"] == 0
    resume_project(project_id=project.pk, actor=SIR)
    decision = open_decision_of(project, "medium_defect")
    assert decision.deadline is not None
    left = (decision.deadline - timezone.now()).total_seconds()
    assert 20 < left <= 30
    assert decision.on_expiry is not None
    assert "remaining_seconds" not in decision.on_expiry
    decide(decision, "accept_as_is", reason="fine")
    assert decision.digest == Decision.objects.get(pk=decision.pk).digest


def test_c_31_a_question_asked_again_after_a_retry_follows_todays_policy() -> None:
    rule = {"policy_id": "old", "after_seconds": 60, "outcome": "abort"}
    project = new_project(policy={"expiry": {"waiting_human": rule}})
    root = submit_plan(project, agent_step("1"))
    drive(project)
    agent = new_agent(project=project)
    claim(child(root, "1"), agent)
    set_status(child(root, "1"), agent, "working")
    set_status(child(root, "1"), agent, "waiting_human", detail="left or right?")
    first = open_decision_of(project, "waiting_human")
    today = {"expiry": {"waiting_human": rule | {"policy_id": "new", "after_seconds": 600}}}
    Project.objects.filter(pk=project.pk).update(policy_json=json.dumps(today))
    decide(first, "answer", reason="left")
    set_status(child(root, "1"), agent, "failed", detail="wrong way")
    claim(child(root, "1"), agent)
    set_status(child(root, "1"), agent, "working")
    set_status(child(root, "1"), agent, "waiting_human", detail="left or right?")
    again, old = open_decision_of(project, "waiting_human"), Decision.objects.get(pk=first.pk)
    assert (again.pk != old.pk, old.status, old.reason) == (True, "decided", "left")
    assert again.on_expiry is not None
    assert old.on_expiry is not None
    assert (again.on_expiry["policy_id"], old.on_expiry["policy_id"]) == ("new", "old")
    assert again.deadline is not None
    assert 590 < (again.deadline - again.created_at).total_seconds() <= 600


def test_an_item_opened_while_suspended_gets_its_full_time_at_resume() -> None:
    project = new_project(policy={"expiry": EXPIRY})
    submit_plan(project, agent_step("1", verify=["false"]), step("2"))
    root = project.tasks.get(parent__isnull=True)
    drive(project)
    agent = new_agent(project=project)
    claim(child(root, "1"), agent)
    pause_project(project_id=project.pk, actor=SIR)
    set_status(child(root, "1"), agent, "blocked", detail="no access")
    assert open_decision_of(project).deadline is None


def test_a_running_sibling_of_a_paused_project_is_not_cut_off(project: Project) -> None:
    root = submit_plan(project, agent_step("slow"), agent_step("bad"))
    drive(project)
    slow, bad = new_agent(project=project), new_agent(project=project)
    held = claim(child(root, "slow"), slow)
    set_status(child(root, "slow"), slow, "working")
    claim(child(root, "bad"), bad)
    set_status(child(root, "bad"), bad, "failed", detail="no")
    claim(child(root, "bad"), bad)
    pause_project(project_id=project.pk, actor=SIR)
    set_status(child(root, "bad"), bad, "failed", detail="no")
    assert fresh(root).is_ending
    assert reread(held).status == "leased"
    hand_in(child(root, "slow"), slow)
    set_status(child(root, "slow"), slow, "review")
    assert not fresh(root).is_ending
    assert child(root, "slow").status == TaskStatus.DONE


def test_a_project_whose_last_root_ended_while_suspended_is_completed(project: Project) -> None:
    root = submit_plan(project, agent_step("1"))
    drive(project)
    agent = new_agent(project=project)
    claim(child(root, "1"), agent)
    set_status(child(root, "1"), agent, "working")
    pause_project(project_id=project.pk, actor=SIR)
    hand_in(child(root, "1"), agent)
    set_status(child(root, "1"), agent, "review")
    assert fresh(root).project.status == "suspended"
    resume_project(project_id=project.pk, actor=SIR)
    assert fresh(root).project.status == "completed"


def test_a_project_is_completed_when_its_last_root_is_aborted(project: Project) -> None:
    execute(create_task(project_id=project.pk, new=NewTask(text="a", route="direct"), actor=SIR),
            new_agent(project=project))  # fmt: skip
    bad = submit_plan(project, step("1", run=["false"]))
    drive(project)
    decide(open_decision_of(project, "max_retries"), "abort", reason="no")
    assert fresh(bad).project.status == "completed"


def test_a_project_with_nothing_but_cancelled_roots_stays_active(project: Project) -> None:
    root = submit_plan(project, agent_step("1"))
    cancel_task(task_id=root.pk, actor=SIR, reason="no")
    pause_project(project_id=project.pk, actor=SIR)
    resume_project(project_id=project.pk, actor=SIR)
    assert fresh(root).project.status == "active"


def planted(project: Project, *, stands: bool) -> tuple[Assignment, Decision]:
    """Give a project a lease and a question whose clocks all stand, or all run."""
    task = create_task(project_id=project.pk, new=NewTask(text="one", route="direct"), actor=SIR)
    other = create_task(project_id=project.pk, new=NewTask(text="two", route="direct"), actor=SIR)
    held = claim(task, new_agent(project=project))
    asking = new_agent(project=project)
    claim(other, asking)
    set_status(other, asking, "waiting_human", detail="which?")
    decision = open_decision_of(project, "waiting_human")
    rule: dict[str, Any] = {"policy_id": "late", "after_seconds": 60, "outcome": "reject"}
    if stands:
        Assignment.objects.filter(pk=held.pk).update(
            is_clock_stopped=True, lease_expires_at=None, lease_remaining_seconds=30
        )
        rule["remaining_seconds"] = 60
    deadline = None if stands else timezone.now() + timedelta(hours=1)
    Decision.objects.filter(pk=decision.pk).update(deadline=deadline, on_expiry=rule)
    return held, decision


def test_sweep_starts_clocks_that_were_left_standing(project: Project) -> None:
    held, decision = planted(project, stands=True)
    assert sweep()["clocks"] == 1
    assert not reread(held).is_clock_stopped
    decision.refresh_from_db()
    assert decision.deadline is not None
    assert sweep()["clocks"] == 0


def test_sweep_stops_clocks_that_were_left_running(project: Project) -> None:
    held, decision = planted(project, stands=False)
    Project.objects.filter(pk=project.pk).update(status="suspended", is_paused_by_sir=True)
    assert sweep()["clocks"] == 1
    assert reread(held).is_clock_stopped
    decision.refresh_from_db()
    assert decision.deadline is None
    assert sweep()["clocks"] == 0
