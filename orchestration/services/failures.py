"""Assignments that end without a result: expired, crashed, timed out. Who is replaced, what counts.

An executor's failure is the step's; another seat is replaced without touching the task, and the
third failure in a row asks Sir (rule 9).
Source: DESIGN section 3 ("Leases"), section 4 rule 9.
"""

from __future__ import annotations

from orchestration.models import Assignment, Task
from orchestration.seats.registry import EXTERNAL
from orchestration.services.assignments import queue_assignment
from orchestration.services.handshake import HANDSHAKE, pass_on_from_auditor
from orchestration.services.handshake_gate import starts_unconfirmed
from orchestration.services.inbox import open_decision
from orchestration.services.leases import requeue
from orchestration.services.loop import fail_leaf, settle_ending
from orchestration.services.moves import move_assignment, move_task
from orchestration.services.work import Work
from orchestration.states import (
    AssignmentStatus,
    DecisionKind,
    Seat,
    TaskStatus,
)

STOPPED = "stopped"
"""Key in `Assignment.result`: the engine ended the work without one, and the class of why."""
SEAT_FAILURES = 3
EXPIRIES_IN_A_ROW = 3
NOT_STARTED = "lease expired before execution_start"


def end_without_result(
    work: Work,
    assignment: Assignment,
    target: AssignmentStatus,
    *,
    why: str,
    failure_class: str,
) -> None:
    """End a leased assignment as failed or expired and do what its seat asks for.

    Locks: expects the assignment's and its task's rows locked.
    """
    task = assignment.task
    move_assignment(work, assignment, target, why=why)
    told = assignment.result if isinstance(assignment.result, dict) else {}
    assignment.result = {**told, STOPPED: failure_class}
    work.touch(assignment, "result")
    work.flush()
    if assignment.seat == Seat.EXECUTOR:
        if task.status in (TaskStatus.CLAIMED, TaskStatus.WORKING):
            fail_leaf(work, task, why=why, failure_class=failure_class)
    elif task.status not in (TaskStatus.DONE, TaskStatus.CANCELLED, TaskStatus.FAILED):
        replace_seat(work, assignment, why=why)
    settle_ending(work, task)


def replace_seat(work: Work, assignment: Assignment, *, why: str) -> None:
    """Queue the same work again for another holder; the third failure in a row asks Sir."""
    task = assignment.task
    if HANDSHAKE in assignment.input:
        pass_on_from_auditor(work, assignment, why=why)
        return
    rows = task.assignments.filter(seat=assignment.seat).order_by("-pk")[:SEAT_FAILURES]
    bad = {AssignmentStatus.FAILED.value, AssignmentStatus.EXPIRED.value}
    if len(rows) == SEAT_FAILURES and all(row.status in bad for row in rows):
        ask_about_seat(work, task, assignment, why=why)
        return
    queue_assignment(
        work,
        task,
        Seat(assignment.seat),
        task.project.policy,
        input=assignment.input,
        plan_id=assignment.plan_id,
        defect_id=assignment.defect_id,
        backend=assignment.backend,
    )


def ask_about_seat(work: Work, task: Task, assignment: Assignment, *, why: str) -> None:
    """Open `waiting_human`: a seat could not be filled three times in a row."""
    task.asked_from = task.status
    work.touch(task, "asked_from")
    move_task(work, task, TaskStatus.WAITING_HUMAN, detail=f"{assignment.seat} failed three times")
    open_decision(
        work,
        kind=DecisionKind.WAITING_HUMAN,
        project=task.project,
        task=task,
        title=task.title,
        question=f"The seat {assignment.seat} failed three times in a row. Try again?",
        content={
            "reason": "seat_failed",
            "seat": assignment.seat,
            "assignment": str(assignment.pk),
            "detail": why,
            "description": task.description,
        },
    )


