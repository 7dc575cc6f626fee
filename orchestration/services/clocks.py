"""The clocks of a project: leases, timeouts and deadlines stand still while it is not active.

Source: DESIGN section 4 rule 8, section 3 ("Leases").
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet

from orchestration.models import Assignment, Decision, Handshake, Project
from orchestration.services.lookups import lock_project
from orchestration.services.moves import move_project
from orchestration.services.notices import keep_warning_before
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.work import SYSTEM, Work, locked, unit_of_work
from orchestration.states import (
    HANDSHAKE_OPEN,
    AssignmentStatus,
    DecisionStatus,
    ProjectStatus,
    TaskStatus,
)

CLOCK_FIELDS = (
    "is_clock_stopped",
    "lease_expires_at",
    "lease_remaining_seconds",
    "deadline",
    "deadline_remaining_seconds",
)
RUNNING = frozenset({ProjectStatus.ACTIVE, ProjectStatus.COMPLETED})
"""The clocks of a project run in these states only."""
BATCH = 200
REMAINING = "remaining_seconds"
"""Key of an expiry rule under which a stopped deadline keeps what was left of it."""


def suspend_project(work: Work, project: Project, *, why: str) -> None:
    """Suspend an active project and stop its clocks: the one way in. Locks: the project's row.

    Errors: IllegalTransition when it is not active.
    """
    move_project(work, project, ProjectStatus.SUSPENDED, why=why)
    stop_clocks(work, project)


def stop_clocks(work: Work, project: Project) -> None:
    """Stop the lease clocks of a project's agents, and the deadlines of its open decisions."""
    rows = Assignment.objects.filter(
        project=project,
        status=AssignmentStatus.LEASED.value,
        is_clock_stopped=False,
        agent__isnull=False,
    )
    work.flush()
    for row in locked(rows).order_by("pk"):
        stop_clock(work, row)
    for decision in _waiting_decisions(project):
        stop_deadline(work, decision)
    for handshake in _open_handshakes(project).filter(due_at__isnull=False):
        handshake.due_seconds = _seconds_until(handshake.due_at, work)
        handshake.due_at = None
        work.touch(handshake, "due_at", "due_seconds")


def _open_handshakes(project: Project) -> QuerySet[Handshake]:
    """List the intents of a project that wait for an answer. Locks: them, in id order."""
    rows = Handshake.objects.filter(
        task__project=project, status__in=[state.value for state in HANDSHAKE_OPEN]
    )
    return locked(rows).order_by("pk")


def _waiting_decisions(project: Project) -> list[Decision]:
    rows = Decision.objects.filter(
        project=project, status=DecisionStatus.OPEN.value, on_expiry__isnull=False
    )
    return list(locked(rows).order_by("pk"))


def stop_deadline(work: Work, decision: Decision) -> None:
    """Stop the deadline of an open decision, keeping what was left of it."""
    if decision.deadline is None:
        return
    remaining = _seconds_until(decision.deadline, work)
    decision.on_expiry = {**(decision.on_expiry or {}), REMAINING: remaining}
    decision.deadline = None
    work.touch(decision, "deadline", "on_expiry")


def _start_deadline(work: Work, decision: Decision) -> None:
    rule = dict(decision.on_expiry or {})
    if REMAINING not in rule:
        return
    decision.deadline = work.now + timedelta(seconds=rule.pop(REMAINING))
    decision.on_expiry = rule
    work.touch(decision, "deadline", "on_expiry")
    keep_warning_before(work, decision, decision.project)


def stop_clock(work: Work, row: Assignment) -> None:
    """Stop one lease's clocks, keeping what was left of the lease and of the timeout, once."""
    if row.is_clock_stopped:
        return
    row.lease_remaining_seconds = _seconds_until(row.lease_expires_at, work)
    row.deadline_remaining_seconds = _seconds_until(row.deadline, work)
    row.is_clock_stopped = True
    row.lease_expires_at = row.deadline = None
    work.touch(row, *CLOCK_FIELDS)


