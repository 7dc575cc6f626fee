"""How a handshake ends otherwise: revised, void with its lease, with a pause, with an attempt."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from orchestration.contracts.mail import MailInput
from orchestration.contracts.mail_types import MailType
from orchestration.errors import (
    Conflict,
    CountersignError,
    HandshakeRequired,
    LeaseLost,
)
from orchestration.models import Decision, Mail, Project
from orchestration.services.projects import pause_project, resume_project
from orchestration.services.sweeping import sweep
from orchestration.services.tasks import cancel_task, heartbeat_task, release_task
from orchestration.states import TaskStatus
from tests.factories import (
    actor_of,
    agent_step,
    child,
    claim,
    confirm_intent,
    decide,
    drive,
    fresh,
    hand_in,
    new_agent,
    new_project,
    open_decision_of,
    post,
    set_status,
    start,
    submit_plan,
)
from tests.services.mesh_rooms import (
    SIR,
    ack,
    asked,
    disagreement,
    handshake_of,
    lease_of,
    new_task,
    spawned,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return new_project()


def test_a_revised_intent_voids_the_one_before(project: Project) -> None:
    task, decision = asked(project)
    agent = lease_of(task).agent
    assert agent is not None
    confirm_intent(task, agent)
    decision.refresh_from_db()
    assert decision.status == "withdrawn"
    assert [one.status for one in task.handshakes.order_by("pk")] == ["void", "confirmed"]
    with pytest.raises(CountersignError):
        decide(decision, "rejected", reason="too late")
    with pytest.raises(Conflict):
        confirm_intent(task, agent)


@pytest.mark.parametrize("end", ["release", "cancel", "failed", "blocked"])
def test_an_intent_ends_with_its_lease(project: Project, end: str) -> None:
    task, decision = asked(project)
    agent = lease_of(task).agent
    assert agent is not None
    acts = {
        "release": lambda: release_task(task_id=task.pk, agent=agent, actor=actor_of(agent)),
        "cancel": lambda: cancel_task(task_id=task.pk, actor=SIR, reason="not needed"),
        "failed": lambda: set_status(task, agent, "failed", detail="cannot"),
        "blocked": lambda: set_status(task, agent, "blocked", detail="waits", blocked_by=()),
    }
    acts[end]()
    decision.refresh_from_db()
    assert decision.status == "withdrawn"
    assert handshake_of(task).status == "void"
    assert not Decision.objects.filter(status="open", content__has_key="handshake").exists()


def test_the_confirmation_of_an_earlier_lease_does_not_count(project: Project) -> None:
    task, one, other = new_task(project), new_agent(), new_agent()
    claim(task, one)
    confirm_intent(task, one)
    release_task(task_id=task.pk, agent=one, actor=actor_of(one))
    claim(task, other)
    with pytest.raises(HandshakeRequired):
        set_status(task, other, "working")


def test_a_lease_that_ends_before_the_start_counts_nothing(project: Project) -> None:
    task = new_task(project)
    for _ in range(4):
        claim(task, new_agent())
        with time_machine.travel(timezone.now() + timedelta(minutes=16), tick=False):
            sweep()
    again = fresh(task)
    assert (again.status, again.tries, again.attempt) == (TaskStatus.PENDING, 0, 1)


def test_a_waiting_intent_outlives_any_lease(project: Project) -> None:
    task, _ = asked(project)
    with time_machine.travel(timezone.now() + timedelta(days=2), tick=False):
        sweep()
        agent = lease_of(task).agent
        assert agent is not None
        heartbeat_task(task_id=task.pk, agent=agent, actor=actor_of(agent))
    assert fresh(task).status == TaskStatus.CLAIMED
    assert handshake_of(task).status == "awaiting_sir"


def test_a_low_task_with_an_intent_waits_for_the_ack_all_the_same(project: Project) -> None:
    task, agent = new_task(project, "low"), new_agent()
    claim(task, agent)
    confirm_intent(task, agent, questions=["latency or memory?"])
    with pytest.raises(HandshakeRequired):
        set_status(task, agent, "working")
    decide(open_decision_of(project, "clarification"), "confirmed")
    set_status(task, agent, "working")


def test_an_agent_that_asks_before_its_ack_does_not_come_back_to_work(project: Project) -> None:
    task, agent = new_task(project), new_agent()
    claim(task, agent)
    set_status(task, agent, "waiting_human", detail="This deletes data. May I?")
    decide(open_decision_of(project, "waiting_human"), "answer", reason="yes")
    assert fresh(task).status == TaskStatus.PENDING
    claim(task, agent)
    start(task, agent)


def test_an_agent_that_asks_after_its_ack_goes_on(project: Project) -> None:
    task, agent = new_task(project), new_agent()
    claim(task, agent)
    confirm_intent(task, agent)
    set_status(task, agent, "waiting_human", detail="This deletes data. May I?")
    decide(open_decision_of(project, "waiting_human"), "answer", reason="yes")
    assert fresh(task).status == TaskStatus.WORKING


def test_an_agent_may_give_up_before_its_ack(project: Project) -> None:
    task, agent = new_task(project), new_agent()
    claim(task, agent)
    set_status(task, agent, "failed", detail="no such file")
    kinds = list(task.events.values_list("kind", flat=True))
    assert "task.working" not in kinds
    assert fresh(task).failure_context[-1]["class"] == "agent_failed"


def test_an_execution_start_is_the_move_to_working(project: Project) -> None:
    task, agent = new_task(project), new_agent()
    claim(task, agent)
    begin = MailInput(
        type=MailType.EXECUTION_START,
        message_id="start-1",
        expected_output="latency and throughput, seven days",
        light_plan=("read", "write"),
    )
    with pytest.raises(HandshakeRequired):
        post(begin, agent, task=task)
    assert not Mail.objects.filter(message_id="start-1").exists()
    confirm_intent(task, agent)
    mail = post(begin, agent, task=task)
    assert mail.details == {"expected_output": "latency and throughput, seven days"}
    assert fresh(task).status == TaskStatus.WORKING
    assert fresh(task).estimated_steps == 2
    hand_in(task, agent)
    set_status(task, agent, "review")


def test_who_holds_no_lease_puts_up_no_intent(project: Project) -> None:
    task = new_task(project)
    claim(task, new_agent())
    with pytest.raises(LeaseLost):
        confirm_intent(task, new_agent())
    assert not task.handshakes.exists()


def test_clocks_stand_still_while_an_intent_waits_in_a_paused_project(project: Project) -> None:
    task, spawner = spawned(project)
    agent = new_agent("bob")
    claim(task, agent)
    intent = confirm_intent(task, agent, questions=["Which?"])
    pause_project(project_id=project.pk, actor=SIR)
    with time_machine.travel(timezone.now() + timedelta(hours=5), tick=False):
        sweep()
        assert handshake_of(task).status == "awaiting_spawner"
        resume_project(project_id=project.pk, actor=SIR)
        sweep()
        assert handshake_of(task).status == "awaiting_spawner"
        assert lease_of(task).is_clock_stopped
        ack(intent, spawner)
        assert not lease_of(task).is_clock_stopped
        deadline = lease_of(task).deadline
        assert deadline is not None
        assert deadline > timezone.now() + timedelta(minutes=30)


def test_an_ending_attempt_does_not_wait_for_sirs_answer_to_an_intent(project: Project) -> None:
    root = submit_plan(
        project, agent_step("1", risk_level="high", verify=["true"]), agent_step("2")
    )
    drive(project)
    asking, failing, agent = child(root, "1"), child(root, "2"), new_agent()
    claim(asking, new_agent())
    holder = lease_of(asking).agent
    assert holder is not None
    confirm_intent(asking, holder, questions=["?"])
    for _ in range(2):
        claim(failing, agent)
        set_status(failing, agent, "working")
        set_status(failing, agent, "failed", detail="cannot")
    assert fresh(asking).status == TaskStatus.CANCELLED
    assert handshake_of(asking).status == "void"


def test_two_questions_about_one_task_come_to_sir_one_after_the_other(project: Project) -> None:
    task, decision = asked(project)
    talk = disagreement(project, task)
    assert talk.status == "awaiting_sir"
    decision.refresh_from_db()
    assert decision.status == "open"
    sweep()
    assert open_decision_of(project, "clarification") == decision
    decide(decision, "confirmed")
    sweep()
    assert open_decision_of(project, "clarification").content["reason"] == "negotiation"
