"""The semantic handshake: an executor says what it understood, and starts when that is confirmed.

Who answers: the agent that spawned the task while its lease lives, else the auditor seat, else Sir.
Meanwhile the task stays `claimed` and its lease clock stands still. Corrections are kept in
`Assignment.corrections`, for the prompt of whoever works on it.
Source: DESIGN section 4 rule 11, section 12; source document 003.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from orchestration.contracts.mail import Understanding
from orchestration.contracts.mail_types import MailType
from orchestration.contracts.results import IntentResult
from orchestration.errors import Conflict, CountersignError
from orchestration.models import Agent, Assignment, Decision, Handshake, Mail, Task
from orchestration.rules.scope import outside_scope
from orchestration.seats.base import SeatJob
from orchestration.seats.registry import EXTERNAL, pick_backend
from orchestration.services.assignments import queue_assignment
from orchestration.services.clocks import RUNNING, renew_lease, stop_clock
from orchestration.services.handshake_gate import handshake_of
from orchestration.services.inbox import open_decision, open_decisions
from orchestration.services.loop import fail_leaf, retry_leaf, settle_ending
from orchestration.services.mail import AGENT_PREFIX, Address, Letter, store_mail
from orchestration.services.moves import (
    close_question,
    move_assignment,
    move_handshake,
    void_handshakes,
)
from orchestration.services.work import Work, locked
from orchestration.states import (
    HANDSHAKE_OPEN,
    HANDSHAKE_PASSED,
    AssignmentStatus,
    DecisionKind,
    HandshakeStatus,
    Seat,
    TaskStatus,
)

HANDSHAKE = "handshake"
"""`reason` of a clarification that is about an intent, and key of the handshake's id in it."""
QUESTION = "Has the agent understood this task?"


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered to an intent. Shape: `by` is an actor's name; `mail` the ack, if sent."""

    verdict: HandshakeStatus
    by: str
    corrections: Sequence[str] = ()
    why: str = ""
    mail: Mail | None = None


def live_spawner(task: Task, executor_id: int | None) -> Assignment | None:
    """Read the lease of the agent that spawned a task; nobody confirms an intent of their own."""
    if task.parent_id is None:
        return None
    rows = Assignment.objects.select_related("agent").filter(
        task_id=task.parent_id,
        seat=Seat.EXECUTOR.value,
        status=AssignmentStatus.LEASED.value,
        agent__isnull=False,
    )
    if executor_id is not None:
        rows = rows.exclude(agent_id=executor_id)
    return rows.first()


def require_open_to_intent(task: Task, held: Assignment) -> None:
    """Raise unless an executor may still put up its intent.

    Errors: Conflict when it has begun, or was confirmed under this lease already.
    """
    if task.status != TaskStatus.CLAIMED:
        raise Conflict(
            f"the task is {task.status}: an intent is confirmed before the work starts",
            code="illegal_transition",
            allowed=[],
        )
    found = handshake_of(held)
    if found is not None and found.status in HANDSHAKE_PASSED:
        raise Conflict("the intent is confirmed already; start", code="already_confirmed")


def confirm_intent(work: Work, held: Assignment, mail: Mail) -> Handshake:
    """Put an executor's intent up for confirmation and stop its lease clock.

    An earlier one of this lease that still waits is void: what is confirmed is what was said last.
    Locks: expects parent, task and assignment locked.
    """
    void_handshakes(work, held, why="the agent revised its intent")
    work.flush()
    spawner = live_spawner(held.task, held.agent_id)
    first = HandshakeStatus.AWAITING_SPAWNER if spawner else HandshakeStatus.AWAITING_AUDITOR
    handshake = Handshake.objects.create(
        task=held.task,
        assignment=held,
        token=held.token,
        mail=mail,
        status=first.value,
        created_at=work.now,
    )
    work.record(
        "handshake.opened",
        subject=f"handshake:{handshake.pk}",
        project_id=held.project_id,
        task_id=held.task_id,
        after={
            "status": first.value,
            "assignment": held.pk,
            "message_id": mail.message_id,
            "questions": len(mail.details.get("questions", ())),
        },
    )
    stop_clock(work, held)
    held.has_progress = True
    work.touch(held, "has_progress")
    if spawner is not None:
        _start_waiting(work, handshake)
    else:
        _ask_auditor(work, handshake, held)
    return handshake


def _start_waiting(work: Work, handshake: Handshake) -> None:
    """Start the time after which the next one is asked; in a paused project it stands still."""
    project = handshake.task.project
    seconds = project.policy.limits.handshake_ack_seconds
    runs = project.status in RUNNING
    handshake.due_at = work.now + timedelta(seconds=seconds) if runs else None
    handshake.due_seconds = None if runs else seconds
    work.touch(handshake, "due_at", "due_seconds")


