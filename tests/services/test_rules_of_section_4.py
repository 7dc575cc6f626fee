"""The rules of DESIGN section 4, each test named by its number."""

from __future__ import annotations

import pytest

from orchestration.errors import NotReady, ProjectSuspended
from orchestration.models import Assignment, AuditEvent, Decision, Project, Task
from orchestration.selectors.tasks import not_ready_reason
from orchestration.services.intake import NewTask, create_tasks
from orchestration.services.projects import pause_project, resume_project
from orchestration.services.sweeping import sweep
from orchestration.services.tasks import cancel_task
from orchestration.services.work import Actor
from orchestration.states import TaskStatus
from tests.factories import (
    agent_step,
    child,
    claim,
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


@pytest.fixture
def project() -> Project:
    return new_project()


def test_rule_1_assessment_starts_only_when_a_task_is_otherwise_ready(project: Project) -> None:
    first, second = create_tasks(
        project_id=project.pk,
        rows=[
            NewTask(text="打开首页", external_key="a"),
            NewTask(text="打开报表", external_key="b", depends_on=("a",)),
        ],
        actor=SIR,
    )
    assert first.assessments.count() == 1
    assert second.assessments.count() == 0
    assert not_ready_reason(fresh(second)) == "dependencies"
    execute(first, new_agent())
    assert fresh(second).assessments.count() == 1


def test_rule_1_a_ready_plan_takes_its_steps_highest_risk(project: Project) -> None:
    root = submit_plan(
        project,
        step("1", risk_level="high", risks=["may break"]),
        step("2"),
    )
    drive(project)
    root = fresh(root)
    assert (root.route, root.risk_level, root.complexity) == ("workflow", "high", "high")


def test_rule_2_the_defect_loop_keeps_the_task_in_review_until_rounds_are_used_up() -> None:
    project = new_project(policy={"thresholds": {"fix_rounds": 2, "max_retries": 1}})
    fix = {"description": "does not help", "commands": ["true"]}
    root = submit_plan(
        project, step("1", run=["false"], on_failure={"severity": "high", "fix": fix})
    )
    drive(project)
    failed = child(root, "1")
    assert failed.status == TaskStatus.FAILED
    assert failed.fix_round == 2
    assert [one["outcome"] for one in failed.defects.get().rounds] == ["did_not_verify"] * 2
    notices = Decision.objects.filter(project=project, kind="high_notice")
    assert notices.exists()


def test_rule_2_only_the_newest_run_counts(project: Project) -> None:
    fix = {"description": "make it", "commands": ["touch there"]}
    root = submit_plan(
        project, step("1", run=["ls there"], on_failure={"severity": "critical", "fix": fix})
    )
    drive(project)
    assert child(root, "1").status == TaskStatus.DONE
    assert not Decision.objects.filter(project=project).exists()


def test_rule_2_a_low_defect_is_accepted_by_qa(project: Project) -> None:
    root = submit_plan(project, step("1", run=["false"], on_failure={"severity": "low"}))
    drive(project)
    assert child(root, "1").defects.get().status == "accepted_as_is"
    assert fresh(root).status == TaskStatus.DONE


def test_rule_3_a_failed_step_ends_the_attempt_and_starts_no_sibling(project: Project) -> None:
    root = submit_plan(
        project,
        step("bad", run=["false"]),
        agent_step("slow"),
        agent_step("later", after=["slow"]),
    )
    agent = new_agent()
    drive(project)
    slow = child(root, "slow")
    ended = fresh(root)
    assert (ended.status, ended.attempt, ended.failure_count) == (TaskStatus.FATAL, 3, 3)
    assert slow.status == TaskStatus.PENDING
    claimed = AuditEvent.objects.filter(kind="task.claimed", task__parent=root)
    assert set(claimed.values_list("task__step_key", flat=True)) == {"bad"}
    with pytest.raises(ProjectSuspended):
        claim(slow, agent)


def test_rule_3_running_siblings_finish_before_the_attempt_is_concluded(project: Project) -> None:
    root = submit_plan(project, agent_step("slow"), agent_step("bad"), agent_step("other"))
    drive(project)
    agent, other = new_agent(), new_agent()
    claim(child(root, "slow"), agent)
    set_status(child(root, "slow"), agent, "working")
    for _ in range(2):
        claim(child(root, "bad"), other)
        set_status(child(root, "bad"), other, "failed", detail="cannot")
    assert fresh(root).status == TaskStatus.WORKING
    assert fresh(root).is_ending
    with pytest.raises(NotReady):
        claim(child(root, "other"), other)
    hand_in(child(root, "slow"), agent)
    set_status(child(root, "slow"), agent, "review")
    assert (fresh(root).status, fresh(root).failure_count) == (TaskStatus.FAILED, 1)
    drive(project)
    assert fresh(root).attempt == 2


def test_rule_3_a_second_try_in_place_counts_no_failed_attempt(project: Project) -> None:
    root = submit_plan(project, step("1", run=["sh -c 'test -f flag || { touch flag; exit 1; }'"]))
    drive(project)
    assert fresh(root).status == TaskStatus.DONE
    assert child(root, "1").attempt == 2
    assert fresh(root).failure_count == 0


def test_rule_4_replan_keeps_done_and_untouched_steps_and_supersedes_the_rest(
    project: Project,
) -> None:
    root = submit_plan(
        project, step("1"), agent_step("2", after=["1"]), agent_step("3", after=["2"])
    )
    drive(project)
    agent = new_agent()
    before = {key: child(root, key).pk for key in ("1", "2", "3")}
    for _ in range(2):
        claim(child(root, "2"), agent)
        set_status(child(root, "2"), agent, "failed", detail="no")
    drive(project)
    after = {key: child(root, key).pk for key in ("1", "2", "3")}
    assert after["1"] == before["1"]
    assert after["3"] == before["3"]
    assert after["2"] != before["2"]
    old = Task.objects.get(pk=before["2"])
    assert old.is_superseded
    assert root.blueprints.count() == 2
    assert child(root, "1").blueprint == root.blueprints.get(number=2)


def test_rule_5_cancel_withdraws_the_trees_decisions_and_suspend_leaves_them(
    project: Project,
) -> None:
    root = submit_plan(project, step("1", run=["false"], on_failure={"severity": "medium"}))
    drive(project)
    decision = open_decision_of(project)
    pause_project(project_id=project.pk, actor=SIR)
    decision.refresh_from_db()
    assert decision.status == "open"
    resume_project(project_id=project.pk, actor=SIR)
    cancel_task(task_id=root.pk, actor=SIR, reason="not needed")
    decision.refresh_from_db()
    assert decision.status == "withdrawn"
    assert child(root, "1").status == TaskStatus.CANCELLED


def test_rule_7_a_step_cancelled_by_sir_ends_the_attempt_and_counts_nothing(
    project: Project,
) -> None:
    root = submit_plan(project, agent_step("1"), agent_step("2", after=["1"]))
    drive(project)
    cancelled = child(root, "1")
    cancel_task(task_id=cancelled.pk, actor=SIR, reason="wrong idea")
    drive(project)
    root = fresh(root)
    assert fresh(cancelled).cancel_reason == "cancelled_by_sir"
    assert root.failure_count == 0
    assert root.attempt == 2


def test_rule_8_suspended_accepts_results_but_no_claims(project: Project) -> None:
    root = submit_plan(project, agent_step("1"), agent_step("2"))
    drive(project)
    agent = new_agent()
    claim(child(root, "1"), agent)
    set_status(child(root, "1"), agent, "working")
    pause_project(project_id=project.pk, actor=SIR)
    with pytest.raises(ProjectSuspended):
        claim(child(root, "2"), agent)
    hand_in(child(root, "1"), agent)
    set_status(child(root, "1"), agent, "review")
    assert child(root, "1").status == TaskStatus.DONE


def test_rule_8_clocks_stand_still_while_suspended(project: Project) -> None:
    root = submit_plan(project, agent_step("1"))
    drive(project)
    held = claim(child(root, "1"), new_agent())
    pause_project(project_id=project.pk, actor=SIR)
    held.refresh_from_db()
    assert held.is_clock_stopped
    assert held.lease_expires_at is None
    assert sweep()["expired_leases"] == 0
    resume_project(project_id=project.pk, actor=SIR)
    resumed = Assignment.objects.get(pk=held.pk)
    assert not resumed.is_clock_stopped
    assert resumed.lease_expires_at is not None


def test_rule_8_verification_and_qa_of_handed_in_results_finish_while_suspended() -> None:
    project = new_project(policy={"seats": {"executor": ["external"]}})
    root = submit_plan(project, agent_step("1", expected_artifacts=[{"name": "work"}]), step("2"))
    drive(project)
    agent = new_agent()
    claim(child(root, "1"), agent)
    set_status(child(root, "1"), agent, "working")
    hand_in(child(root, "1"), agent)
    set_status(child(root, "1"), agent, "review")
    pause_project(project_id=project.pk, actor=SIR)
    assert child(root, "1").status == TaskStatus.REVIEW
    drive(project)
    assert child(root, "1").status == TaskStatus.DONE
    assert child(root, "2").status == TaskStatus.PENDING
