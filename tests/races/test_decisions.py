"""Two verdicts on one decision, a verdict and its expiry, an abort and a question: one wins."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import User

from orchestration.errors import AlreadyDecided, LeaseLost
from orchestration.models import Assignment, AuditEvent, Decision, Task
from orchestration.services.sweeping import expire_decisions
from orchestration.services.tasks import cancel_task
from orchestration.states import AssignmentStatus, DecisionStatus, DefectStatus, TaskStatus
from tests.factories import (
    agent_step,
    child,
    claim,
    decide,
    fresh,
    new_agent,
    new_project,
    new_sir,
    open_decision_of,
    set_status,
    step,
)
from tests.races.contest import (
    SIR,
    asking_task,
    on_both,
    question_of,
    race,
    started_plan,
)

pytestmark = on_both
EXPIRES = {
    "expiry": {
        "waiting_human": {"policy_id": "ask-once", "after_seconds": 3600, "outcome": "reject"}
    }
}


@pytest.fixture
def people() -> tuple[User, User]:
    """Two persons who may decide."""
    return new_sir(), new_sir("other-sir")


def moves_out_of_waiting(task: Task) -> list[str]:
    """List the moves that took a task out of `waiting_human`."""
    events = AuditEvent.objects.filter(
        task=task, kind__startswith="task.", before__status=TaskStatus.WAITING_HUMAN.value
    )
    return [event.kind for event in events]


def decided_events(decision: Decision) -> list[str]:
    """List the events that closed a decision."""
    events = AuditEvent.objects.filter(subject=f"decision:{decision.pk}").exclude(
        kind="decision.opened"
    )
    return [event.kind for event in events]


@pytest.mark.parametrize(
    ("won", "lost", "moves"),
    [
        ("answer", "reject", ["task.working"]),
        ("reject", "answer", ["task.failed"]),
        ("abort", "answer", ["task.cancelled"]),
        ("answer", "abort", ["task.working"]),
    ],
)
def test_second_decider_waits_and_then_meets_the_standing_verdict(
    people: tuple[User, User], won: str, lost: str, moves: list[str]
) -> None:
    task = asking_task(new_project())
    decision = question_of(task)
    outcome, rival = race(
        lambda: decide(decision, won, reason="mine", user=people[0]),
        lambda: decide(decision, lost, reason="no, mine", user=people[1]),
    )
    assert not outcome.is_repeat
    with pytest.raises(AlreadyDecided) as refused:
        rival.result()
    standing = refused.value.extra["standing"]
    assert (standing["verdict"], standing["decided_by"]) == (won, "sir")
    assert standing["decided_at"] is not None
    decision.refresh_from_db()
    assert (decision.verdict, decision.decided_by_id) == (won, people[0].pk)
    assert decided_events(decision) == ["decision.decided"]
    assert moves_out_of_waiting(task) == moves


@pytest.mark.parametrize(
    ("won", "lost"), list(itertools.permutations(("approve", "reject", "accept_as_is"), 2))
)
def test_medium_defect_is_settled_once_whoever_comes_second(
    people: tuple[User, User], won: str, lost: str
) -> None:
    project = new_project()
    fix = {"description": "make it", "commands": ["touch there"]}
    root = started_plan(
        project, step("1", run=["ls there"], on_failure={"severity": "medium", "fix": fix})
    )
    decision = open_decision_of(project, "medium_defect")
    _, rival = race(
        lambda: decide(decision, won, reason="mine", user=people[0]),
        lambda: decide(decision, lost, reason="no, mine", user=people[1]),
    )
    with pytest.raises(AlreadyDecided) as refused:
        rival.result()
    assert refused.value.extra["standing"]["verdict"] == won
    task = child(root, "1")
    expected: dict[str, tuple[str, str, int]] = {
        "approve": (DefectStatus.FIXING, TaskStatus.REVIEW, 1),
        "reject": (DefectStatus.REJECTED, TaskStatus.FAILED, 0),
        "accept_as_is": (DefectStatus.ACCEPTED_AS_IS, TaskStatus.DONE, 0),
    }
    fixers = Assignment.objects.filter(task=task, seat="fixer").count()
    assert (task.defects.get().status, task.status, fixers) == expected[won]


def test_identical_repeat_that_waited_is_told_so_and_changes_nothing() -> None:
    task = asking_task(new_project())
    decision = question_of(task)
    sir = new_sir()
    _, rival = race(
        lambda: decide(decision, "answer", reason="the first", user=sir),
        lambda: decide(decision, "answer", reason="the first", user=sir),
    )
    assert rival.result().is_repeat
    assert decided_events(decision) == ["decision.decided"]
    assert moves_out_of_waiting(task) == ["task.working"]


def test_c_02_expiry_that_comes_second_leaves_the_answer_standing() -> None:
    task = asking_task(new_project(policy=EXPIRES))
    decision = question_of(task)
    assert decision.deadline is not None
    sir = new_sir()
    with time_machine.travel(decision.deadline, tick=True) as clock:
        clock.shift(-60)

        def expire() -> int:
            clock.shift(120)
            return expire_decisions()

        _, rival = race(lambda: decide(decision, "answer", reason="in time", user=sir), expire)
    assert rival.result() == 0
    decision.refresh_from_db()
    assert (decision.verdict, decision.decided_by_policy) == ("answer", "")
    assert fresh(task).status == TaskStatus.WORKING
    assert fresh(task).tries == 0
    assert decided_events(decision) == ["decision.decided"]


def test_c_02_answer_that_comes_second_meets_the_policy_that_decided() -> None:
    task = asking_task(new_project(policy=EXPIRES))
    decision = question_of(task)
    assert decision.deadline is not None
    sir = new_sir()
    with time_machine.travel(decision.deadline, tick=True) as clock:
        clock.shift(60)
        count, rival = race(
            expire_decisions, lambda: decide(decision, "answer", reason="late", user=sir)
        )
    assert count == 1
    with pytest.raises(AlreadyDecided) as refused:
        rival.result()
    standing = refused.value.extra["standing"]
    assert (standing["verdict"], standing["decided_by"]) == ("reject", "ask-once")
    decision.refresh_from_db()
    assert decision.status == DecisionStatus.DECIDED
    assert moves_out_of_waiting(task) == ["task.failed"]


def asking_step() -> dict[str, Any]:
    """A running step of a plan with its agent, which is about to ask."""
    root = started_plan(new_project(), agent_step("1"), agent_step("2"))
    agent, task = new_agent(), child(root, "1")
    claim(task, agent)
    return {"root": root, "agent": agent, "task": task}


@pytest.mark.parametrize("what", ["root", "task"])
def test_c_07_question_that_comes_after_the_abort_opens_nothing(what: str) -> None:
    rows = asking_step()
    agent, task = rows["agent"], rows["task"]
    _, rival = race(
        lambda: cancel_task(task_id=rows[what].pk, actor=SIR, reason="not needed"),
        lambda: set_status(task, agent, "waiting_human", detail="Which one?"),
    )
    with pytest.raises(LeaseLost):
        rival.result()
    assert_nothing_waits(task)


@pytest.mark.parametrize("what", ["root", "task"])
def test_c_07_abort_that_comes_after_the_question_withdraws_it(what: str) -> None:
    rows = asking_step()
    agent, task = rows["agent"], rows["task"]
    _, rival = race(
        lambda: set_status(task, agent, "waiting_human", detail="Which one?"),
        lambda: cancel_task(task_id=rows[what].pk, actor=SIR, reason="not needed"),
    )
    rival.result()
    assert Decision.objects.get(task=task).status == DecisionStatus.WITHDRAWN
    assert_nothing_waits(task)


def assert_nothing_waits(task: Task) -> None:
    """Nothing of the task is left in the inbox, and nobody holds it."""
    assert fresh(task).status == TaskStatus.CANCELLED
    assert not Decision.objects.filter(task=task, status=DecisionStatus.OPEN.value).exists()
    live = [AssignmentStatus.QUEUED.value, AssignmentStatus.LEASED.value]
    assert not Assignment.objects.filter(task=task, status__in=live).exists()