def pass_on(work: Work, handshake: Handshake, held: Assignment, *, why: str) -> None:
    """Ask the next one: the auditor after the spawner, Sir after the auditor.

    Locks: expects task and assignment locked.
    """
    if handshake.status == HandshakeStatus.AWAITING_SPAWNER:
        move_handshake(work, handshake, HandshakeStatus.AWAITING_AUDITOR, why=why)
        work.flush()
        _ask_auditor(work, handshake, held)
    elif handshake.status == HandshakeStatus.AWAITING_AUDITOR:
        _ask_sir(work, handshake, held, why=why)


def _ask_auditor(work: Work, handshake: Handshake, held: Assignment) -> None:
    task = held.task
    understood = Understanding.model_validate(handshake.mail.details)
    asked = {
        "stage": HANDSHAKE,
        HANDSHAKE: str(handshake.pk),
        "message_id": handshake.mail.message_id,
        "understanding": understood.to_document(),
    }
    backend = pick_backend(SeatJob(Seat.AUDITOR, task, None, asked), task.project.policy)
    if backend is not None and backend.name == EXTERNAL:
        queue_assignment(
            work, task, Seat.AUDITOR, task.project.policy, input=asked, backend=EXTERNAL
        )
        _start_waiting(work, handshake)
        return
    doubts = doubts_about(understood, task)
    if doubts:
        _ask_sir(work, handshake, held, why="; ".join(doubts))
        return
    with work.as_system():
        answer_handshake(work, handshake, held, Answer(HandshakeStatus.CONFIRMED, "system"))


def doubts_about(understood: Understanding, task: Task) -> list[str]:
    """Say why rules cannot confirm an intent: it asks, or it reaches beyond the task's scope."""
    doubts = []
    if understood.questions:
        doubts.append("the agent asks")
    try:
        outside = outside_scope(understood.scope, task.scope)
    except CountersignError as error:
        outside = [error.detail]
    if outside:
        doubts.append(f"outside the task's scope: {', '.join(outside)[:500]}")
    return doubts


def _ask_sir(work: Work, handshake: Handshake, held: Assignment, *, why: str) -> None:
    move_handshake(work, handshake, HandshakeStatus.AWAITING_SIR, why=why)
    handshake.due_at = handshake.due_seconds = None
    work.touch(handshake, "due_at", "due_seconds")
    work.flush()
    close_question(work, handshake, why="passed on to Sir")
    ask_about_intent(work, handshake, held, why=why)


def ask_about_intent(work: Work, handshake: Handshake, held: Assignment, *, why: str) -> bool:
    """Open the `clarification` of an intent, unless another of the task stands.

    Return whether it was opened.
    """
    task = held.task
    if open_decisions(task=task, kind=DecisionKind.CLARIFICATION):
        return False
    with work.as_system():
        open_decision(
            work,
            kind=DecisionKind.CLARIFICATION,
            project=task.project,
            task=task,
            title=task.title,
            question=QUESTION,
            content={
                "reason": HANDSHAKE,
                HANDSHAKE: str(handshake.pk),
                "asked_by": held.worker,
                "asked_at": handshake.created_at.isoformat(),
                "detail": why,
                "understanding": dict(handshake.mail.details),
                "scope": list(task.scope),
                "complexity": task.complexity,
                "description": task.description,
            },
            params={"about": "intent"},
        )
    return True


def answer_intent(work: Work, decision: Decision, verdict: str) -> None:
    """Give Sir's answer to an intent: it comes back to the agent as the ack.

    Locks: the assignment, after its task; expects task and decision locked.
    """
    handshake = _find(int(decision.content[HANDSHAKE]))
    held = locked(Assignment.objects.filter(pk=handshake.assignment_id)).get()
    if decision.task is None or handshake.status not in HANDSHAKE_OPEN:
        raise Conflict("this intent does not wait any more", code="already_answered")
    held.task, held.project = decision.task, decision.project
    handshake.task, handshake.assignment = decision.task, held
    corrections = [decision.reason] if decision.reason and verdict != "rejected" else []
    answer_handshake(
        work, handshake, held,
        Answer(HandshakeStatus(verdict), work.actor.name, corrections, why=decision.reason),
    )  # fmt: skip


def _find(handshake_id: int) -> Handshake:
    return Handshake.objects.select_related("mail__sender_agent").get(pk=handshake_id)


