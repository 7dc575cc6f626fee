"""The semantic handshake: nothing medium or high starts before its intent is confirmed."""

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
    Forbidden,
    HandshakeRequired,
    Invalid,
    LeaseLost,
)
from orchestration.models import Agent, Assignment, Decision, Mail, Project, Task
from orchestration.services.agent_claims import Wish, claim_for_agent
from orchestration.services.agent_results import Hold, submit_result
from orchestration.services.projects import pause_project, resume_project
from orchestration.services.sweeping import sweep
from orchestration.services.tasks import cancel_task, heartbeat_task, release_task
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
    hand_in,
    new_agent,
    new_project,
    open_decision_of,
    post,
    set_status,
    start,
    step,
    submit_plan,
)
from tests.services.mesh_rooms import (
    SIR,
    ack,
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


def asked(project: Project) -> tuple[Task, Decision]:
    task, agent = new_task(project), new_agent("bob")
    claim(task, agent)
    confirm_intent(task, agent, questions=["Which period?"])
    return task, open_decision_of(project, "clarification")


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