def _seconds_until(end: datetime | None, work: Work) -> float:
    return max((end - work.now).total_seconds(), 0) if end is not None else 0


def start_clocks(work: Work, project: Project) -> None:
    """Let stopped leases and deadlines go on, but no lease that waits for Sir or for an ack.

    The leases are locked before the intents are read: whoever puts up an intent holds its lease,
    so none of those found stopped can begin to wait unseen.
    """
    rows = Assignment.objects.filter(
        project=project, status=AssignmentStatus.LEASED.value, is_clock_stopped=True
    ).exclude(task__status=TaskStatus.WAITING_HUMAN.value)
    stopped = list(locked(rows).order_by("pk"))
    waiting = list(_open_handshakes(project))
    for handshake in waiting:
        if handshake.due_seconds is not None:
            handshake.due_at = work.now + timedelta(seconds=handshake.due_seconds)
            handshake.due_seconds = None
            work.touch(handshake, "due_at", "due_seconds")
    asking = {handshake.assignment_id for handshake in waiting}
    for row in stopped:
        if row.pk not in asking:
            start_clock(work, row, seconds=row.lease_remaining_seconds or 0)
    for decision in _waiting_decisions(project):
        decision.project = project
        _start_deadline(work, decision)


def start_clock(work: Work, row: Assignment, *, seconds: float) -> None:
    """Start one stopped lease's clocks: some seconds of lease, and what was left of the timeout."""
    row.is_clock_stopped = False
    row.lease_expires_at = work.now + timedelta(seconds=seconds)
    if row.deadline_remaining_seconds is not None:
        row.deadline = work.now + timedelta(seconds=row.deadline_remaining_seconds)
    row.lease_remaining_seconds = row.deadline_remaining_seconds = None
    work.touch(row, *CLOCK_FIELDS)


def wrong_clocks() -> list[int]:
    """List the projects with a clock that stands where it should run, or the other way round.

    Whoever starts to wait reads the project without its lock: Sir may pause or resume meanwhile.
    """
    project = OuterRef("pk")
    leases = Assignment.objects.filter(
        project=project, status=AssignmentStatus.LEASED.value, agent__isnull=False
    ).exclude(task__status=TaskStatus.WAITING_HUMAN.value)
    intents = Handshake.objects.filter(task__project=project, status__in=HANDSHAKE_OPEN)
    asking = Exists(intents.filter(assignment=OuterRef("pk")))
    questions = Decision.objects.filter(project=project, status=DecisionStatus.OPEN.value)
    stands = (
        Exists(leases.filter(~asking, is_clock_stopped=True))
        | Exists(intents.filter(due_seconds__isnull=False))
        | Exists(questions.filter(on_expiry__has_key=REMAINING))
    )
    runs = (
        Exists(leases.filter(is_clock_stopped=False))
        | Exists(intents.filter(due_at__isnull=False))
        | Exists(questions.filter(deadline__isnull=False))
    )
    rows = Project.objects.filter(
        Q(stands, status__in=RUNNING) | Q(runs, status=ProjectStatus.SUSPENDED.value)
    )
    return list(rows.order_by("pk").values_list("pk", flat=True)[:BATCH])


@retry_on_deadlock
def set_clocks_right(project_id: int) -> bool:
    """Start or stop the clocks of a project as its state asks for."""
    with unit_of_work(SYSTEM) as work:
        project = lock_project(project_id)
        if project.status in RUNNING:
            start_clocks(work, project)
        elif project.status == ProjectStatus.SUSPENDED:
            stop_clocks(work, project)
    return True


def renew_lease(work: Work, row: Assignment, *, seconds: float) -> None:
    """Give a lease that waited for Sir its full time; in a paused project it starts later."""
    if row.project.status in RUNNING:
        start_clock(work, row, seconds=seconds)
        return
    row.lease_remaining_seconds = seconds
    work.touch(row, "lease_remaining_seconds")
