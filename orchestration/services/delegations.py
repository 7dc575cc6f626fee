"""Delegations end with the work that was delegated: its outcome stands on the conversation.

A child's end closes its delegation at once; the sweep closes what ended in any other way.
Source: DESIGN section 12 ("Modes"), section 11.
"""

from __future__ import annotations

from django.db.models import Q

from orchestration.contracts.mail_types import ConversationMode, MailType
from orchestration.models import Conversation, Mail, Task
from orchestration.services.lookups import lock_task
from orchestration.services.mail import Letter, sender_address, store_mail
from orchestration.services.moves import move_conversation
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.work import SYSTEM, Work, locked, unit_of_work
from orchestration.states import TASK_TERMINAL, ConversationStatus, ProjectStatus

BATCH = 200
_OPEN = Q(mode=ConversationMode.DELEGATION.value, status=ConversationStatus.OPEN.value)
_ENDED = Q(task__status__in=[state.value for state in TASK_TERMINAL]) | Q(task__is_superseded=True)


def outcome_of(task: Task) -> str:
    """Say how a task ended, and why where that is known."""
    said = f"{task} ended: {task.status}"
    reason = task.status_detail or task.cancel_reason
    return (f"{said}, {reason}" if reason else said)[:2000]


def close_delegations(work: Work, task: Task, outcome: str) -> list[Mail]:
    """Close the open delegations of a task that ended. Return the mail that began each.

    Locks: expects the task locked; takes its conversations in id order.
    """
    rows = locked(Conversation.objects.filter(_OPEN, task=task)).order_by("pk")
    began = []
    for conversation in rows:
        conversation.task, conversation.project = task, task.project
        conversation.outcome = outcome
        work.touch(conversation, "outcome")
        move_conversation(work, conversation, ConversationStatus.CLOSED, why="task ended")
        first = conversation.mail.select_related("sender_agent", "conversation").earliest("pk")
        began.append(first)
    return began


def ended_delegations() -> list[int]:
    """List tasks that ended while a delegation of them is open, oldest conversation first."""
    rows = Conversation.objects.filter(_OPEN).filter(_ENDED)
    rows = rows.exclude(project__status=ProjectStatus.SAFE_STOP.value).order_by("pk")
    found = rows.values_list("task_id", flat=True)[:BATCH]
    return list(dict.fromkeys(found))


@retry_on_deadlock
def close_ended_delegation(task_id: int) -> bool:
    """Close the delegations of a task, if it has ended, and tell whoever delegated it."""
    with unit_of_work(SYSTEM) as work:
        task = lock_task(task_id)
        if task.status not in TASK_TERMINAL and not task.is_superseded:
            return False
        outcome = outcome_of(task)
        began = close_delegations(work, task, outcome)
        for first in began:
            tell_delegator(work, task, first, outcome)
    return bool(began)


def tell_delegator(work: Work, task: Task, first: Mail, outcome: str) -> None:
    """Answer the mail that delegated a task with how it ended."""
    to = sender_address(first)
    if not to:
        return
    letter = Letter(
        project=task.project,
        task=task,
        type=MailType.INFORM,
        sender="system",
        to=to,
        parts=[{"text": outcome}],
        details={"child": str(task.pk), "status": task.status},
        in_reply_to=first,
    )
    with work.as_system():
        store_mail(work, letter)