def reclaim(work: Work, assignment: Assignment, *, why: str) -> None:
    """Take back an expired lease.

    Our own worker's death is not the step's fault: the work goes back in the queue under a new
    token, at most as often as transient failures may happen; an irreversible step asks Sir instead.
    An agent's lease that ran out before its handshake was through counts nothing (rule 11). Any
    other without progress is a failed attempt; with progress the task goes back to
    pending and counts nothing, but the third expiry in a row counts whatever the progress.
    """
    task = assignment.task
    if assignment.backend != EXTERNAL:
        requeue_or_fail(work, assignment, why=why, is_transient=False)
    elif assignment.seat == Seat.EXECUTOR and starts_unconfirmed(task, assignment):
        _give_back(work, assignment, why=NOT_STARTED)
    elif assignment.seat == Seat.EXECUTOR and assignment.has_progress and not _third(assignment):
        _give_back(work, assignment, why=why)
    else:
        end_without_result(
            work, assignment, AssignmentStatus.EXPIRED, why="lease_expired",
            failure_class="lease_expired",
        )  # fmt: skip


def _give_back(work: Work, assignment: Assignment, *, why: str) -> None:
    """Expire an executor's lease and queue its task again; it counts nothing."""
    task = assignment.task
    move_assignment(work, assignment, AssignmentStatus.EXPIRED, why=why)
    move_task(work, task, TaskStatus.PENDING, why=why)
    work.flush()
    following = queue_assignment(work, task, Seat.EXECUTOR, task.project.policy, backend=EXTERNAL)
    following.corrections = assignment.corrections
    work.touch(following, "corrections")


def _third(assignment: Assignment) -> bool:
    """Whether this expiry is the third in a row of the executor's seat.

    One before the handshake was through counts nothing, so it is no expiry here.
    """
    earlier = (
        assignment.task.assignments.filter(seat=Seat.EXECUTOR.value)
        .exclude(pk=assignment.pk)
        .exclude(error=NOT_STARTED)
        .order_by("-pk")[: EXPIRIES_IN_A_ROW - 1]
    )
    expired = [row.status == AssignmentStatus.EXPIRED for row in earlier]
    return len(expired) == EXPIRIES_IN_A_ROW - 1 and all(expired)


def _ask_about_cut_off(work: Work, assignment: Assignment, *, why: str) -> None:
    """Open `waiting_human` for an irreversible step that was cut off while it ran."""
    task = assignment.task
    move_assignment(work, assignment, AssignmentStatus.EXPIRED, why=why)
    task.asked_from = TaskStatus.PENDING.value
    work.touch(task, "asked_from")
    move_task(work, task, TaskStatus.WAITING_HUMAN, detail="cut off while it ran; irreversible")
    open_decision(
        work,
        kind=DecisionKind.WAITING_HUMAN,
        project=task.project,
        task=task,
        title=task.title,
        question="This irreversible step was cut off while it ran. May it run again?",
        content={
            "reason": "irreversible_cut_off",
            "commands": [{"argv": list(one["argv"])} for one in task.run],
            "description": task.description,
        },
    )


def requeue_or_fail(work: Work, assignment: Assignment, *, why: str, is_transient: bool) -> None:
    """Put work back in the queue; beyond the cap of transient failures it fails.

    An irreversible step whose command had begun never runs again by itself: Sir is asked.
    """
    began = bool(assignment.process_group)
    if assignment.seat == Seat.EXECUTOR and assignment.task.is_irreversible and began:
        _ask_about_cut_off(work, assignment, why=why)
        return
    cap = assignment.project.policy.limits.transient_retries
    if assignment.transient_count >= cap:
        end_without_result(
            work, assignment, AssignmentStatus.FAILED, why=f"{why} ({cap} times)",
            failure_class="environment",
        )  # fmt: skip
        return
    if not is_transient:
        assignment.transient_count += 1
        work.touch(assignment, "transient_count")
    requeue(work, assignment, why=why, is_transient=is_transient)
