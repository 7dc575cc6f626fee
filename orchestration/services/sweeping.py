"""The guarantee behind the wake-ups: find what is due by its rows and call the same services.

Bounded batches, filtered and ordered in SQL. Every sweep may run twice, late or never.
Source: DESIGN section 3, STYLE section 4.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from orchestration.enqueue import slots, wake_workers
from orchestration.models import Assignment, Decision
from orchestration.seats.registry import worker_backends
from orchestration.services.agent_claims import eligible_agents
from orchestration.services.changelog import write_waiting_changelogs
from orchestration.services.clocks import set_clocks_right, wrong_clocks
from orchestration.services.control import ask_about_stalled, stalled_projects
from orchestration.services.cross_checks import resume_review
from orchestration.services.decisions import settle_overdue
from orchestration.services.delegations import close_ended_delegation, ended_delegations
from orchestration.services.held_results import apply_held_results
from orchestration.services.idempotency import forget_old_answers
from orchestration.services.inbox import withdraw_decision
from orchestration.services.judging import judge_again, unjudged_roots
from orchestration.services.lease_sweeps import end_overdue_assignments, reclaim_expired_leases
from orchestration.services.leases import cancel_live
from orchestration.services.lookups import lock_for_result
from orchestration.services.loop import replan_due_roots
from orchestration.services.repairing import BATCH, repair_each
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.stranded import restart_stranded_tasks, start_waiting_roots
from orchestration.services.unanswered import (
    ask_intent,
    ask_negotiation,
    overdue_intents,
    pass_on_intent,
    unasked_intents,
    unasked_negotiations,
)
from orchestration.services.work import SYSTEM, locked, unit_of_work
from orchestration.states import (
    AssignmentStatus,
    DecisionStatus,
    ProjectStatus,
    Seat,
    TaskStatus,
)

logger = logging.getLogger(__name__)
_IN_SAFE_STOP = Q(project__status=ProjectStatus.SAFE_STOP.value)


def sweep() -> Mapping[str, int]:
    """Repair what a lost message or a dead process left behind. Shape: counts by kind.

    One part that fails does not keep the others from running: it is logged, counts -1, and comes
    again with the next sweep.
    """
    return {name: _guarded(name, part) for name, part in PARTS.items()}


def _guarded(name: str, part: Callable[[], int]) -> int:
    try:
        return part()
    except Exception:
        logger.exception("part %s of the sweep failed; the others go on", name)
        return -1


def expire_decisions() -> int:
    """Carry out the named policy of overdue decisions; silence is never consent."""
    rows = Decision.objects.filter(
        status=DecisionStatus.OPEN.value,
        deadline__lt=timezone.now(),
        project__status__in=[ProjectStatus.ACTIVE.value, ProjectStatus.COMPLETED.value],
    )
    due = list(rows.order_by("deadline").values_list("pk", flat=True)[:BATCH])
    return sum(settle_overdue(pk) for pk in due)


def wake_for_queued_work() -> int:
    """Wake workers when queued work of ours waits: the message for it was lost."""
    now = timezone.now()
    rows = Assignment.objects.filter(
        Q(not_before__isnull=True) | Q(not_before__lte=now),
        Q(project__status=ProjectStatus.ACTIVE.value)
        | Q(project__status=ProjectStatus.SUSPENDED.value, seat=Seat.QA.value),
        status=AssignmentStatus.QUEUED.value,
        backend__in=worker_backends(),
    )
    waiting = rows[: settings.COUNTERSIGN_CONCURRENCY].count()
    if waiting:
        slots.forget()
        wake_workers(waiting)
    return waiting


def pass_unmanned_checks() -> int:
    """Let cross-checks become Sir's that wait for agents of whom none is left to do them."""
    rows = Assignment.objects.filter(
        status=AssignmentStatus.QUEUED.value,
        seat=Seat.CROSS_VERIFIER.value,
        task__status=TaskStatus.REVIEW.value,
        project__status=ProjectStatus.ACTIVE.value,
    )
    return repair_each(
        list(rows.order_by("pk").values_list("pk", flat=True)[:BATCH]), _pass_unmanned
    )


@retry_on_deadlock
def _pass_unmanned(assignment_id: int) -> bool:
    with unit_of_work(SYSTEM) as work:
        row = lock_for_result(Assignment.objects.select_related("task").get(pk=assignment_id))
        task = row.task
        is_due = row.status == AssignmentStatus.QUEUED and task.status == TaskStatus.REVIEW
        if not is_due or eligible_agents(task, Seat.CROSS_VERIFIER, work.now):
            return False
        cancel_live(work, [task.pk], why="no agent is left for it", seats=[Seat.CROSS_VERIFIER])
        work.flush()
        resume_review(work, task, task.parent if task.parent_id is not None else None)
    return True


def close_orphaned_decisions() -> int:
    """Withdraw open decisions whose task has ended; none should exist."""
    rows = Decision.objects.filter(
        status=DecisionStatus.OPEN.value,
        task__status__in=[TaskStatus.DONE.value, TaskStatus.CANCELLED.value],
        defect__artifact__isnull=True,
    ).exclude(Q(kind="high_notice") | _IN_SAFE_STOP)
    with unit_of_work(SYSTEM) as work:
        found = list(locked(rows).order_by("pk")[:BATCH])
        for row in found:
            withdraw_decision(work, row, why="task ended")
    return len(found)


def pass_on_intents() -> int:
    """Ask the next one about intents that nobody answered in time."""
    return repair_each(overdue_intents(), pass_on_intent)


def close_what_was_delegated() -> int:
    """Close the delegations of work that has ended, and tell who delegated it."""
    return repair_each(ended_delegations(), close_ended_delegation)


def right_wrong_clocks() -> int:
    """Start clocks that were left standing in a running project, stop those left running."""
    return repair_each(wrong_clocks(), set_clocks_right)


def ask_what_was_not_asked() -> int:
    """Put intents and negotiations before Sir that had to wait for another question."""
    return repair_each(unasked_intents(), ask_intent) + repair_each(
        unasked_negotiations(), ask_negotiation
    )


def judge_unjudged() -> int:
    """Judge roots that wait for a verdict which nobody was asked for."""
    return repair_each(unjudged_roots(), judge_again)


PARTS: Mapping[str, Callable[[], int]] = {
    "held": apply_held_results,
    "clocks": right_wrong_clocks,
    "expired_leases": reclaim_expired_leases,
    "overdue": end_overdue_assignments,
    "decisions": expire_decisions,
    "orphaned_decisions": close_orphaned_decisions,
    "intents": pass_on_intents,
    "unasked": ask_what_was_not_asked,
    "delegations": close_what_was_delegated,
    "unmanned": pass_unmanned_checks,
    "stranded": restart_stranded_tasks,
    "replanned": replan_due_roots,
    "judged": judge_unjudged,
    "roots": start_waiting_roots,
    "stalled": lambda: repair_each(stalled_projects(), ask_about_stalled),
    "woken": wake_for_queued_work,
    "forgotten": forget_old_answers,
    "changelogs": write_waiting_changelogs,
}
"""What one sweep does, in this order."""
