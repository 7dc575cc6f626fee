"""What waited too long or was never asked: intents pass on, open questions reach Sir's inbox.

Parts of the sweep; each may run twice, late or never.
Source: DESIGN section 4 rule 11, section 3 (sweeper).
"""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from orchestration.models import Assignment, Conversation, Decision, Handshake
from orchestration.services.clocks import RUNNING
from orchestration.services.handshake import ask_about_intent, live_spawner, pass_on
from orchestration.services.lookups import lock_for_result, lock_task
from orchestration.services.negotiation import ask_about_negotiation
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.work import SYSTEM, locked, unit_of_work
from orchestration.states import (
    AssignmentStatus,
    ConversationStatus,
    DecisionKind,
    DecisionStatus,
    HandshakeStatus,
    Seat,
)

BATCH = 200
LEASED_SPAWNER = Assignment.objects.filter(
    task_id=OuterRef("task__parent_id"),
    seat=Seat.EXECUTOR.value,
    status=AssignmentStatus.LEASED.value,
    agent__isnull=False,
)
QUESTION_OF_TASK = Decision.objects.filter(
    task_id=OuterRef("task_id"),
    kind=DecisionKind.CLARIFICATION.value,
    status=DecisionStatus.OPEN.value,
)


def overdue_intents() -> list[int]:
    """List intents that nobody answered in time, or whose spawner has gone, oldest first."""
    waits = Handshake.objects.filter(task__project__status__in=[state.value for state in RUNNING])
    late = Q(
        due_at__lt=timezone.now(),
        status__in=[
            HandshakeStatus.AWAITING_SPAWNER.value,
            HandshakeStatus.AWAITING_AUDITOR.value,
        ],
    )
    gone = Q(status=HandshakeStatus.AWAITING_SPAWNER.value) & ~Exists(LEASED_SPAWNER)
    rows = waits.filter(late | gone).order_by("pk")
    return list(rows.values_list("pk", flat=True)[:BATCH])


@retry_on_deadlock
def pass_on_intent(handshake_id: int) -> bool:
    """Ask the next one about an intent, if it still waits for nothing that may come."""
    with unit_of_work(SYSTEM) as work:
        found = Handshake.objects.select_related("assignment__task").get(pk=handshake_id)
        held = lock_for_result(found.assignment)
        handshake = Handshake.objects.select_related("mail__sender_agent").get(pk=handshake_id)
        handshake.task, handshake.assignment = held.task, held
        is_late = handshake.due_at is not None and handshake.due_at < work.now
        spawned = handshake.status == HandshakeStatus.AWAITING_SPAWNER
        is_gone = spawned and live_spawner(held.task, held.agent_id) is None
        if not (is_late or is_gone):
            return False
        pass_on(work, handshake, held, why="no answer in time" if is_late else "spawner gone")
    return True


def unasked_intents() -> list[int]:
    """List intents that wait for Sir and stand in no inbox: another question came first."""
    rows = Handshake.objects.filter(status=HandshakeStatus.AWAITING_SIR.value)
    return list(
        rows.filter(~Exists(QUESTION_OF_TASK)).order_by("pk").values_list("pk", flat=True)[:BATCH]
    )


@retry_on_deadlock
def ask_intent(handshake_id: int) -> bool:
    """Put an intent that waits for Sir into the inbox, unless it stands there."""
    with unit_of_work(SYSTEM) as work:
        found = Handshake.objects.select_related("assignment__task").get(pk=handshake_id)
        held = lock_for_result(found.assignment)
        handshake = Handshake.objects.select_related("mail").get(pk=handshake_id)
        if handshake.status != HandshakeStatus.AWAITING_SIR:
            return False
        return ask_about_intent(work, handshake, held, why="")


def unasked_negotiations() -> list[int]:
    """List negotiations that wait for Sir and stand in no inbox."""
    rows = Conversation.objects.filter(
        status=ConversationStatus.AWAITING_SIR.value, task__isnull=False
    )
    return list(
        rows.filter(~Exists(QUESTION_OF_TASK)).order_by("pk").values_list("pk", flat=True)[:BATCH]
    )


@retry_on_deadlock
def ask_negotiation(conversation_id: int) -> bool:
    """Put a negotiation without agreement into the inbox, unless a question of its task stands."""
    with unit_of_work(SYSTEM) as work:
        found = Conversation.objects.get(pk=conversation_id)
        if found.task_id is None:
            return False
        task = lock_task(found.task_id)
        row = locked(Conversation.objects.select_related("proposal").filter(pk=found.pk)).get()
        if row.status != ConversationStatus.AWAITING_SIR:
            return False
        row.task = task
        return ask_about_negotiation(work, row)
