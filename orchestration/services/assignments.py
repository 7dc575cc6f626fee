"""Assignments: queue, and claim with a lease and a fencing token; what follows is in `leases`.

A claim is a compare-and-set on the row; a result under an older token is refused.
Source: DESIGN sections 2 and 3 ("Leases").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.db.models import Count, Q

from orchestration.broadcast import AGENTS_TOPIC
from orchestration.errors import NotReady
from orchestration.models import Agent, Assignment, Project, Task
from orchestration.models.rows import fetch_rows, new_row
from orchestration.models.statements import queued_candidates, running_children
from orchestration.policy import Policy
from orchestration.rules.scoring import COLLABORATION
from orchestration.seats.base import SeatJob
from orchestration.seats.registry import EXTERNAL, pick_backend, worker_backends
from orchestration.services.leases import WORKER_LEASE_SECONDS, new_lease_token
from orchestration.services.lookups import lock_task
from orchestration.services.moves import (
    hint_task,
    move_assignment,
    move_task,
    record_assignment,
)
from orchestration.services.work import Slot, Work
from orchestration.states import (
    AssignmentStatus,
    Complexity,
    ProjectStatus,
    Seat,
    TaskStatus,
)

_CANDIDATES = 20


def queue_assignment(
    work: Work,
    task: Task,
    seat: Seat,
    policy: Policy,
    *,
    input: Mapping[str, Any] | None = None,
    plan_id: int | None = None,
    defect_id: int | None = None,
    backend: str | None = None,
) -> Assignment:
    """Queue one assignment for the first backend that can fill the seat, and wake a worker.

    Without one it waits for an agent.
    Locks: expects the task's row locked.
    """
    document = dict(input or {})
    if backend is None:
        chosen = pick_backend(SeatJob(seat, task, None, document), policy)
        # Work that no backend can fill waits for an agent; that is no error (DESIGN section 2).
        backend = chosen.name if chosen is not None else EXTERNAL
    assignment = build_assignment(
        work,
        task,
        seat,
        policy,
        backend=backend,
        input=document,
        plan_id=plan_id,
        defect_id=defect_id,
    )
    work.insert([assignment])
    record_queued(work, assignment)
    return assignment


def build_assignment(
    work: Work,
    task: Task,
    seat: Seat,
    policy: Policy,
    *,
    backend: str,
    input: dict[str, Any],
    plan_id: int | None = None,
    defect_id: int | None = None,
) -> Assignment:
    """Build an unsaved assignment with the hints and limits of its task."""
    mode = COLLABORATION[Complexity(task.complexity or Complexity.LOW)]
    return new_row(
        Assignment,
        project_id=task.project_id,
        task=task,
        plan_id=plan_id,
        defect_id=defect_id,
        seat=seat.value,
        backend=backend,
        attempt=task.attempt,
        queued_at=work.now,
        input=input,
        hints={
            "model": policy.model_hint(seat),
            "effort": mode.effort,
            "thinking": mode.thinking,
        },
        limits={
            "turns": policy.limits.turns,
            "cost_usd": policy.limits.cost_usd,
            "timeout_seconds": policy.limits.timeout_seconds(task.depth),
        },
    )


def record_queued(work: Work, assignment: Assignment) -> None:
    """Record a saved assignment as queued and wake whoever can take it."""
    work.record(
        "assignment.queued",
        subject=f"assignment:{assignment.pk}",
        project_id=assignment.project_id,
        task_id=assignment.task_id,
        after={
            "status": AssignmentStatus.QUEUED.value,
            "seat": assignment.seat,
            "backend": assignment.backend,
            "attempt": assignment.attempt,
        },
    )
    if assignment.backend == EXTERNAL:
        work.hint(f"task:{assignment.task_id}", assignment.project_id)
        work.hint(AGENTS_TOPIC, None)
    else:
        work.wake()


def lease(
    work: Work,
    assignment: Assignment,
    policy: Policy,
    *,
    worker: str,
    agent: Agent | None = None,
) -> Assignment:
    """Lease a locked, queued assignment; an executor's task moves to `claimed` with it.

    Errors: IllegalTransition when the row is no longer queued.
    Locks: expects the assignment's and its task's rows locked.
    """
    _fill_lease(work, assignment, policy, worker=worker, agent=agent)
    move_assignment(work, assignment, AssignmentStatus.LEASED)
    work.touch(
        assignment,
        "worker", "agent", "token", "lease_token", "leased_at", "lease_expires_at", "deadline",
        "has_progress",
    )  # fmt: skip
    if assignment.prompt:
        # It was sent to an earlier holder; the trail keeps its digest.
        assignment.prompt = ""
        work.touch(assignment, "prompt")
    task = assignment.task
    if assignment.seat == Seat.EXECUTOR:
        task.assignee = agent
        work.touch(task, "assignee")
        move_task(work, task, TaskStatus.CLAIMED, facts={"holder": worker})
    hint_task(work, task)
    return assignment


def _fill_lease(
    work: Work, assignment: Assignment, policy: Policy, *, worker: str, agent: Agent | None
) -> None:
    seconds = policy.limits.lease_seconds if agent else WORKER_LEASE_SECONDS
    assignment.worker = worker
    assignment.agent = agent
    assignment.token += 1
    assignment.lease_token = new_lease_token(assignment.token)
    assignment.leased_at = work.now
    assignment.lease_expires_at = work.now + timedelta(seconds=seconds)
    timeout = policy.limits.timeout_seconds(assignment.task.depth)
    assignment.deadline = work.now + timedelta(seconds=timeout)
    assignment.has_progress = False


def take_on_the_way(work: Work, rows: Sequence[Assignment]) -> Assignment | None:
    """Let the finisher's free slot take the first new assignment it may run, before it is inserted.

    Only a step of the plan whose slot the finisher gives back, so the parallel limit holds.
    """
    slot = work.slot
    if slot is None or work.taken is not None:
        return None
    names = worker_backends()
    for row in rows:
        runs = row.backend in names and row.task.project.status == ProjectStatus.ACTIVE
        if runs and (row.seat != Seat.EXECUTOR or row.task.parent_id == work.freed_parent_id):
            _fill_lease(work, row, row.task.project.policy, worker=slot.worker, agent=None)
            row.status = AssignmentStatus.LEASED.value
            work.taken = row
            return row
    return None


def record_taken(work: Work, row: Assignment) -> None:
    """Record that a new assignment was leased as it was made, and claim its task with it."""
    record_assignment(work, row, before=AssignmentStatus.QUEUED)
    if row.seat == Seat.EXECUTOR:
        move_task(work, row.task, TaskStatus.CLAIMED, facts={"holder": row.worker})


def claim_next(
    work: Work,
    slot: Slot,
    *,
    frees_slot_of: int | None = None,
    project_id: int | None = None,
) -> Assignment | None:
    """Claim the oldest assignment our own workers may run, or None.

    `frees_slot_of` is the parent whose slot the caller gives back in this same transaction, so a
    sibling may be taken without counting.
    Locks: the parent of the chosen task (unless its slot was just freed), the task, the assignment.
    """
    names = worker_backends()
    if frees_slot_of is not None:
        for row in _siblings(work, names, frees_slot_of):
            claimed = _take(work, row[0], row[1], worker=slot.worker)
            if claimed is not None:
                return claimed
    full: list[int] = []
    while True:
        rows = queued_candidates(
            names, work.now, project_id=project_id, full_parents=full, limit=_CANDIDATES
        )
        for assignment_id, task_id, parent_id, seat in rows:
            if parent_id in full and seat == Seat.EXECUTOR:
                continue
            if seat == Seat.EXECUTOR and parent_id is not None and not has_free_slot(parent_id):
                full.append(parent_id)
                continue
            claimed = _take(work, assignment_id, task_id, worker=slot.worker)
            if claimed is not None:
                return claimed
        if len(rows) < _CANDIDATES:
            return None


def _siblings(
    work: Work, names: Sequence[str], parent_id: int
) -> list[tuple[int, int, int | None, str]]:
    return queued_candidates(names, work.now, parent_id=parent_id, limit=_CANDIDATES)


def has_free_slot(parent_id: int) -> bool:
    """Whether a parent has a slot free. Locks: the parent, so that two claims count right."""
    parent = lock_task(parent_id)
    policy = parent.project.policy
    return running_children(parent_id) < policy.limits.parallel_children


def _take(work: Work, assignment_id: int, task_id: int, *, worker: str) -> Assignment | None:
    """Lock task and assignment and lease it, unless somebody else was first."""
    assignment = lock_queued(assignment_id, task_id)
    if assignment is None or (
        assignment.seat == Seat.EXECUTOR and assignment.task.status != TaskStatus.PENDING
    ):
        return None
    return lease(work, assignment, assignment.project.policy, worker=worker)


def lock_queued(assignment_id: int, task_id: int) -> Assignment | None:
    """Lock a task and its queued assignment, with its project attached.

    Return None where somebody holds either or was first. Locks: the task, then the assignment.
    """
    tasks = fetch_rows(Task, "id = %s", [task_id], lock=True, skip_locked=True)
    if not tasks:
        # The assignment stays free: two claimers with one row each would both end with nothing.
        return None
    rows = fetch_rows(
        Assignment,
        "id = %s AND status = %s",
        [assignment_id, AssignmentStatus.QUEUED.value],
        lock=True,
        skip_locked=True,
    )
    if not rows:
        return None
    task, assignment = tasks[0], rows[0]
    task.project = fetch_rows(Project, "id = %s", [task.project_id])[0]
    assignment.task, assignment.project = task, task.project
    return assignment


def require_claimable(task: Task, reason: str | None) -> None:
    """Raise unless a task may be claimed.

    Errors: NotReady naming the reason, or the holder when it is taken.
    """
    if task.status != TaskStatus.PENDING:
        holder = task.assignee.name if task.assignee else None
        raise NotReady(f"the task is {task.status}", reason=task.status, holder=holder)
    if reason is not None:
        raise NotReady(f"the task is not ready: {reason}", reason=reason)


def queue_depth() -> Mapping[str, int]:
    """Count what our own workers could claim and what they hold. Shape: `queued`, `leased`."""
    counted = Assignment.objects.filter(backend__in=worker_backends()).aggregate(
        queued=Count("pk", filter=Q(status=AssignmentStatus.QUEUED.value)),
        leased=Count("pk", filter=Q(status=AssignmentStatus.LEASED.value)),
    )
    return {"queued": counted["queued"], "leased": counted["leased"]}
