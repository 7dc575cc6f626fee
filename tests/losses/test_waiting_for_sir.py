"""What waits for Sir waits: no timer moves it, an answer reaches its step, nothing runs twice."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from orchestration.models import Agent, Assignment, AuditEvent, Decision, Project, Task
from orchestration.services.projects import pause_project, resume_project
from orchestration.services.sweeping import sweep
from orchestration.services.work import Actor
from orchestration.states import AssignmentStatus, DecisionStatus, TaskStatus
from tests.effects import append, effects
from tests.factories import (
    agent_step,
    child,
    claim,
    decide,
    drive,
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
SWEEPS = 100
SIR = Actor("human:sir")


@pytest.fixture
def project(settings: Any) -> Project:
    """A project in which commands may follow on an agent's work."""
    settings.COUNTERSIGN_UNSANDBOXED = True
    return new_project()


def ask(task: Task, agent: Agent, question: str) -> Decision:
    """Ask Sir as the agent of a task. Return the decision."""
    set_status(task, agent, "waiting_human", detail=question)
    return Decision.objects.get(task=task, status=DecisionStatus.OPEN.value)


def finish(task: Task, agent: Agent) -> None:
    """Hand in and report the task as an agent."""
    hand_in(task, agent)
    set_status(task, agent, "review")


def waiting_kinds(project: Project) -> Task:
    """A plan in which one step waits by an agent's question, one by a red line, one by a defect."""
    root = submit_plan(
        project,
        agent_step("asks"),
        step("red", run=["rm -r olddata"]),
        step("defect", run=["ls there"], on_failure={"severity": "medium"}),
        step("behind", run=append("behind"), after=["asks", "red", "defect"]),
    )
    drive(project)
    task, agent = child(root, "asks"), new_agent()
    claim(task, agent)
    ask(task, agent, "Which one?")
    return root


def test_c_26_a_hundred_sweeps_move_nothing_that_waits(project: Project) -> None:
    root = waiting_kinds(project)
    before = {row.pk: (row.status, row.version) for row in Task.objects.all()}
    events = AuditEvent.objects.count()
    assert [row.kind for row in Decision.objects.order_by("kind")] == [
        "medium_defect",
        "waiting_human",
        "waiting_human",
    ]
    start = timezone.now()
    for hours in range(SWEEPS):
        with time_machine.travel(start + timedelta(hours=hours), tick=False):
            sweep()
            assert drive(project) == 0
    assert {row.pk: (row.status, row.version) for row in Task.objects.all()} == before
    assert AuditEvent.objects.count() == events
    assert set(Decision.objects.values_list("status", flat=True)) == {DecisionStatus.OPEN.value}
    assert child(root, "asks").status == TaskStatus.WAITING_HUMAN


def test_c_26_agent_has_a_full_lease_however_late_the_answer(project: Project) -> None:
    root = submit_plan(project, agent_step("1"))
    drive(project)
    task, agent = child(root, "1"), new_agent()
    held = claim(task, agent)
    decision = ask(task, agent, "Which one?")
    with time_machine.travel(timezone.now() + timedelta(days=30), tick=True):
        sweep()
        decide(decision, "answer", reason="the left one")
        held.refresh_from_db()
        assert held.lease_expires_at is not None
        left = (held.lease_expires_at - timezone.now()).total_seconds()
        assert left > project.policy.limits.lease_seconds - 5
        assert sweep()["expired_leases"] == 0
        finish(task, agent)
    assert fresh(root).status == TaskStatus.DONE


