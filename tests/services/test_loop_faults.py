"""Failures end everything of their task, ask Sir where they must, and stop nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.errors import LeaseLost
from orchestration.models import Assignment, Decision, Project, Task
from orchestration.services.agent_claims import Wish, claim_for_agent
from orchestration.services.agent_results import Hold, submit_result
from orchestration.services.intake import NewTask, create_task, submit_message
from orchestration.services.sweeping import sweep
from orchestration.services.tasks import cancel_task
from orchestration.services.work import Actor
from orchestration.states import Seat, TaskStatus
from tests.factories import (
    actor_of,
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
FIX = {"description": "same", "patch": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"}


@pytest.fixture
def project(settings: Any) -> Project:
    settings.COUNTERSIGN_UNSANDBOXED = True
    return new_project(policy={"limits": {"concurrent_roots": 3}})


def direct_task(project: Project, text: str = "one") -> Task:
    return create_task(project_id=project.pk, new=NewTask(text=text, route="direct"), actor=SIR)


def judge(project: Project, *defects: dict[str, Any]) -> None:
    """Let an external QA find defects."""
    qa = new_agent(project=project)
    held = claim_for_agent(agent=qa, wish=Wish([Seat.QA]), actor=actor_of(qa))
    assert held is not None
    found = [{"title": "bad", "description": "d", "evidence": "e", **one} for one in defects]
    submit_result(
        hold=Hold(held.pk, qa, held.lease_token),
        document={"verdict": "fail", "artifact_digests": [], "defects": found},
        actor=actor_of(qa),
    )


def take_fix(project: Project) -> Hold | None:
    fixer = new_agent(project=project)
    held = claim_for_agent(agent=fixer, wish=Wish([Seat.FIXER]), actor=actor_of(fixer))
    return Hold(held.pk, fixer, held.lease_token) if held is not None else None


def propose(hold: Hold, text: str) -> None:
    submit_result(
        hold=hold,
        document={
            "status": "review",
            "proposed_fix": {"description": text, "commands": ["true"]},
        },
        actor=actor_of(hold.agent),
    )


def block(project: Project, behind: Task) -> Task:
    """Make a direct task that an agent blocked behind another one."""
    task, agent = direct_task(project, "blocked one"), new_agent(project=project)
    claim(task, agent)
    set_status(task, agent, "blocked", detail="needs it", blocked_by=(str(behind.pk),))
    assert fresh(task).status == TaskStatus.BLOCKED
    return task


def test_a_blocker_that_is_cancelled_later_asks_sir(project: Project) -> None:
    blocker = direct_task(project, "two")
    task = block(project, blocker)
    assert not Decision.objects.filter(task=task).exists()
    cancel_task(task_id=blocker.pk, actor=SIR, reason="no")
    decide(open_decision_of(project, "clarification"), "confirmed")
    assert fresh(task).status == TaskStatus.PENDING


def test_a_blocker_that_ends_fatal_asks_sir_and_its_retry_takes_the_question_back(
    project: Project,
) -> None:
    blocker = submit_plan(project, agent_step("1"))
    drive(project)
    task = block(project, blocker)
    for _ in range(6):
        agent = new_agent(project=project)
        claim(child(blocker, "1"), agent)
        set_status(child(blocker, "1"), agent, "failed", detail="no")
        drive(project)
    assert fresh(blocker).status == TaskStatus.FATAL
    asked = open_decision_of(project, "clarification")
    assert asked.task_id == task.pk
    decide(open_decision_of(project, "max_retries"), "retry", reason="again")
    drive(project)
    execute(child(blocker, "1"), new_agent(project=project))
    assert fresh(blocker).status == TaskStatus.DONE
    asked.refresh_from_db()
    assert asked.status == "withdrawn"
    assert fresh(task).status == TaskStatus.PENDING


def test_a_step_that_fails_for_good_asks_about_what_it_blocks(project: Project) -> None:
    root = submit_plan(project, agent_step("1"), agent_step("slow"))
    drive(project)
    claim(child(root, "slow"), new_agent(project=project))
    task = block(project, child(root, "1"))
    for _ in range(2):
        agent = new_agent(project=project)
        claim(child(root, "1"), agent)
        set_status(child(root, "1"), agent, "failed", detail="no")
    assert open_decision_of(project, "clarification").task_id == task.pk


def test_changes_requested_in_the_last_round_fail_the_step(project: Project) -> None:
    fix = {"description": "d", "commands": ["true"]}
    root = submit_plan(
        project, step("1", run=["false"], on_failure={"severity": "medium", "fix": fix})
    )
    drive(project)
    failed = child(root, "1")
    for number in range(2):
        decide(open_decision_of(project, "medium_defect"), "request_changes", reason="other")
        hold = take_fix(project)
        assert hold is not None
        propose(hold, f"another {number}")
        shown = open_decision_of(project, "medium_defect").content
        assert shown["round"] <= shown["rounds"]
    decide(open_decision_of(project, "medium_defect"), "request_changes", reason="once more")
    assert fresh(failed).failure_context[-1]["class"] == "rejected_by_sir"
    assert "once more" in fresh(failed).failure_context[-1]["root_cause"]
    assert take_fix(project) is None


@pytest.mark.parametrize("is_taken", [False, True])
def test_a_failed_step_leaves_no_fixer_of_another_defect_alive(is_taken: bool) -> None:  # noqa: FBT001
    project = new_project(policy={"seats": {"qa": ["external"]}})
    root = submit_plan(project, step("1"))
    drive(project)
    judge(project, {"severity": "medium", "title": "a"}, {"severity": "medium", "title": "b"})
    first, second = Decision.objects.filter(project=project, status="open").order_by("pk")
    decide(first, "request_changes", reason="other")
    hold = take_fix(project) if is_taken else None
    failed = child(root, "1")
    decide(second, "reject", reason="no")
    live = Assignment.objects.filter(task=failed, status__in=["queued", "leased"])
    assert not live.exists()
    assert take_fix(project) is None
    if hold is not None:
        with pytest.raises(LeaseLost):
            propose(hold, "too late")


def test_a_message_that_fails_three_times_stays_failed_and_stops_nothing(
    project: Project,
) -> None:
    task, _, _ = submit_message(project_id=project.pk, text="谢谢", actor=SIR)
    assert task.kind == "message"
    for _ in range(3):
        agent = new_agent(project=project)
        claim(task, agent)
        set_status(task, agent, "failed", detail="cannot")
    task = fresh(task)
    assert (task.status, task.failure_count) == (TaskStatus.FAILED, 3)
    assert task.project.status == "active"
    assert not Decision.objects.filter(project=project).exists()
    sweep()
    assert fresh(task).status == TaskStatus.FAILED


def test_a_fix_that_sir_rejected_on_a_direct_root_is_not_asked_about_again() -> None:
    project = new_project(policy={"seats": {"qa": ["external"]}})
    task, agent = direct_task(project), new_agent(project=project)
    execute(task, agent)
    judge(project, {"severity": "medium", "proposed_fix": FIX})
    decide(open_decision_of(project, "medium_defect"), "reject", reason="no")
    execute(task, agent)
    judge(project, {"severity": "medium", "proposed_fix": FIX})
    assert not Decision.objects.filter(project=project, status="open").exists()
    assert fresh(task).failure_count == 2
