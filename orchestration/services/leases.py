"""Leases: require, compare and extend them, give one back to the queue, cancel the live ones.

Source: DESIGN section 3 ("Leases").
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from datetime import timedelta

from orchestration.broadcast import AGENTS_TOPIC
from orchestration.errors import LeaseLost, WrongLeaseToken
from orchestration.models import Assignment
from orchestration.seats.registry import EXTERNAL
from orchestration.services.moves import move_assignment, move_task
from orchestration.services.work import Work, locked
from orchestration.states import (
    ASSIGNMENT_LIVE,
    TASK_HOLDS_SLOT,
    AssignmentStatus,
    Seat,
    TaskStatus,
)

WORKER_LEASE_SECONDS = 30
"""Lease of our own workers: the crash grace. They heartbeat at a third of it."""


def new_lease_token(number: int) -> str:
    """Make the secret of one lease; it begins with the lease's number, so that an old one shows."""
    return f"{number}.{secrets.token_urlsafe(24)}"


def require_lease(assignment: Assignment, *, lease_token: str) -> None:
    """Raise unless the caller holds the assignment's live lease.

    Errors: LeaseLost naming the present holder; WrongLeaseToken.
    """
    if assignment.status != AssignmentStatus.LEASED:
        raise LeaseLost(
            f"this lease ended: the assignment is {assignment.status}",
            holder=assignment.worker or None,
            code="upgraded" if assignment.error == "upgraded" else "lease_lost",
        )
    require_token(assignment, lease_token)


def require_token(assignment: Assignment, lease_token: str) -> None:
    """Raise unless a token is that of a leased assignment.

    Errors: LeaseLost for the token of an earlier lease; WrongLeaseToken for any other.
    """
    if same_token(lease_token, assignment.lease_token):
        return
    number = lease_token.partition(".")[0]
    if number.isascii() and number.isdecimal() and int(number[:18]) < assignment.token:
        raise LeaseLost(
            "this lease ended: the work was leased again since", holder=assignment.worker or None
        )
    raise WrongLeaseToken("this is not the lease token that the work was given")


def same_token(sent: str, stored: str) -> bool:
    """Compare a lease token in constant time; an empty stored one matches nothing."""
    same = secrets.compare_digest(sent.encode("utf-8", "surrogatepass"), stored.encode())
    return bool(stored) and same


def extend_lease(work: Work, assignment: Assignment, *, has_progress: bool = False) -> Assignment:
    """Give a locked, leased assignment a full lease again.

    Errors: LeaseLost when its lease ended already.
    """
    if assignment.status != AssignmentStatus.LEASED:
        raise LeaseLost("this lease ended", holder=assignment.worker or None)
    policy = assignment.project.policy
    is_external = assignment.backend == EXTERNAL
    seconds = policy.limits.lease_seconds if is_external else WORKER_LEASE_SECONDS
    if not assignment.is_clock_stopped:
        assignment.lease_expires_at = work.now + timedelta(seconds=seconds)
    assignment.has_progress = assignment.has_progress or has_progress
    work.touch(assignment, "lease_expires_at", "has_progress")
    return assignment


def requeue(work: Work, assignment: Assignment, *, why: str, is_transient: bool = False) -> None:
    """Put a leased assignment back in the queue under a new token, an executor's task with it.

    Locks: expects the assignment's and its task's rows locked.
    """
    if is_transient:
        assignment.transient_count += 1
        delay = min(2**assignment.transient_count, 300)
        assignment.not_before = work.now + timedelta(seconds=delay)
        work.touch(assignment, "transient_count", "not_before")
    task = assignment.task
    if assignment.seat == Seat.EXECUTOR and task.status in TASK_HOLDS_SLOT:
        move_task(work, task, TaskStatus.PENDING, why=why)
    move_assignment(work, assignment, AssignmentStatus.QUEUED, why=why)
    if assignment.backend == EXTERNAL:
        work.hint(AGENTS_TOPIC, None)
    else:
        work.wake()


def cancel_live(
    work: Work, task_ids: Sequence[int], *, why: str, seats: Iterable[Seat] = ()
) -> int:
    """Cancel every live assignment of some tasks. Return how many were leased.

    Locks: takes the assignments in id order; expects the tasks locked.
    """
    rows = locked(
        Assignment.objects.select_related("task").filter(
            task_id__in=task_ids, status__in=[state.value for state in ASSIGNMENT_LIVE]
        )
    ).order_by("pk")
    wanted = {seat.value for seat in seats}
    leased = 0
    for row in rows:
        if wanted and row.seat not in wanted:
            continue
        leased += row.status == AssignmentStatus.LEASED
        move_assignment(work, row, AssignmentStatus.CANCELLED, why=why)
    return leased
