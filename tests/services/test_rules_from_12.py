"""The rules of DESIGN section 4 from 12 on, each test named by its number."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestration.errors import Conflict, Invalid, LeaseLost
from orchestration.models import Assignment, AuditEvent, Decision, Project
from orchestration.selectors.tasks import not_ready_reason
from orchestration.services.intake import NewTask, create_task, create_tasks, submit_message
from orchestration.services.tasks import replan_task
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


@pytest.fixture
def project() -> Project:
    return new_project()


def test_rule_12_commands_outside_the_list_are_asked_for_once(project: Project) -> None:
    root = submit_plan(
        project, step("1", run=["touch a"]), step("2", run=["touch b"]), is_trusted=False
    )
    drive(project)
    decision = open_decision_of(project, "command_approval")
    assert [one["argv"] for one in decision.content["commands"]] == [["touch", "a"], ["touch", "b"]]
    assert not_ready_reason(child(root, "1")) == "awaiting_command_approval"
    decide(decision, "approve")
    drive(project)
    assert fresh(root).status == TaskStatus.DONE


def test_rule_12_reject_sends_the_plan_back_and_nothing_ran(project: Project) -> None:
    root = submit_plan(project, step("1", run=["touch a"]), is_trusted=False)
    drive(project)
    decide(open_decision_of(project), "reject", reason="not on this machine")
    drive(project)
    assert root.plans.latest("pk").status == "needs_revision"
    waiting = root.assignments.filter(seat="planner", status="queued").get()
    assert waiting.backend == "external"
    assert not Assignment.objects.filter(task__parent=root, status="done").exists()


def test_rule_12_allowed_commands_are_not_asked_for() -> None:
    project = new_project(policy={"commands": {"allow": ["touch"]}})
    root = submit_plan(project, step("1", run=["touch a"]), is_trusted=False)
    drive(project)
    assert fresh(root).status == TaskStatus.DONE


def test_rule_13_a_red_line_asks_once_and_the_approval_holds(project: Project) -> None:
    root = submit_plan(project, step("1", run=["rm -r olddata"]), agent_step("2", after=["1"]))
    drive(project)
    step1 = child(root, "1")
    assert step1.status == TaskStatus.WAITING_HUMAN
    assert step1.risk_level == "critical"
    decide(open_decision_of(project, "waiting_human"), "approve")
    drive(project)
    assert child(root, "1").status != TaskStatus.WAITING_HUMAN
    assert Decision.objects.filter(task=step1).count() == 1


def test_rule_14_scope_defaults_to_writes_and_expected_artifacts(project: Project) -> None:
    root = submit_plan(
        project,
        step("1", writes=["out/a.txt"], expected_artifacts=["b.txt"]),
        step("2"),
    )
    drive(project)
    assert child(root, "1").scope == ["out/a.txt", "b.txt"]
    assert child(root, "2").scope == []


def test_rule_15_a_direct_task_that_fails_twice_is_upgraded_before_the_failure_counts(
    project: Project,
) -> None:
    text = "迁移整个支付系统的数据库架构，涉及线上订单，路径不清楚，需要调研多个系统"
    task = create_task(project_id=project.pk, new=NewTask(text=text, route="direct"), actor=SIR)
    agent = new_agent()
    for _ in range(2):
        claim(task, agent)
        set_status(task, agent, "failed", detail="stuck")
    task = fresh(task)
    assert task.route == "three_step"
    assert task.status == TaskStatus.WORKING
    assert task.failure_count == 1
    with pytest.raises(LeaseLost):
        set_status(task, agent, "review")


def test_rule_16_blocked_without_blockers_asks_sir(project: Project) -> None:
    root = submit_plan(project, agent_step("1"))
    drive(project)
    agent = new_agent()
    claim(child(root, "1"), agent)
    set_status(child(root, "1"), agent, "blocked", detail="no access")
    assert child(root, "1").status == TaskStatus.BLOCKED
    decide(open_decision_of(project, "clarification"), "confirmed")
    assert child(root, "1").status == TaskStatus.PENDING


def test_rule_16_the_blocker_frees_the_blocked_at_once_and_cycles_are_refused(
    project: Project,
) -> None:
    root = submit_plan(project, agent_step("1"), agent_step("2"))
    drive(project)
    one, two = new_agent(), new_agent()
    first, second = child(root, "1"), child(root, "2")
    claim(first, one)
    claim(second, two)
    set_status(second, two, "blocked", detail="needs 1", blocked_by=(str(first.pk),))
    with pytest.raises(Invalid, match="cycle"):
        set_status(first, one, "blocked", detail="needs 2", blocked_by=(str(second.pk),))
    set_status(first, one, "working")
    hand_in(first, one)
    set_status(first, one, "review")
    assert child(root, "2").status == TaskStatus.PENDING


def test_rule_18_a_retry_resumes_the_project_and_resets_the_count() -> None:
    project = new_project(policy={"thresholds": {"max_retries": 1}})
    root = submit_plan(project, step("1", run=["ls wanted"]))
    drive(project)
    assert fresh(root).status == TaskStatus.FATAL
    assert fresh(root).project.status == "suspended"
    (Path(project.workspace) / "wanted").write_text("here now")
    decide(open_decision_of(project, "max_retries"), "retry", reason="look again")
    root = fresh(root)
    assert root.project.status == "active"
    assert root.failure_count == 0
    drive(project)
    assert fresh(root).status == TaskStatus.DONE


def test_rule_20_unknown_roots_are_refused_with_nothing_created(project: Project) -> None:
    rows = [NewTask(text="打开A", external_key="a"), NewTask(text="打开B", depends_on=("nowhere",))]
    with pytest.raises(Invalid, match="unknown dependencies"):
        create_tasks(project_id=project.pk, rows=rows, actor=SIR)


def test_a_replan_by_sir_counts_nothing(project: Project) -> None:
    root = submit_plan(project, agent_step("1"))
    drive(project)
    replan_task(task_id=root.pk, actor=SIR, reason="new facts")
    drive(project)
    root = fresh(root)
    assert root.failure_count == 0
    assert root.attempt == 2
    with pytest.raises(Conflict):
        replan_task(task_id=child(root, "1").pk, actor=SIR, reason="a step is not")


def test_one_planned_root_runs_at_a_time_and_direct_ones_do_not_queue_behind(
    project: Project,
) -> None:
    first = submit_plan(project, agent_step("1"))
    second = submit_plan(project, agent_step("1"))
    direct, _, _ = submit_message(project_id=project.pk, text="打开首页", actor=SIR)
    assert fresh(first).status == TaskStatus.WORKING
    assert fresh(second).status == TaskStatus.PENDING
    assert not_ready_reason(fresh(second)) == "queued_root"
    assert not_ready_reason(fresh(direct)) is None
    drive(project)
    execute(child(first, "1"), new_agent())
    assert fresh(first).status == TaskStatus.DONE
    assert fresh(second).status == TaskStatus.WORKING


def test_every_transition_of_a_run_is_explained_by_its_events(project: Project) -> None:
    root = submit_plan(project, step("1"))
    drive(project)
    task = child(root, "1")
    events = AuditEvent.objects.filter(task=task, kind__startswith="task.").order_by("pk")
    states = [event.after["status"] for event in events if event.after]
    assert states == ["pending", "claimed", "working", "review", "done"]
    befores = [event.before["status"] for event in events if event.before]
    assert befores == states[:-1]
