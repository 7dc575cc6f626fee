"""Sentences of DESIGN section 4's rules that no other test holds, each by its number."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from orchestration.contracts.results import CommentInput, ToolCallInput
from orchestration.models import (
    Assignment,
    ControlCommand,
    Decision,
    Project,
    Task,
    ValidationPackage,
)
from orchestration.services.agent_claims import Wish, claim_for_agent
from orchestration.services.agent_results import Hold, submit_result
from orchestration.services.agents import note_agent_seen
from orchestration.services.intake import NewTask, create_task
from orchestration.services.progress import Progress, report_progress
from orchestration.services.projects import pause_project, resume_project
from orchestration.services.sweeping import sweep
from orchestration.services.tasks import add_task_comment, cancel_task, heartbeat_task, replan_task
from orchestration.services.tool_calls import record_tool_calls
from orchestration.services.work import Actor
from orchestration.states import CommentType, Seat, TaskStatus
from tests.factories import (
    actor_of,
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
BIG = "实现用户认证 + 商品管理 + 订单系统"
RISKY: dict[str, Any] = {
    "risk_level": "high", "risks": ["may break"], "expected_artifacts": [{"name": "work"}],
}  # fmt: skip


@pytest.fixture
def project() -> Project:
    return new_project()


def fail(task: Task, *, times: int = 1) -> None:
    """Let agents take a task and say that they cannot do it."""
    for _ in range(times):
        agent = new_agent()
        claim(fresh(task), agent)
        set_status(fresh(task), agent, "failed", detail="no")


def at_work(task: Task) -> Any:
    """Let a new agent take a task and begin it."""
    agent = new_agent()
    claim(fresh(task), agent)
    set_status(fresh(task), agent, "working")
    return agent


def plan(project: Project, *steps: dict[str, Any]) -> None:
    """Let an agent hand in the plan that is asked for."""
    planner = new_agent(project=project)
    held = claim_for_agent(agent=planner, wish=Wish([Seat.PLANNER]), actor=actor_of(planner))
    assert held is not None
    hold = Hold(held.pk, planner, held.lease_token)
    document = {"summary": "the parts", "steps": list(steps)}
    submit_result(hold=hold, document=document, actor=actor_of(planner))
    drive(project)


def test_rule_2_a_fix_that_does_not_verify_goes_through_its_gate_again(project: Project) -> None:
    fix = {"description": "does not help", "commands": ["true"]}
    root = submit_plan(
        project, step("1", run=["false"], on_failure={"severity": "medium", "fix": fix})
    )
    drive(project)
    first = open_decision_of(project, "medium_defect")
    decide(first, "approve")
    drive(project)
    again = open_decision_of(project, "medium_defect")
    assert again.pk != first.pk
    # The defect loop keeps it in review, whoever is asked.
    assert (again.content["round"], child(root, "1").status) == (2, TaskStatus.REVIEW)


def test_rule_3_a_failure_ends_every_ancestors_attempt_without_tries_in_place(
    project: Project,
) -> None:
    steps = ({"id": "big", "action": BIG}, agent_step("last", after=["big"]))
    root = submit_plan(project, *steps, is_trusted=False)
    drive(project)
    big = child(root, "big")
    assert (big.is_planned, big.depth) == (True, 1)
    plan(project, agent_step("1"), agent_step("2", after=["1"]))
    fail(child(big, "1"), times=2)
    big = Task.objects.get(pk=big.pk)
    assert (big.status, big.tries, big.attempt) == (TaskStatus.FAILED, 0, 1)
    assert (fresh(root).status, fresh(root).failure_count) == (TaskStatus.FAILED, 1)
    assert fresh(root).failure_context[-1]["root_cause"] == "no"


def test_rule_3_success_sets_the_count_back() -> None:
    project = new_project(policy={"thresholds": {"step_attempts": 1}})
    root = submit_plan(project, agent_step("1"))
    drive(project)
    fail(child(root, "1"))
    assert fresh(root).failure_count == 1
    drive(project)
    execute(child(root, "1"), new_agent())
    assert (fresh(root).status, fresh(root).failure_count) == (TaskStatus.DONE, 0)


def test_rule_4_what_waits_for_sir_is_cancelled_with_its_question(project: Project) -> None:
    root = submit_plan(project, agent_step("asks"), agent_step("bad"), agent_step("slow"))
    drive(project)
    asks, slow = child(root, "asks"), child(root, "slow")
    set_status(asks, at_work(asks), "waiting_human", detail="Which?")
    asked = open_decision_of(project)
    worker = at_work(slow)
    fail(child(root, "bad"), times=2)
    # It waits for the leased sibling alone.
    assert fresh(root).status == TaskStatus.WORKING
    hand_in(slow, worker)
    set_status(slow, worker, "review")
    asked.refresh_from_db()
    assert (fresh(root).status, asked.status) == (TaskStatus.FAILED, "withdrawn")
    assert (fresh(asks).status, fresh(asks).cancel_reason) == ("cancelled", "superseded")
    drive(project)
    assert child(root, "slow").pk == slow.pk
    assert child(root, "asks").pk != asks.pk


def test_rule_4_cancels_by_a_re_plan_are_no_verdict_of_their_own_and_cascade_to_nobody(
    project: Project,
) -> None:
    root = submit_plan(project, agent_step("1"), agent_step("2", after=["1"]))
    drive(project)
    first = child(root, "1")
    set_status(first, at_work(first), "waiting_human", detail="Which?")
    asked, behind = open_decision_of(project), child(root, "2")
    replan_task(task_id=root.pk, actor=SIR, reason="new facts")
    drive(project)
    asked.refresh_from_db()
    assert (asked.status, fresh(first).status) == ("withdrawn", "cancelled")
    # Sir's own word ends the attempt once; the steps that went with it say nothing more.
    assert ValidationPackage.objects.get().failure_class == "cancelled_by_sir"
    assert ControlCommand.objects.get().next_action == "RESTART_FROM_STEP_2"
    assert (child(root, "2").pk, fresh(root).failure_count) == (behind.pk, 0)
    assert fresh(behind).status == TaskStatus.PENDING


def test_rule_5_what_sir_decides_in_a_pause_starts_at_its_end(project: Project) -> None:
    fix = {"description": "make it", "commands": ["touch there"]}
    root = submit_plan(
        project, step("1", run=["ls there"], on_failure={"severity": "medium", "fix": fix})
    )
    drive(project)
    pause_project(project_id=project.pk, actor=SIR)
    decide(open_decision_of(project), "approve")
    drive(project)
    assert child(root, "1").defects.get().status in ("fix_approved", "fixing")
    resume_project(project_id=project.pk, actor=SIR)
    drive(project)
    assert fresh(root).status == TaskStatus.DONE


def test_rule_7_what_waits_for_a_step_that_sir_cancels_goes_with_it(project: Project) -> None:
    root = submit_plan(
        project, agent_step("1"), agent_step("2", after=["1"]), agent_step("3", after=["2"])
    )
    drive(project)
    gone = [child(root, key) for key in ("1", "2", "3")]
    cancel_task(task_id=gone[0].pk, actor=SIR, reason="wrong idea")
    assert {fresh(one).status for one in gone} == {TaskStatus.CANCELLED}
    assert (fresh(root).failure_count, ControlCommand.objects.count()) == (0, 1)


def test_rule_8_who_works_in_a_paused_project_is_heard(project: Project) -> None:
    root = submit_plan(project, agent_step("1"))
    drive(project)
    task = child(root, "1")
    agent = at_work(task)
    held = Assignment.objects.get(task=task, seat="executor")
    pause_project(project_id=project.pk, actor=SIR)
    who: dict[str, Any] = {"agent": agent, "actor": actor_of(agent)}
    assert heartbeat_task(task_id=task.pk, **who).status == "leased"
    note = CommentInput(comment_type=CommentType.GENERAL, body="still at it")
    assert add_task_comment(task_id=task.pk, document=note, **who).pk
    calls = [ToolCallInput(tool="Bash", command="ls", outcome="ok")]
    hold = Hold(held.pk, agent, held.lease_token)
    assert record_tool_calls(hold=hold, calls=calls, actor=actor_of(agent)).recorded == 1


SEATS = {
    Seat.AUDITOR: ({"seats": {"auditor": ["external"]}}, {}),
    Seat.VALIDATOR: ({"seats": {"validator": ["external"]}}, {}),
    Seat.CROSS_VERIFIER: ({}, RISKY),
}


@pytest.mark.parametrize("seat", SEATS)
def test_rule_9_each_other_seat_is_replaced_and_the_third_time_sir_is_asked(seat: Seat) -> None:
    policy, more = SEATS[seat]
    project = new_project(policy=policy)
    judges = [new_agent(project=project) for _ in range(4)]
    for one in judges:
        note_agent_seen(one)
    made = agent_step("1", **more) if more else step("1")
    root = submit_plan(project, made)
    drive(project)
    for maker in [new_agent()] * bool(more):
        execute(child(root, "1"), maker)
        drive(project)
    for number, judge in enumerate(judges[:3], 1):
        assert not Decision.objects.filter(project=project).exists(), number
        held = claim_for_agent(agent=judge, wish=Wish([seat]), actor=actor_of(judge))
        assert held is not None
        failures = fresh(held.task).tries, fresh(root).failure_count
        past = timezone.now() - timedelta(minutes=5)
        Assignment.objects.filter(pk=held.pk).update(lease_expires_at=past)
        sweep()
        assert (fresh(held.task).tries, fresh(root).failure_count) == failures
    asked = open_decision_of(project, "waiting_human")
    assert asked.task is not None
    assert (asked.content["seat"], asked.task.status) == (seat, TaskStatus.WAITING_HUMAN)
    decide(asked, "approve")
    last = judges[3]
    assert claim_for_agent(agent=last, wish=Wish([seat]), actor=actor_of(last)) is not None


@pytest.mark.parametrize("from_", ["claimed", "working"])
def test_rule_15_work_that_is_claimed_or_begun_is_upgraded(project: Project, from_: str) -> None:
    text = "迁移整个支付系统的数据库架构，涉及线上订单，路径不清楚，需要调研多个系统"
    task = create_task(project_id=project.pk, new=NewTask(text=text, route="direct"), actor=SIR)
    agent = new_agent()
    claim(task, agent)
    for status in ("working",)[: int(from_ == "working")]:
        set_status(task, agent, status)
    assert fresh(task).status == from_
    doubt = Progress(is_uncertain=True)
    report_progress(task_id=task.pk, progress=doubt, agent=agent, actor=actor_of(agent))
    assert (fresh(task).route, fresh(task).status) == ("three_step", TaskStatus.WORKING)
    assert fresh(task).assignments.get(status="queued").seat == "planner"


def test_rule_16_a_blocked_step_that_sir_rejects_has_failed(project: Project) -> None:
    root = submit_plan(project, agent_step("1"))
    drive(project)
    blocked = child(root, "1")
    set_status(blocked, at_work(blocked), "blocked", detail="no access")
    decide(open_decision_of(project, "clarification"), "rejected", reason="there is none")
    assert fresh(blocked).status == TaskStatus.FAILED
    assert fresh(root).failure_count == 1
    assert "there is none" in fresh(root).failure_context[-1]["root_cause"]


def test_rule_16_a_blocker_that_is_dead_already_asks_sir_at_once() -> None:
    project = new_project(policy={"limits": {"concurrent_roots": 2}})
    dead = submit_plan(project, agent_step("1"))
    cancel_task(task_id=dead.pk, actor=SIR, reason="no")
    root = submit_plan(project, agent_step("1"))
    drive(project)
    blocked = child(root, "1")
    set_status(blocked, at_work(blocked), "blocked", detail="x", blocked_by=(str(dead.pk),))
    decide(open_decision_of(project, "clarification"), "confirmed")
    assert fresh(blocked).status == TaskStatus.PENDING


def test_rule_18_a_verdict_leaves_the_project_stopped_while_another_is_asked() -> None:
    limits = {"limits": {"concurrent_roots": 2}, "thresholds": {"max_retries": 1}}
    project = new_project(policy=limits)
    roots = [submit_plan(project, agent_step("1")) for _ in range(2)]
    drive(project)
    workers = [at_work(child(one, "1")) for one in roots]
    for one, agent in zip(roots, workers, strict=True):
        # The first stops the project; what is leased is still taken.
        Task.objects.filter(pk=child(one, "1").pk).update(tries=1)
        set_status(child(one, "1"), agent, "failed", detail="no")
    assert [fresh(one).status for one in roots] == [TaskStatus.FATAL] * 2
    first, second = Decision.objects.filter(kind="max_retries", status="open").order_by("pk")
    decide(first, "abort", reason="enough")
    assert Project.objects.get(pk=project.pk).status == "suspended"
    decide(second, "abort", reason="enough too")
    assert Project.objects.get(pk=project.pk).status == "active"