def answer_handshake(work: Work, handshake: Handshake, held: Assignment, answer: Answer) -> None:
    """Record the answer to an intent, tell its executor, and let it start or begin anew.

    An ack gives a full lease; a refusal counts one attempt.
    Errors: IllegalTransition when it was answered before.
    Locks: expects parent, task and assignment locked.
    """
    handshake.answered_by, handshake.answered_at = answer.by, work.now
    handshake.corrections = list(answer.corrections)
    handshake.due_at = handshake.due_seconds = None
    work.touch(handshake, "answered_by", "answered_at", "corrections", "due_at", "due_seconds")
    move_handshake(work, handshake, answer.verdict, why=answer.why)
    if answer.mail is None:
        _mail_answer(work, handshake, held, answer)
    work.flush()
    close_question(work, handshake, why="the intent was answered")
    if answer.verdict is HandshakeStatus.REJECTED:
        _refuse(work, held, answer)
        return
    fresh = [text for text in answer.corrections if text not in held.corrections]
    held.corrections = [*held.corrections, *fresh]
    work.touch(held, "corrections")
    if held.task.status == TaskStatus.CLAIMED:
        renew_lease(work, held, seconds=held.project.policy.limits.lease_seconds)


def _mail_answer(work: Work, handshake: Handshake, held: Assignment, answer: Answer) -> None:
    """Send the ack that rules or Sir gave to the agent that asked for it."""
    agent = handshake.mail.sender_agent
    if agent is None:
        return
    details: dict[str, Any] = {
        "status": answer.verdict.value,
        "corrections": list(answer.corrections),
    }
    letter = Letter(
        project=held.project,
        task=held.task,
        type=MailType.INTENT_ACK,
        sender=answer.by,
        to=[Address(f"{AGENT_PREFIX}{agent.name}", agent)],
        parts=[{"text": answer.why}] if answer.why else [],
        details=details,
        in_reply_to=handshake.mail,
    )
    store_mail(work, letter)


def _refuse(work: Work, held: Assignment, answer: Answer) -> None:
    """Send a task back whose intent was rejected; beyond its tries it fails."""
    task = held.task
    why = f"intent rejected: {answer.why}" if answer.why else "intent rejected"
    by_sir = answer.by.startswith("human:")
    failure_class = "rejected_by_sir" if by_sir else "agent_failed"
    move_assignment(work, held, AssignmentStatus.FAILED, why=why)
    work.flush()
    if task.tries + 1 >= task.project.policy.thresholds.step_attempts:
        fail_leaf(work, task, why=why, failure_class=failure_class, no_more_tries=True)
    else:
        task.tries += 1
        context = {"attempt": task.attempt, "class": failure_class, "root_cause": why,
                   "at": work.now.isoformat()}  # fmt: skip
        task.failure_context = [*task.failure_context, context]
        task.last_outcome = why[:300]
        work.touch(task, "tries", "failure_context", "last_outcome")
        retry_leaf(work, task)
    settle_ending(work, task)


def acker_lease(handshake: Handshake, agent: Agent) -> Assignment | None:
    """Read the lease under which an agent may answer an intent now, or None.

    Locks: that lease, when it is the auditor's.
    """
    task = handshake.task
    if handshake.status == HandshakeStatus.AWAITING_SPAWNER:
        spawner = live_spawner(task, handshake.assignment.agent_id)
        return spawner if spawner is not None and spawner.agent_id == agent.pk else None
    rows = Assignment.objects.filter(
        task_id=task.pk,
        seat=Seat.AUDITOR.value,
        status=AssignmentStatus.LEASED.value,
        agent=agent,
        input__handshake=str(handshake.pk),
    )
    is_due = handshake.status == HandshakeStatus.AWAITING_AUDITOR
    found: Assignment | None = locked(rows).first() if is_due else None
    return found


def answer_as_auditor(work: Work, auditor: Assignment, result: IntentResult) -> None:
    """Take the result of the auditor seat as the answer; one that came too late only ends it.

    Locks: the executor's assignment; expects the task and the auditor's assignment locked.
    """
    move_assignment(work, auditor, AssignmentStatus.DONE)
    work.flush()
    handshake, held = _lock_asked(auditor)
    if handshake.status != HandshakeStatus.AWAITING_AUDITOR:
        return
    why = result.detail or "; ".join(result.corrections)
    verdict = HandshakeStatus(result.status)
    answer_handshake(
        work, handshake, held, Answer(verdict, work.actor.name, result.corrections, why)
    )


def _lock_asked(auditor: Assignment) -> tuple[Handshake, Assignment]:
    """Lock the executor's assignment whose intent an auditor was asked about."""
    handshake = _find(int(auditor.input[HANDSHAKE]))
    held = locked(Assignment.objects.filter(pk=handshake.assignment_id)).get()
    held.task, held.project = auditor.task, auditor.task.project
    handshake.task, handshake.assignment = held.task, held
    return handshake, held


def pass_on_from_auditor(work: Work, auditor: Assignment, *, why: str) -> None:
    """Ask Sir about an intent whose auditor ended without an answer.

    Locks: the executor's assignment; expects the task locked.
    """
    handshake, held = _lock_asked(auditor)
    if handshake.status == HandshakeStatus.AWAITING_AUDITOR:
        pass_on(work, handshake, held, why=why)
