"""Write down what Sir is owed to be told, in the transaction that causes it.

Only the opening, the reminding and the closing of a decision write a notice; sending is
`services.deliveries`.
Source: DESIGN section 9.
"""

from __future__ import annotations

from datetime import timedelta

from orchestration.contracts.notices import NoticeEvent
from orchestration.models import Decision, Notice, NoticeRead, Project
from orchestration.rules.reminders import is_deadline_near, next_telling
from orchestration.selectors.notices import unread_ids
from orchestration.services.work import Work
from orchestration.states import DecisionStatus

CLOSINGS = {
    DecisionStatus.DECIDED: NoticeEvent.DECIDED,
    DecisionStatus.EXPIRED: NoticeEvent.EXPIRED,
    DecisionStatus.WITHDRAWN: NoticeEvent.WITHDRAWN,
}


def write_notice(work: Work, decision: Decision, event: NoticeEvent, *, round: int = 0) -> None:
    """Write one notice. Only a P0 wakes its deliverer after the commit; the schedule finds others.

    What it does competes with the step that Sir's verdict just started.
    """
    row = Notice(decision=decision, event=event.value, round=round, created_at=work.now)
    work.insert([row])
    work.tells = work.tells or decision.is_p0


def note_opened(work: Work, decision: Decision, project: Project) -> None:
    """Note that an item was opened, and when Sir is reminded of it first.

    A deadline nearer than the warning before it needs none: the first notice names it.
    """
    policy = project.policy.notifications
    decision.is_deadline_told = is_deadline_near(
        policy, now=work.now, deadline=decision.deadline, is_deadline_told=False
    )
    set_next_telling(work, decision, project)
    write_notice(work, decision, NoticeEvent.OPENED)


def note_closed(work: Work, decision: Decision, target: DecisionStatus) -> None:
    """Note how an item ended: who was told of it elsewhere is told of its end."""
    by_policy = target == DecisionStatus.DECIDED and decision.decided_by_policy
    write_notice(work, decision, NoticeEvent.EXPIRED if by_policy else CLOSINGS[target])


def set_next_telling(work: Work, decision: Decision, project: Project) -> None:
    """Set when Sir is told of an open item again."""
    decision.remind_at = next_telling(
        project.policy.notifications,
        now=work.now,
        reminded=decision.reminded,
        deadline=decision.deadline,
        is_deadline_told=decision.is_deadline_told,
    )
    work.touch(decision, "remind_at", "is_deadline_told")


def note_waiting(work: Work, decision: Decision, project: Project) -> NoticeEvent:
    """Note that an item still waits, or that its deadline is near. Locks: expects the decision."""
    if is_deadline_near(
        project.policy.notifications,
        now=work.now,
        deadline=decision.deadline,
        is_deadline_told=decision.is_deadline_told,
    ):
        event = NoticeEvent.DEADLINE
        decision.is_deadline_told = True
        write_notice(work, decision, event)
    else:
        event = NoticeEvent.REMINDER
        decision.reminded += 1
        work.touch(decision, "reminded")
        write_notice(work, decision, event, round=decision.reminded)
    set_next_telling(work, decision, project)
    return event


def keep_warning_before(work: Work, decision: Decision, project: Project) -> None:
    """Bring the next telling forward where a deadline that runs again asks for it."""
    if decision.deadline is None or decision.is_deadline_told:
        return
    seconds = project.policy.notifications.deadline_warning_seconds
    warning = max(decision.deadline - timedelta(seconds=seconds), work.now)
    if decision.remind_at is None or warning < decision.remind_at:
        decision.remind_at = warning
        work.touch(decision, "remind_at")


def mark_read(*, user_id: int, until: int) -> int:
    """Mark a reader's notices as read, up to the newest that was shown. Return how many."""
    ids = unread_ids(user_id, until=until)
    rows = [NoticeRead(notice_id=pk, user_id=user_id) for pk in ids]
    NoticeRead.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)
