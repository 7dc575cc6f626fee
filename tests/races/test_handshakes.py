"""Handshakes in a race: one answer stands, and neither a lease nor a sweep takes it away."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from orchestration.errors import Conflict, CountersignError, DecisionClosed, Forbidden, LeaseLost
from orchestration.models import Assignment, Decision, Handshake, Mail, Task
from orchestration.services.lease_sweeps import reclaim_expired_leases
from orchestration.services.projects import pause_project, resume_project
from orchestration.services.sweeping import sweep
from orchestration.services.tasks import cancel_task, release_task
from orchestration.services.unanswered import pass_on_intent
from orchestration.states import TaskStatus
from tests.factories import (
    actor_of,
    claim,
    confirm_intent,
    decide,
    fresh,
    new_agent,
    new_project,
    new_sir,
    open_decision_of,
    set_status,
)
from tests.races.contest import SIR, on_both, race
from tests.services.mesh_rooms import ack, handshake_of, lease_of, new_task, spawned

pytestmark = on_both


def expire(task: Task) -> None:
    """Let the executor's lease of a task run out."""
    Assignment.objects.filter(task=task, seat="executor").update(
        lease_expires_at=timezone.now() - timedelta(seconds=1)
    )


@pytest.mark.parametrize("verdict", ["confirmed", "rejected"])
def test_second_ack_waits_and_is_told_which_stands(verdict: str) -> None:
    task, spawner = spawned(new_project())
    agent = new_agent()
    claim(task, agent)
    intent = confirm_intent(task, agent)
    _, rival = race(
        lambda: ack(intent, spawner, verdict, content="why"),
        lambda: ack(intent, spawner, "rejected", content="no"),
    )
    with pytest.raises(Conflict) as refused:
        rival.result()
    assert refused.value.code == "already_answered"
    assert handshake_of(task).status == verdict
    assert Mail.objects.filter(type="intent_ack").count() == 1
    assert fresh(task).tries == (verdict == "rejected")


def test_an_intent_stops_the_clock_before_the_sweep_can_take_the_lease() -> None:
    task, agent = new_task(new_project()), new_agent()
    claim(task, agent)
    expire(task)
    _, rival = race(lambda: confirm_intent(task, agent, questions=["?"]), reclaim_expired_leases)
    assert rival.result() == 0
    assert fresh(task).status == TaskStatus.CLAIMED
    assert handshake_of(task).status == "awaiting_sir"


def test_an_intent_after_the_lease_was_taken_is_refused() -> None:
    task, agent = new_task(new_project()), new_agent()
    claim(task, agent)
    expire(task)
    _, rival = race(reclaim_expired_leases, lambda: confirm_intent(task, agent))
    with pytest.raises(LeaseLost):
        rival.result()
    assert not Handshake.objects.exists()
    assert fresh(task).status == TaskStatus.PENDING


def test_an_ack_after_its_spawners_lease_ended_is_refused() -> None:
    task, spawner = spawned(new_project())
    agent = new_agent()
    claim(task, agent)
    intent = confirm_intent(task, agent)
    assert task.parent is not None
    expire(task.parent)
    _, rival = race(reclaim_expired_leases, lambda: ack(intent, spawner))
    with pytest.raises(Forbidden):
        rival.result()
    assert handshake_of(task).status == "awaiting_spawner"
    assert pass_on_intent(handshake_of(task).pk)
    assert handshake_of(task).status == "confirmed"


def test_an_ack_before_its_spawners_lease_ended_stands() -> None:
    task, spawner = spawned(new_project())
    agent = new_agent()
    claim(task, agent)
    intent = confirm_intent(task, agent)
    assert task.parent is not None
    expire(task.parent)
    race(lambda: ack(intent, spawner), reclaim_expired_leases)
    assert handshake_of(task).status == "confirmed"
    set_status(task, agent, "working")


def test_an_ack_and_the_sweep_that_passes_it_on() -> None:
    task, spawner = spawned(new_project())
    agent = new_agent()
    claim(task, agent)
    intent = confirm_intent(task, agent, questions=["?"])
    Handshake.objects.update(due_at=timezone.now() - timedelta(seconds=1))
    found = handshake_of(task).pk
    _, rival = race(lambda: ack(intent, spawner), lambda: pass_on_intent(found))
    assert rival.result() is False
    assert handshake_of(task).status == "confirmed"


def test_sirs_answer_and_a_release_at_the_same_time() -> None:
    project = new_project()
    task, agent, sir = new_task(project), new_agent(), new_sir()
    claim(task, agent)
    confirm_intent(task, agent, questions=["?"])
    decision = open_decision_of(project, "clarification")
    _, rival = race(
        lambda: release_task(task_id=task.pk, agent=agent, actor=actor_of(agent)),
        lambda: decide(decision, "confirmed", user=sir),
    )
    with pytest.raises(DecisionClosed):
        rival.result()
    assert handshake_of(task).status == "void"
    assert fresh(task).status == TaskStatus.PENDING


def test_a_start_waits_for_the_refusal_and_does_not_begin() -> None:
    task, spawner = spawned(new_project())
    agent = new_agent()
    claim(task, agent)
    intent = confirm_intent(task, agent)
    _, rival = race(
        lambda: ack(intent, spawner, "rejected", content="no"),
        lambda: set_status(task, agent, "working"),
    )
    with pytest.raises(CountersignError):
        rival.result()
    assert fresh(task).status == TaskStatus.PENDING
    assert lease_of(task).status == "queued"


def test_an_intent_put_up_while_sir_resumes_keeps_its_clock_stopped() -> None:
    project = new_project()
    held, busy = new_task(project), new_task(project)
    first, second = new_agent(), new_agent()
    claim(held, first)
    claim(busy, second)
    confirm_intent(held, first, questions=["?"])
    pause_project(project_id=project.pk, actor=SIR)

    def hold_one_and_put_up_another() -> None:
        Handshake.objects.select_for_update().get(task=held)
        confirm_intent(busy, second, questions=["?"])

    race(hold_one_and_put_up_another, lambda: resume_project(project_id=project.pk, actor=SIR))
    assert lease_of(busy).is_clock_stopped
    cancel_task(task_id=busy.pk, actor=SIR, reason="not needed")
    sweep()
    assert handshake_of(busy).status == "void"
    assert not Decision.objects.filter(task=busy, status="open").exists()
