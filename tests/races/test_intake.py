"""Concurrent intake: numbers are unique, one planned root starts, a key is carried out once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from django.db import connection, transaction

from orchestration.errors import Conflict, CountersignError
from orchestration.models import Assignment, IdempotencyRecord, Project, Task
from orchestration.services.idempotency import Answer, begin_request, keep_answer
from orchestration.services.intake import NewTask, create_task, submit_message
from orchestration.services.lookups import lock_for_result, lock_project
from orchestration.services.projects import pause_project
from orchestration.services.work import Actor
from orchestration.states import ProjectStatus, Seat, TaskStatus
from tests.factories import agent_step, child, claim, new_agent, new_project, submit_plan
from tests.races.contest import (
    SIR,
    in_own_connection,
    on_both,
    race,
    refusals,
    rivals,
    started_plan,
    wait_for_blocked_session,
)

pytestmark = on_both
AGENT = Actor("agent:caller")
THREADS = 6
ROUNDS = 5


def test_numbers_of_concurrent_messages_are_unique_and_without_gaps() -> None:
    project = new_project()

    def send() -> Task:
        return submit_message(project_id=project.pk, text="打开首页", actor=SIR)[0]

    with rivals(THREADS) as fire:
        sent = [task for _ in range(ROUNDS) for task in fire(*[send] * THREADS)]
    assert refusals(sent) == []
    numbers = sorted(Task.objects.filter(project=project).values_list("number", flat=True))
    assert numbers == list(range(1, THREADS * ROUNDS + 1))


def test_key_of_an_outside_task_is_taken_once() -> None:
    project = new_project()
    new = NewTask(text="打开首页", external_key="JIRA-7")

    def create() -> Task:
        return create_task(project_id=project.pk, new=new, actor=SIR)

    with rivals(THREADS) as fire:
        outcomes = fire(*[create] * THREADS)
    assert {one.code for one in refusals(outcomes)} == {"key_taken"}
    assert len(refusals(outcomes)) == THREADS - 1
    assert Task.objects.filter(project=project).count() == 1


def submit(project: Project) -> Task:
    """Submit a task with a ready plan."""
    return submit_plan(project, agent_step("1"))


def started(project: Project) -> int:
    """Count the planned roots that run, by their state and by their auditors."""
    roots = Task.objects.filter(project=project, status=TaskStatus.WORKING.value)
    auditors = Assignment.objects.filter(project=project, seat=Seat.AUDITOR.value)
    assert roots.count() == auditors.count()
    return roots.count()


def test_one_of_several_planned_roots_starts() -> None:
    project = new_project()
    with rivals(THREADS) as fire:
        fire(*[partial(submit, project)] * THREADS)
    assert started(project) == 1
    assert Task.objects.filter(project=project).count() == THREADS


@pytest.mark.postgres
def test_second_planned_root_waits_for_the_first_and_then_its_turn() -> None:
    project = new_project()
    first, rival = race(partial(submit, project), partial(submit, project))
    assert started(project) == 1
    first.refresh_from_db()
    assert first.status == TaskStatus.WORKING
    assert rival.result().number == first.number + 1


def carry_out(key: str) -> int | Answer:
    """Begin a request and, where it is the first with this key, answer it."""
    begun = begin_request(actor=AGENT, key=key, digest="d" * 64)
    if isinstance(begun, int):
        keep_answer(record_id=begun, actor=AGENT, answer=Answer(201, "{}"))
    return begun


def test_key_used_at_once_is_carried_out_once() -> None:
    with rivals(THREADS) as fire:
        for number in range(ROUNDS):
            outcomes = fire(*[partial(carry_out, f"key-{number}")] * THREADS)
            began = [one for one in outcomes if isinstance(one, int)]
            assert len(began) == 1
            others = [one for one in outcomes if one not in began]
            assert {type(one) for one in others} <= {Answer, Conflict}
            codes = {one.code for one in others if isinstance(one, CountersignError)}
            assert codes <= {"in_progress"}
    assert IdempotencyRecord.objects.count() == ROUNDS


@pytest.mark.postgres
def test_second_use_of_a_key_waits_and_is_told_that_the_first_is_under_way() -> None:
    begun, rival = race(
        lambda: begin_request(actor=AGENT, key="k", digest="d" * 64),
        lambda: begin_request(actor=AGENT, key="k", digest="d" * 64),
    )
    with pytest.raises(Conflict) as refused:
        rival.result()
    assert refused.value.code == "in_progress"
    assert isinstance(begun, int)
    keep_answer(record_id=begun, actor=AGENT, answer=Answer(201, '{"id": "1"}'))
    repeated = begin_request(actor=AGENT, key="k", digest="d" * 64)
    assert repeated == Answer(201, '{"id": "1"}')


@pytest.mark.postgres
def test_pause_that_deadlocks_with_a_hand_in_is_tried_again() -> None:
    project = new_project()
    root = started_plan(project, agent_step("1"))
    held = claim(child(root, "1"), new_agent())
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            # What the last hand-in of a root does: its rows first, the project at the end.
            lock_for_result(held)
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL deadlock_timeout = '60s'")
            rival = pool.submit(
                in_own_connection, partial(pause_project, project_id=project.pk, actor=SIR)
            )
            wait_for_blocked_session(rival)
            lock_project(project.pk)
        assert rival.result().status == ProjectStatus.SUSPENDED
    held.refresh_from_db()
    assert held.is_clock_stopped
