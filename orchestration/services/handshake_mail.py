"""The mail of the semantic handshake: the intent, its ack, and the start of the work.

Source: DESIGN section 12, section 4 rule 11; source document 003.
"""

from __future__ import annotations

from collections.abc import Mapping

from orchestration.broadcast import AGENTS_TOPIC
from orchestration.errors import Conflict, Forbidden
from orchestration.models import Agent, Assignment, Handshake, Mail, Task
from orchestration.scopes import Scope
from orchestration.services.execution import start_work
from orchestration.services.handshake import (
    Answer,
    acker_lease,
    answer_handshake,
    confirm_intent,
    live_spawner,
    require_open_to_intent,
)
from orchestration.services.light_plans import store_light_plan
from orchestration.services.lookups import lock_for_result
from orchestration.services.mail import AGENT_PREFIX, Address, sender_address, store_mail
from orchestration.services.moves import move_assignment
from orchestration.services.posts import Post, letter_of, missing
from orchestration.services.tasks import held_lease, lock_with_parent, require_at_work
from orchestration.services.work import Work
from orchestration.states import HANDSHAKE_OPEN, AssignmentStatus, HandshakeStatus, Seat


def _require_executor(post: Post) -> Agent:
    """Return the sending agent where its token executes. Errors: Forbidden."""
    if post.agent is None:
        raise Forbidden("Only an agent does this, with its own token.", code="agents_only")
    if Scope.EXECUTE.value not in post.agent.scopes:
        raise Forbidden(
            "This token lacks the scope 'execute'.", code="scope_missing", scope="execute"
        )
    return post.agent


def _lock_held(post: Post) -> tuple[Task, Assignment]:
    """Lock the task a handshake is about, and the sender's lease of it. Errors: LeaseLost."""
    agent = _require_executor(post)
    found = post.task or (post.answered.task if post.answered is not None else None)
    if found is None:
        raise missing(("task", "is required"))
    task = lock_with_parent(found.pk)
    held = held_lease(task, agent, post.lease_token)
    require_at_work(task)
    return task, held


def _spawner_address(task: Task, held: Assignment) -> list[Address]:
    spawner = live_spawner(task, held.agent_id)
    agent = spawner.agent if spawner is not None else None
    return [Address(f"{AGENT_PREFIX}{agent.name}", agent)] if agent is not None else []


def send_intent(work: Work, post: Post) -> Mail:
    """Put up what the sender understood of the task that it claimed."""
    understood = post.document.understood
    faults = [
        (name, "is required") for name in ("scope", "approach") if not getattr(understood, name)
    ]
    if faults:
        raise missing(*faults)
    task, held = _lock_held(post)
    require_open_to_intent(task, held)
    to = _spawner_address(task, held)
    details = understood.model_dump(mode="json", exclude={"extra"})
    letter = letter_of(post, to, details=details)
    letter.task = task
    mail = store_mail(work, letter)
    confirm_intent(work, held, mail)
    return mail


VERDICTS: Mapping[str, HandshakeStatus] = {
    one.value: one
    for one in (
        HandshakeStatus.CONFIRMED,
        HandshakeStatus.CONFIRMED_WITH_CORRECTION,
        HandshakeStatus.REJECTED,
    )
}


def send_ack(work: Work, post: Post) -> Mail:
    """Answer an intent, as the agent whose turn it is. Sir answers in his inbox."""
    document, answered = post.document, post.answered
    if answered is None or document.status is None:
        raise missing(
            *([] if answered is not None else [("in_reply_to", "is required")]),
            *([] if document.status is not None else [("status", "is required")]),
        )
    if document.status == "confirmed_with_correction" and not document.corrections:
        raise missing(("corrections", "say what is corrected"))
    if document.status == "rejected" and not (document.text or document.corrections):
        raise missing(("content", "say why it is rejected"))
    if post.agent is None:
        raise Forbidden(
            "An intent that waits for a person is answered in the inbox.", code="decide_instead"
        )
    handshake, held = _lock_intent(answered)
    auditor = _require_acker(handshake, post.agent)
    details = {"status": document.status, "corrections": list(document.corrections)}
    letter = letter_of(post, sender_address(answered), details=details)
    letter.task = held.task
    mail = store_mail(work, letter)
    if auditor is not None:
        move_assignment(work, auditor, AssignmentStatus.DONE)
        work.flush()
    why = document.text or "; ".join(document.corrections)
    answer_handshake(
        work, handshake, held,
        Answer(VERDICTS[document.status], post.actor.name, document.corrections, why, mail),
    )  # fmt: skip
    work.hint(AGENTS_TOPIC, None)
    return mail


def _lock_intent(answered: Mail) -> tuple[Handshake, Assignment]:
    """Lock the assignment whose intent a mail put up. Errors: Invalid when it put up none."""
    found = Handshake.objects.select_related("assignment__task").filter(mail=answered).first()
    if found is None:
        raise missing(("in_reply_to", "is no intent_confirmation"))
    held = lock_for_result(found.assignment)
    handshake = Handshake.objects.select_related("mail__sender_agent").get(pk=found.pk)
    handshake.task, handshake.assignment = held.task, held
    return handshake, held


def _require_acker(handshake: Handshake, agent: Agent) -> Assignment | None:
    """Raise unless an agent may answer now. Return its auditor's lease, None for the spawner.

    Errors: Conflict with what stands; Forbidden for anybody else.
    """
    if handshake.status not in HANDSHAKE_OPEN:
        raise Conflict(
            f"this intent is {handshake.status} already",
            code="already_answered",
            standing={
                "verdict": handshake.status,
                "decided_by": handshake.answered_by,
                "corrections": handshake.corrections,
            },
        )
    lease = acker_lease(handshake, agent)
    if lease is None:
        raise Forbidden(
            f"this intent is {handshake.status}; its answer is not yours", code="not_the_acker"
        )
    if lease.seat == Seat.EXECUTOR:
        return None
    lease.task, lease.project = handshake.task, handshake.task.project
    return lease


def send_start(work: Work, post: Post) -> Mail:
    """Begin the work: the same as the status `working`."""
    task, held = _lock_held(post)
    start_work(work, task, held)
    held.has_progress = True
    work.touch(held, "has_progress")
    if post.document.light_plan:
        store_light_plan(work, task, held, post.document.light_plan)
    to = _spawner_address(task, held)
    expected = post.document.expected_output
    letter = letter_of(post, to, details={"expected_output": expected} if expected else {})
    letter.task = task
    return store_mail(work, letter)
