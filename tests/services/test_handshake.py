"""The semantic handshake: nothing medium or high starts before its intent is confirmed."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from orchestration.contracts.mail_types import MailType
from orchestration.errors import (
    Conflict,
    Forbidden,
    HandshakeRequired,
    Invalid,
)
from orchestration.models import Agent, Assignment, Mail, Project, Task
from orchestration.services.agent_claims import Wish, claim_for_agent
from orchestration.services.agent_results import Hold, submit_result
from orchestration.services.sweeping import sweep
from orchestration.services.tasks import heartbeat_task, release_task
from orchestration.states import Seat, TaskStatus
from tests.factories import (
    actor_of,
    agent_step,
    child,
    claim,
    confirm_intent,
    decide,
    drive,
    fresh,
    new_agent,
    new_project,
    open_decision_of,
    set_status,
    step,
    submit_plan,
)
from tests.services.mesh_rooms import (
    ack,
    asked,
    handshake_of,
    lease_of,
    new_task,
    spawned,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return new_project()


@pytest.mark.parametrize("target", ["working", "review"])
def test_a_medium_task_does_not_start_before_its_ack(project: Project, target: str) -> None:
    task, agent = new_task(project), new_agent()
    claim(task, agent)
    with pytest.raises(HandshakeRequired) as refused:
        set_status(task, agent, target)
    assert refused.value.status == 409
    assert refused.value.extra["handshake"] is None
    assert fresh(task).status == TaskStatus.CLAIMED


def test_a_high_task_does_not_start_before_its_ack(project: Project) -> None:
    root = submit_plan(project, agent_step("1", risk_level="high", verify=["true"]))
    drive(project)
    task, agent = child(root, "1"), new_agent()
    assert task.complexity == "high"
    claim(task, agent)
    with pytest.raises(HandshakeRequired):
        set_status(task, agent, "working")
    confirm_intent(task, agent)
    set_status(task, agent, "working")
    assert fresh(task).status == TaskStatus.WORKING


def test_a_low_task_goes_straight_ahead(project: Project) -> None:
    task, agent = new_task(project, "low"), new_agent()
    claim(task, agent)
    set_status(task, agent, "working")
    assert fresh(task).status == TaskStatus.WORKING


def test_a_built_in_seat_needs_no_handshake(project: Project) -> None:
    root = submit_plan(project, step("1", risk_level="high"))
    drive(project)
    assert child(root, "1").complexity == "high"
    # Nobody is there for a cross-check, so Sir looks at it last.
    decide(open_decision_of(project, "final_review"), "approve")
    assert fresh(root).status == TaskStatus.DONE
    assert not child(root, "1").handshakes.exists()


def test_rules_confirm_an_intent_without_questions_inside_the_scope(project: Project) -> None:
    task, agent = new_task(project, scope=("src",)), new_agent()
    claim(task, agent)
    intent = confirm_intent(task, agent, scope=["src/report.py"])
    assert handshake_of(task).status == "confirmed"
    answer = intent.replies.get()
    assert (answer.type, answer.sender) == (MailType.INTENT_ACK, "system")
    assert answer.details == {"status": "confirmed", "corrections": []}
    assert [one.agent for one in answer.recipients.all()] == [agent]
    held = lease_of(task)
    assert not held.is_clock_stopped
    assert held.lease_expires_at is not None
    assert held.lease_expires_at > timezone.now() + timedelta(minutes=14)
    set_status(task, agent, "working")


@pytest.mark.parametrize(
    ("scope", "questions", "why"),
    [
        (["src/report.py"], ["Which period?"], "the agent asks"),
        (["docs/plan.md"], [], "docs/plan.md"),
        (["/etc/passwd"], [], "scope"),
        (["src/../../etc"], [], "scope"),
    ],
)
def test_questions_and_a_wider_scope_go_to_sir(
    project: Project, scope: list[str], questions: list[str], why: str
) -> None:
    task, agent = new_task(project, scope=("src",)), new_agent("bob")
    claim(task, agent)
    confirm_intent(task, agent, scope=scope, questions=questions)
    assert handshake_of(task).status == "awaiting_sir"
    decision = open_decision_of(project, "clarification")
    assert why in decision.content["detail"]
    assert decision.content["understanding"]["questions"] == questions
    assert decision.content["asked_by"] == "bob"
    assert fresh(task).status == TaskStatus.CLAIMED
    held = lease_of(task)
    assert held.is_clock_stopped
    assert held.lease_expires_at is None
    with pytest.raises(HandshakeRequired) as refused:
        set_status(task, agent, "working")
    assert refused.value.extra["handshake"] == "awaiting_sir"


def test_sirs_correction_comes_back_as_the_ack(project: Project) -> None:
    task, decision = asked(project)
    decide(decision, "confirmed_with_correction", reason="The last seven days, and throughput too.")
    answer = Mail.objects.get(type=MailType.INTENT_ACK)
    assert answer.sender == "human:sir"
    assert answer.details["status"] == "confirmed_with_correction"
    assert answer.details["corrections"] == ["The last seven days, and throughput too."]
    held = lease_of(task)
    assert held.corrections == ["The last seven days, and throughput too."]
    assert not held.is_clock_stopped
    assert held.agent is not None
    set_status(task, held.agent, "working")
    assert fresh(task).status == TaskStatus.WORKING


def test_sirs_plain_yes_lets_it_start(project: Project) -> None:
    task, decision = asked(project)
    decide(decision, "confirmed")
    assert lease_of(task).corrections == []
    agent = lease_of(task).agent
    assert agent is not None
    set_status(task, agent, "working")


def test_sirs_refusal_counts_one_attempt_and_the_next_one_is_told(project: Project) -> None:
    task, decision = asked(project)
    decide(decision, "rejected", reason="Not the report: the dashboard.")
    again = fresh(task)
    assert (again.status, again.attempt, again.tries) == (TaskStatus.PENDING, 2, 1)
    assert again.failure_context[-1]["class"] == "rejected_by_sir"
    assert "Not the report" in again.failure_context[-1]["root_cause"]
    assert again.assignee is None
    statuses = task.assignments.filter(seat="executor").order_by("pk").values_list("status")
    assert list(statuses) == [("failed",), ("queued",)]
    claim(task, new_agent())


def test_a_second_refusal_uses_up_the_tries(project: Project) -> None:
    root = submit_plan(project, agent_step("1", risk_level="high", verify=["true"]))
    drive(project)
    task, agent = child(root, "1"), new_agent()
    for _ in range(2):
        claim(task, agent)
        confirm_intent(task, agent, questions=["What?"])
        decide(open_decision_of(project, "clarification"), "rejected", reason="no")
    assert fresh(task).tries == 2
    assert fresh(task).status == TaskStatus.FAILED
    assert [one["class"] for one in fresh(task).failure_context] == ["rejected_by_sir"] * 2


def test_the_spawner_answers_while_its_lease_lives(project: Project) -> None:
    task, spawner = spawned(project)
    agent = new_agent("bob")
    claim(task, agent)
    intent = confirm_intent(task, agent, questions=["状态常量也移过去吗？"])
    assert handshake_of(task).status == "awaiting_spawner"
    assert [one.agent for one in intent.recipients.all()] == [spawner]
    with pytest.raises(Forbidden):
        ack(intent, new_agent("mallory"))
    with pytest.raises(Forbidden):
        ack(intent, agent)
    ack(intent, spawner, "confirmed_with_correction", corrections=("状态常量也移过去",))
    assert lease_of(task).corrections == ["状态常量也移过去"]
    set_status(task, agent, "working")


def test_the_spawner_may_reject(project: Project) -> None:
    task, spawner = spawned(project)
    agent = new_agent("bob")
    claim(task, agent)
    intent = confirm_intent(task, agent)
    with pytest.raises(Invalid):
        ack(intent, spawner, "rejected")
    ack(intent, spawner, "rejected", content="memory, not latency")
    assert fresh(task).status == TaskStatus.PENDING
    assert fresh(task).failure_context[-1]["class"] == "agent_failed"


def test_an_answer_stands_and_a_second_one_is_told_which(project: Project) -> None:
    task, spawner = spawned(project)
    agent = new_agent("bob")
    claim(task, agent)
    intent = confirm_intent(task, agent)
    ack(intent, spawner, message_id="ack-1")
    assert ack(intent, spawner, message_id="ack-1").type == MailType.INTENT_ACK
    with pytest.raises(Conflict) as refused:
        ack(intent, spawner, "rejected", content="no")
    assert refused.value.extra["standing"]["verdict"] == "confirmed"
    assert fresh(task).status == TaskStatus.CLAIMED
    assert Mail.objects.filter(type=MailType.INTENT_ACK).count() == 1


def test_without_an_answer_it_passes_from_the_spawner_to_the_auditor_to_sir(
    project: Project,
) -> None:
    task, spawner = spawned(project)
    agent = new_agent("bob")
    claim(task, agent)
    intent = confirm_intent(task, agent, questions=["Which?"])
    with time_machine.travel(timezone.now() + timedelta(minutes=9), tick=False):
        sweep()
        heartbeat_task(task_id=task.parent_id or 0, agent=spawner, actor=actor_of(spawner))
        assert handshake_of(task).status == "awaiting_spawner"
    with time_machine.travel(timezone.now() + timedelta(minutes=11), tick=False):
        sweep()
    # Rules cannot answer questions, so it went on to Sir at once.
    assert handshake_of(task).status == "awaiting_sir"
    with pytest.raises(Forbidden):
        ack(intent, spawner)
    assert open_decision_of(project, "clarification").content["handshake"]


def test_rules_confirm_what_its_spawner_left_unanswered(project: Project) -> None:
    task, spawner = spawned(project)
    agent = new_agent("bob")
    claim(task, agent)
    confirm_intent(task, agent)
    release_task(task_id=task.parent_id or 0, agent=spawner, actor=actor_of(spawner))
    sweep()
    assert handshake_of(task).status == "confirmed"


def test_an_auditing_agent_answers_with_its_result_or_by_mail() -> None:
    project = new_project(policy={"seats": {"auditor": ["external"]}})
    for n, by_mail in enumerate((False, True)):
        task, agent, auditor = new_task(project), new_agent(f"bob{n}"), new_agent(f"ada{n}")
        claim(task, agent)
        intent = confirm_intent(task, agent, questions=["Which?"])
        assert handshake_of(task).status == "awaiting_auditor"
        audit_intent(task, auditor, intent, by_mail=by_mail)
        assert handshake_of(task).status == "confirmed_with_correction"
        assert handshake_of(task).answered_by == f"agent:ada{n}"
        assert lease_of(task).corrections == ["both"]
        assert Assignment.objects.get(task=task, seat="auditor").status == "done"
        set_status(task, agent, "working")


def audit_intent(task: Task, auditor: Agent, intent: Mail, *, by_mail: bool) -> None:
    wish = Wish(seats=(Seat.AUDITOR,))
    taken = claim_for_agent(agent=auditor, wish=wish, actor=actor_of(auditor))
    assert taken is not None
    assert taken.task_id == task.pk
    answer = {"status": "confirmed_with_correction", "corrections": ["both"]}
    if by_mail:
        ack(intent, auditor, "confirmed_with_correction", corrections=("both",))
    else:
        hold = Hold(taken.pk, auditor, taken.lease_token)
        submit_result(hold=hold, document=answer, actor=actor_of(auditor))


def test_an_auditor_that_is_silent_passes_it_to_sir() -> None:
    project = new_project(policy={"seats": {"auditor": ["external"]}})
    task, agent = new_task(project), new_agent()
    claim(task, agent)
    confirm_intent(task, agent)
    with time_machine.travel(timezone.now() + timedelta(minutes=11), tick=False):
        sweep()
    assert handshake_of(task).status == "awaiting_sir"
    assert Assignment.objects.get(task=task, seat="auditor").status == "cancelled"
