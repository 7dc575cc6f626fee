"""The gate before `working`: whether an executor's intent has to be confirmed, and is.

Reads only. What opens it is `services.handshake`.
Source: DESIGN section 4 (task table, rule 11), section 6 (table), section 12.
"""

from __future__ import annotations

from orchestration.errors import HandshakeRequired
from orchestration.models import Assignment, Handshake, Task
from orchestration.rules.scoring import COLLABORATION
from orchestration.states import HANDSHAKE_OPEN, HANDSHAKE_PASSED, Complexity, TaskStatus


def needs_handshake(task: Task, held: Assignment) -> bool:
    """Whether a lease may start only after its intent was confirmed. Built-in seats never do."""
    mode = COLLABORATION[Complexity(task.complexity or Complexity.LOW)]
    return held.agent_id is not None and mode.handshake


def handshake_of(held: Assignment) -> Handshake | None:
    """Read the newest intent of a lease; one of an earlier lease does not count."""
    rows = Handshake.objects.select_related("mail").filter(assignment_id=held.pk, token=held.token)
    return rows.order_by("-pk").first()


def may_start(task: Task, held: Assignment) -> bool:
    """Whether an executor may begin: confirmed, or nothing has to be and nothing waits.

    Also at low an intent that was sent is waited for.
    """
    if held.agent_id is None:
        return True
    # An intent that waits keeps the clock stopped: without either there is nothing to look up.
    if not needs_handshake(task, held) and not held.is_clock_stopped:
        return True
    found = handshake_of(held)
    if found is not None and found.status in HANDSHAKE_PASSED:
        return True
    return not needs_handshake(task, held) and (found is None or found.status not in HANDSHAKE_OPEN)


def require_start(task: Task, held: Assignment) -> None:
    """Raise unless a claimed task may go to `working` under this lease.

    Errors: HandshakeRequired saying what is missing.
    """
    if task.status != TaskStatus.CLAIMED or may_start(task, held):
        return
    found = handshake_of(held)
    if found is not None and found.status in HANDSHAKE_OPEN:
        raise HandshakeRequired(
            "the intent_confirmation is not answered yet; wait for its intent_ack",
            handshake=found.status,
            message_id=found.mail.message_id,
        )
    raise HandshakeRequired(
        f"this task is {task.complexity}: send an intent_confirmation by mail and wait for its "
        "intent_ack before you start",
        handshake=None,
    )


def starts_unconfirmed(task: Task, held: Assignment) -> bool:
    """Whether a lease ends before its executor was allowed to begin; that counts nothing."""
    return task.status == TaskStatus.CLAIMED and needs_handshake(task, held)
