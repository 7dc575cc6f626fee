"""Everybody acts at once, at random: only refusals come of it, and nothing is left hanging."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import connections

from orchestration.errors import CountersignError
from orchestration.models import Agent, Assignment, Decision, Handshake, Project, Task
from orchestration.services.agent_claims import Wish, claim_for_agent
from orchestration.services.audit import floor, seal_events, verify_chain
from orchestration.services.handshake_gate import needs_handshake
from orchestration.services.projects import pause_project, resume_project
from orchestration.services.sweeping import sweep
from orchestration.services.tasks import cancel_task
from orchestration.states import (
    ASSIGNMENT_LIVE,
    HANDSHAKE_OPEN,
    TASK_HOLDS_SLOT,
    TASK_TERMINAL,
    AssignmentStatus,
    DecisionStatus,
    ProjectStatus,
    Seat,
    TaskStatus,
)
from tests.effects import append
from tests.factories import (
    actor_of,
    agent_step,
    confirm_intent,
    decide,
    drive,
    hand_in,
    new_agent,
    new_project,
    new_sir,
    set_status,
    step,
    submit_plan,
)
from tests.races.contest import SIR, on_both, rivals
from tests.replaying import assert_rebuilt_is_present

pytestmark = on_both
EXECUTOR = Wish(seats=(Seat.EXECUTOR,))
HELD = [state.value for state in TASK_HOLDS_SLOT]
MOVES = 40
ROOTS = 4
NEEDS_A_FIXER = {"request_changes"}
REPORTS = ("review", "review", "review", "failed", "waiting_human", "blocked")
POLICY = {
    "limits": {"parallel_children": 3, "concurrent_roots": 2},
    "thresholds": {"step_attempts": 4, "max_retries": 9},
}


def task_at_work(agent: Agent) -> Task | None:
    """Find a task that an agent holds and that does not wait for Sir."""
    held = Assignment.objects.filter(agent=agent, status=AssignmentStatus.LEASED.value)
    return Task.objects.filter(assignments__in=held, status__in=HELD).first()


def say_what_is_understood(task: Task, agent: Agent, questions: list[str]) -> None:
    """Put up the intent of a claimed task that needs one; what waits or was confirmed stands."""
    leased = Assignment.objects.filter(agent=agent, task=task, status=AssignmentStatus.LEASED.value)
    held = leased.first()
    if held is None or task.status != TaskStatus.CLAIMED:
        return
    said = Handshake.objects.filter(assignment=held, token=held.token).exists()
    if needs_handshake(task, held) and not said:
        confirm_intent(task, agent, questions=questions)


def act_as_agent(agent: Agent, chance: random.Random) -> None:
    """Claim what is there, hand in, and report something about it."""
    held = claim_for_agent(agent=agent, wish=EXECUTOR, actor=actor_of(agent))
    mine = held.task if held is not None else task_at_work(agent)
    if mine is None:
        return
    status = chance.choice(REPORTS)
    say_what_is_understood(mine, agent, ["Which?"] if chance.random() < 0.4 else [])
    set_status(mine, agent, "working")
    hand_in(mine, agent, f"the work of {agent.name}")
    set_status(mine, agent, status, **({} if status == "review" else {"detail": "so it is"}))


def act_as_sir(project: Project, chance: random.Random) -> None:
    """Decide something, pause, resume, or now and then cancel a step."""
    luck = chance.random()
    if luck < 0.08:
        pause_project(project_id=project.pk, actor=SIR)
    elif luck < 0.4:
        resume_project(project_id=project.pk, actor=SIR)
    elif luck < 0.43:
        steps = Task.objects.filter(project=project, parent__isnull=False)
        cancel_task(task_id=chance.choice(list(steps)).pk, actor=SIR, reason="not needed")
    else:
        waiting = list(Decision.objects.filter(status=DecisionStatus.OPEN.value))
        if waiting:
            decision = chance.choice(waiting)
            offered = {option["verdict"] for option in decision.options} - NEEDS_A_FIXER
            verdict = chance.choice(sorted(offered))
            decide(decision, verdict, reason="because", user=new_sir())


def act_as_worker(project: Project, chance: random.Random) -> None:
    """Work off what is queued, sweep, or seal."""
    luck = chance.random()
    if luck < 0.6:
        drive(project)
    elif luck < 0.8:
        sweep()
    else:
        seal_events()


def play(act: Callable[[random.Random], None], seed: str) -> list[str]:
    """Act again and again. Return the codes of what was refused."""
    chance, refused = random.Random(seed), []
    for _ in range(MOVES):
        try:
            act(chance)
        except CountersignError as error:
            refused.append(error.code)
    return refused


def assert_nothing_hangs(project: Project) -> None:
    """What has ended holds nothing, and what waits for Sir is in his inbox."""
    ended = [state.value for state in TASK_TERMINAL]
    tasks = Task.objects.filter(project=project)
    live = Assignment.objects.filter(status__in=[state.value for state in ASSIGNMENT_LIVE])
    assert not live.filter(task__in=tasks.filter(status__in=ended)).exists()
    open_ones = Decision.objects.filter(status=DecisionStatus.OPEN.value)
    assert (
        not open_ones.filter(task__status__in=["done", "cancelled"])
        .exclude(kind="high_notice")
        .exists()
    )
    waiting = tasks.filter(status=TaskStatus.WAITING_HUMAN.value)
    asked = set(open_ones.values_list("task_id", flat=True))
    assert set(waiting.values_list("pk", flat=True)) <= asked
    busy = tasks.filter(status__in=["claimed", "working"], is_planned=False)
    leased = set(live.filter(status="leased").values_list("task_id", flat=True))
    assert set(busy.values_list("pk", flat=True)) <= leased


def let_all_end(project: Project) -> None:
    """Resume, answer and hand in until every root has ended: nothing was left stuck."""
    sir, agent = new_sir(), new_agent("diligent")
    for _ in range(ROOTS * 20):
        project.refresh_from_db()
        if project.status == ProjectStatus.SUSPENDED:
            resume_project(project_id=project.pk, actor=SIR)
        for decision in Decision.objects.filter(status=DecisionStatus.OPEN.value):
            verdict = next(one["verdict"] for one in decision.options if not one["destructive"])
            decide(decision, verdict, reason="go on", user=sir)
        # An intent that had to wait for another question of its task is asked by the next sweep.
        asking = [state.value for state in HANDSHAKE_OPEN]
        leases = Assignment.objects.filter(status="leased", agent__isnull=False)
        for held in leases.exclude(handshakes__status__in=asking):
            finish(held.task, held.agent or agent)
        while claim_for_agent(agent=agent, wish=EXECUTOR, actor=actor_of(agent)) is not None:
            finish(task_at_work(agent), agent)
        drive(project)
        sweep()
    roots = Task.objects.filter(project=project, parent__isnull=True)
    assert set(roots.values_list("status", flat=True)) <= {"done", "cancelled"}


def finish(task: Task | None, agent: Agent) -> None:
    """Hand in and report a task."""
    assert task is not None
    say_what_is_understood(task, agent, [])
    set_status(task, agent, "working")
    hand_in(task, agent, f"the work of {agent.name}")
    set_status(task, agent, "review")


@pytest.mark.parametrize("seed", range(3))
def test_everybody_at_once_leaves_nothing_hanging(seed: int, settings: Any) -> None:
    settings.COUNTERSIGN_UNSANDBOXED = True
    floor.reset()
    project = new_project(policy=POLICY)
    fix = {"description": "make it", "commands": ["touch there"]}
    covered = {"severity": "medium", "fix": fix}
    for _ in range(ROOTS):
        submit_plan(
            project,
            *[agent_step(f"a{n}") for n in range(4)],
            *[step(f"r{n}", run=append(f"r{n}")) for n in range(3)],
            step("defect", run=["ls there"], on_failure=covered),
            agent_step("last", phase=2),
        )
    drive(project)
    acts: list[Callable[[random.Random], None]] = [
        *[partial(act_as_agent, new_agent(f"agent-{n}")) for n in range(3)],
        partial(act_as_sir, project),
        *[partial(act_as_worker, project)] * 2,
    ]
    with rivals(len(acts)) as fire:
        refused: list[Any] = fire(
            *[partial(play, act, f"{seed}-{n}") for n, act in enumerate(acts)]
        )
    connections.close_all()
    assert all(isinstance(codes, list) for codes in refused)
    assert_nothing_hangs(project)
    assert_rebuilt_is_present(project)
    let_all_end(project)
    assert_rebuilt_is_present(project)
    assert verify_chain()[1] is None
    floor.reset()