def test_answer_in_a_paused_project_starts_the_clock_at_its_resume(project: Project) -> None:
    root = submit_plan(project, agent_step("1"))
    drive(project)
    task, agent = child(root, "1"), new_agent()
    held = claim(task, agent)
    decision = ask(task, agent, "Which one?")
    pause_project(project_id=project.pk, actor=SIR)
    decide(decision, "answer", reason="the left one")
    held.refresh_from_db()
    assert held.is_clock_stopped
    with time_machine.travel(timezone.now() + timedelta(days=30), tick=True):
        sweep()
        resume_project(project_id=project.pk, actor=SIR)
        held.refresh_from_db()
        assert held.lease_expires_at is not None
        assert held.deadline is not None
        left = (held.lease_expires_at - timezone.now()).total_seconds()
        assert left > project.policy.limits.lease_seconds - 5
        assert held.deadline > timezone.now()
        sweep()
        finish(task, agent)
    assert fresh(root).status == TaskStatus.DONE


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_c_22_three_steps_ask_at_once_and_are_answered_in_any_order(
    project: Project, order: tuple[int, ...]
) -> None:
    root = submit_plan(project, *[agent_step(str(n)) for n in range(3)])
    drive(project)
    tasks = [child(root, str(n)) for n in range(3)]
    agents = [new_agent() for _ in tasks]
    decisions = []
    for number, (task, agent) in enumerate(zip(tasks, agents, strict=True)):
        claim(task, agent)
        decisions.append(ask(task, agent, f"question {number}"))
    assert len({row.pk for row in decisions}) == 3
    waiting = set(range(3))
    for number in order:
        decide(decisions[number], "answer", reason=f"answer {number}")
        waiting.remove(number)
        states = {n for n in range(3) if fresh(tasks[n]).status == TaskStatus.WAITING_HUMAN}
        assert states == waiting
        said = tasks[number].comments.order_by("pk").last()
        assert said is not None
        assert (said.body, said.author) == (f"answer {number}", "human:sir")
    for task, agent in zip(tasks, agents, strict=True):
        finish(task, agent)
    assert fresh(root).status == TaskStatus.DONE


def test_c_23_one_task_asks_three_times_and_each_answer_resumes_it(project: Project) -> None:
    root = submit_plan(project, agent_step("1"))
    drive(project)
    task, agent = child(root, "1"), new_agent()
    held = claim(task, agent)
    asked = []
    for number in range(3):
        decision = ask(task, agent, f"question {number}")
        asked.append(decision.pk)
        decide(decision, "answer", reason=f"answer {number}")
        assert fresh(task).status == TaskStatus.WORKING
    finish(task, agent)
    assert fresh(root).status == TaskStatus.DONE
    assert len(set(asked)) == 3
    verdicts = Decision.objects.filter(task=task).values_list("status", "verdict")
    assert list(verdicts) == [("decided", "answer")] * 3
    bodies = [row.body for row in task.comments.filter(comment_type="general")]
    assert bodies == [f"answer {number}" for number in range(3)]
    rows = Assignment.objects.filter(task=task, seat="executor")
    assert [(row.pk, row.status, row.token) for row in rows] == [
        (held.pk, AssignmentStatus.DONE, 1)
    ]


def test_c_29_resume_never_repeats_a_finished_step(project: Project) -> None:
    root = submit_plan(
        project,
        step("before", run=append("before")),
        agent_step("asks", after=["before"]),
        step("after", run=append("after"), after=["asks"]),
    )
    drive(project)
    task, agent = child(root, "asks"), new_agent()
    claim(task, agent)
    for question in ("first?", "second?"):
        decide(ask(task, agent, question), "answer", reason="yes")
        drive(project)
        sweep()
    finish(task, agent)
    drive(project)
    assert fresh(root).status == TaskStatus.DONE
    assert effects(project) == {"before": 1, "after": 1}


def test_c_29_approved_fix_repeats_only_the_step_it_fixes(project: Project) -> None:
    fix = {"description": "make it", "commands": [*append("fix"), "touch there"]}
    root = submit_plan(
        project,
        step("before", run=append("before")),
        step(
            "fixed",
            run=[*append("fixed"), "ls there"],
            after=["before"],
            on_failure={"severity": "medium", "fix": fix},
        ),
        step("after", run=append("after"), after=["fixed"]),
    )
    drive(project)
    decide(open_decision_of(project), "approve")
    drive(project)
    assert fresh(root).status == TaskStatus.DONE
    # Executed once, and its `run` once more after the fix (section 4, rule 2).
    assert effects(project) == {"before": 1, "fix": 1, "fixed": 2, "after": 1}


def test_c_46_replan_keeps_what_is_done_and_its_effects(project: Project) -> None:
    root = submit_plan(
        project,
        step("before", run=append("before")),
        agent_step("fails", after=["before"]),
        step("after", run=append("after"), after=["fails"]),
    )
    drive(project)
    for _ in range(2):
        task, agent = child(root, "fails"), new_agent()
        claim(task, agent)
        set_status(task, agent, "failed", detail="cannot")
    drive(project)
    assert fresh(root).attempt == 2
    task, agent = child(root, "fails"), new_agent()
    claim(task, agent)
    set_status(task, agent, "working")
    finish(task, agent)
    drive(project)
    assert fresh(root).status == TaskStatus.DONE
    assert effects(project) == {"before": 1, "after": 1}
