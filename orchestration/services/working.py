"""What an executor slot does: claim, perform outside any transaction, record, take the next.

Work is pulled. The finisher takes a successor in the transaction that finishes, until nothing is
ready or its time slice ends.
Source: DESIGN section 3.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import DatabaseError

from orchestration.contracts.results import CommentInput, OutputInput
from orchestration.enqueue import slots
from orchestration.errors import CountersignError, EnvironmentDown
from orchestration.models import Assignment, Task
from orchestration.seats.base import SeatJob
from orchestration.seats.registry import backends, worker_backends
from orchestration.services.assignments import claim_next, lease
from orchestration.services.execution import HandIn, start_work
from orchestration.services.failures import end_without_result, requeue_or_fail
from orchestration.services.holding import hold_result, is_stopped
from orchestration.services.leases import requeue
from orchestration.services.lookups import lock_for_result, relock_for_result
from orchestration.services.loop import replan_due_roots
from orchestration.services.outputs import read_output
from orchestration.services.results import WorkerResult, record_worker_result
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.verification import Evidence
from orchestration.services.work import SYSTEM, Slot, Work, unit_of_work
from orchestration.services.worker_link import WorkerLink
from orchestration.states import AssignmentStatus, CommentType, ProjectStatus, Seat

logger = logging.getLogger(__name__)

CHAIN_LIMIT = 8
"""Instant steps of one plan that share a transaction."""


@dataclass(slots=True)
class Shift:
    """One slot at work. `held_back` counts wake-ups not sent yet because the slot is soon back,
    `chained` the results recorded in the present transaction.

    A slot that goes on with instant work wakes nobody in this process: it is back before another
    thread would have arrived, and two would only take turns on one writer.
    """

    slot: Slot
    ends: float
    held_back: int = 0
    chained: int = 0


def work_until_idle(slot: Slot, *, slice_seconds: float, project_id: int | None = None) -> int:
    """Work off what is queued for our own backends. Return how many assignments ended here.

    Failed roots whose re-plan is due come first: that is queued work too.
    """
    shift = Shift(slot, time.monotonic() + slice_seconds)
    replan_due_roots(project_id)
    held = take_up(shift, project_id)
    count = shift.chained
    while held is not None:
        with slots.busy():
            held = perform_and_record(held, shift)
        count += 1
    return count


def take_up(shift: Shift, project_id: int | None) -> Assignment | None:
    """Claim what is next; whatever breaks while it is done at once is claimed by itself instead.

    A broken result must end as a state with its reason, and not stay queued for ever.
    """
    try:
        return claim_and_chain(shift, project_id)
    except DatabaseError:
        raise
    except Exception:
        logger.exception("what was claimed could not be done at once; it is claimed by itself")
        shift.chained = 0
        return claim_one(shift.slot, project_id=project_id)


@retry_on_deadlock
def claim_and_chain(shift: Shift, project_id: int | None) -> Assignment | None:
    """Claim one assignment; do it in the same transaction where it is instant.

    Return what the slot holds then. The commit that a claim of its own would wait for is spared,
    and a crash undoes both.
    """
    take_next = time.monotonic() < shift.ends
    shift.chained = 0
    with unit_of_work(SYSTEM, slot=shift.slot if take_next else None) as work:
        held = claim_next(work, shift.slot, project_id=project_id)
        if held is None:
            return None
        begin(work, held)
        if not _is_instant(held):
            return held
        work.flush()
        row = relock_for_result(held)
        done = perform_instantly(row)
        return row if done is None else record_chain(work, row, done, shift, take_next=take_next)


@retry_on_deadlock
def claim_one(slot: Slot, *, project_id: int | None = None) -> Assignment | None:
    """Claim one assignment in a transaction of its own and start it, or return None."""
    with unit_of_work(SYSTEM) as work:
        held = claim_next(work, slot, project_id=project_id)
        if held is not None:
            begin(work, held)
    return held


def begin(work: Work, held: Assignment) -> None:
    """Start a freshly leased assignment: built-in seats need no handshake."""
    if held.seat == Seat.EXECUTOR:
        start_work(work, held.task, held)


def perform_and_record(held: Assignment, shift: Shift) -> Assignment | None:
    """Do one leased assignment and record it. Return the next one taken with it, or None."""
    link = WorkerLink(held)
    try:
        result = perform(held, link)
    except EnvironmentDown as error:
        link.close()
        give_back(held, why=error.detail[:500], is_transient=True)
        return None
    except Exception as error:
        # Whatever a backend raises must end as a state with its reason, never as a lost lease.
        logger.exception("assignment %s failed in its backend", held.pk)
        link.close()
        give_back(held, why=f"{type(error).__name__}: {error}"[:500], is_transient=True)
        return None
    link.close()
    if result is None:
        give_back(held, why=link.stop_reason or "stopped", is_transient=False)
        return None
    return record(held, held.token, result, shift)


def perform(held: Assignment, link: WorkerLink) -> WorkerResult | None:
    """Run the backend and shape what it answers; None means it was told to stop."""
    backend = backends()[held.backend]
    seat = Seat(held.seat)
    job = SeatJob(seat, held.task, held, held.input)
    document = backend.perform(job, link)
    return None if link.stop_reason else shape_answer(held.task, seat, document)


def shape_answer(task: Task, seat: Seat, document: Mapping[str, Any]) -> WorkerResult:
    """Shape what a backend answered; `raw` is the answer itself, but for QA's bytes."""
    if seat is Seat.EXECUTOR:
        return WorkerResult(hand_in=_hand_in(task, document), raw=document)
    if seat is Seat.QA:
        return WorkerResult(evidence=_evidence(document))
    if seat is Seat.FIXER:
        return WorkerResult(fix=document, raw=document)
    return WorkerResult(document=document, raw=document)


def _hand_in(task: Task, document: Mapping[str, Any]) -> HandIn:
    outputs = []
    for one in document.get("outputs", ()):
        parsed = OutputInput.model_validate(one)
        try:
            data, _ = read_output(task, parsed)
        except CountersignError as error:
            # The run is over and must not be repeated: what cannot be read is missing evidence,
            # which the format layer reports.
            logger.info("output %s of task %s: %s", parsed.title, task.pk, error.detail)
            continue
        outputs.append((parsed, data))
    words = document.get("handoff") or document.get("detail") or "nothing to hand over"
    return HandIn(
        status=document["status"],
        detail=document.get("detail", ""),
        failure_class=document.get("class") or "check_failed",
        outputs=outputs,
        comment=CommentInput(comment_type=CommentType.HANDOFF, body=words),
        runs=document.get("runs", ()),
    )


def _evidence(document: Mapping[str, Any]) -> Evidence:
    return Evidence(
        runs=tuple(document["runs"]),
        verifies=tuple(document["verifies"]),
        claims=tuple(document.get("claims", ())),
        spoken=tuple(document.get("spoken", ())),
        fewer=tuple(document.get("fewer", ())),
        held_back=tuple(document.get("held_back", ())),
        files=document["files"],
        missing=tuple(document["missing"]),
        changed=tuple(document["changed"]),
        refusal=document["refusal"],
        not_run=tuple(document.get("not_run", ())),
    )


@retry_on_deadlock
def record(held: Assignment, token: int, result: WorkerResult, shift: Shift) -> Assignment | None:
    """Record a result if the lease is still ours, and take a successor in the same transaction."""
    take_next = time.monotonic() < shift.ends
    shift.chained = 0
    with unit_of_work(SYSTEM, slot=shift.slot if take_next else None) as work:
        row = relock_for_result(held)
        if not _is_ours(row, token):
            logger.warning("result of assignment %s came under an old token", held.pk)
            return None
        if is_stopped(row.project):
            _keep(work, row, result)
            return None
        return record_chain(work, row, result, shift, take_next=take_next)


def record_chain(
    work: Work, row: Assignment, result: WorkerResult, shift: Shift, *, take_next: bool
) -> Assignment | None:
    """Record a result and the instant steps behind it; return what the slot holds then, or None.

    Locks: as `record_and_take`.
    """
    following = record_and_take(work, row, result, shift, take_next=take_next)
    while following is not None and is_chained(following, row, shift):
        done = perform_instantly(following)
        if done is None:
            break
        following = record_and_take(work, following, done, shift, take_next=True)
    if following is not None:
        hold_back(work, following, shift)
    return following


def _keep(work: Work, row: Assignment, result: WorkerResult) -> None:
    """In safe stop: hold what was done; a check that only looked is made again later."""
    if result.raw is not None:
        hold_result(work, row, result.raw, is_workers=True)
    else:
        requeue(work, row, why="the project is in safe stop")


def record_and_take(
    work: Work, row: Assignment, result: WorkerResult, shift: Shift, *, take_next: bool
) -> Assignment | None:
    """Record one result and lease what its slot does next, or return None.

    Locks: expects parent, task and assignment locked, and the lease checked.
    """
    # Only an executor's step held a slot of its plan; one in review gives none back.
    work.free_slot(row.task.parent_id if row.seat == Seat.EXECUTOR else None)
    shift.chained += 1
    ready = record_worker_result(work, row, row.task.parent, result)
    if not take_next:
        work.wake()
        return None
    following = work.taken or take(work, shift.slot, ready, row.task)
    if following is not None:
        begin(work, following)
    return following


def is_chained(following: Assignment, first: Assignment, shift: Shift) -> bool:
    """Whether an instant step may be done in the transaction that leased it.

    Only a sibling, whose parent is locked here already, and only so many, so that the others wait
    for the writer no longer than for one large step. A crash undoes them all; they did nothing
    outside the database.
    """
    if shift.chained >= CHAIN_LIMIT or time.monotonic() > shift.ends:
        return False
    parent_id = first.task.parent_id
    same_plan = parent_id is not None and following.task.parent_id == parent_id
    return same_plan and following.seat == Seat.EXECUTOR and _is_instant(following)


def _is_instant(row: Assignment) -> bool:
    job = SeatJob(Seat(row.seat), row.task, row, row.input)
    return backends()[row.backend].is_instant(job)


def perform_instantly(following: Assignment) -> WorkerResult | None:
    """Do an instant step where we stand; None when it fails, so that it is done on its own."""
    try:
        return perform(following, WorkerLink(following))
    except DatabaseError:
        # The transaction is broken with it.
        raise
    except Exception:
        # Whatever a backend raises is met again, and ends as a state, when it is done on its own.
        logger.info("assignment %s is not done in a chain", following.pk, exc_info=True)
        return None


def hold_back(work: Work, following: Assignment, shift: Shift) -> None:
    """Keep wake-ups back while this slot goes on with instant work; send them before other work."""
    if _is_instant(following) and not settings.REDIS_URL:
        shift.held_back += work.wakes
        work.wakes = 0
    else:
        work.wake(shift.held_back)
        shift.held_back = 0


def _is_ours(row: Assignment, token: int) -> bool:
    return row.status == AssignmentStatus.LEASED and row.token == token


def take(work: Work, slot: Slot, ready: Sequence[Assignment], finished: Task) -> Assignment | None:
    """Take one of the assignments that just became ready, else the oldest in the queue."""
    names = worker_backends()
    freed = work.freed_parent_id
    for row in ready:
        may_run = row.backend in names and row.task.project.status == ProjectStatus.ACTIVE
        same_slot = row.seat != Seat.EXECUTOR or row.task.parent_id == freed
        if may_run and same_slot and row.status == AssignmentStatus.QUEUED:
            row.task.project = finished.project
            work.wakes -= 1
            return lease(work, row, row.task.project.policy, worker=slot.worker)
    if finished.project.status != ProjectStatus.ACTIVE:
        return None
    work.flush_rows()
    following = claim_next(work, slot, frees_slot_of=freed)
    if following is not None and freed is not None and following.task.parent_id == freed:
        # Read and locked in this very transaction: the sibling's copy of the parent is this one.
        following.task.parent = finished.parent
        following.task.project = following.project = finished.project
    return following


@retry_on_deadlock
def give_back(held: Assignment, *, why: str, is_transient: bool) -> None:
    """Return an assignment without a result: stopped by us, timed out, or its backend broke."""
    with unit_of_work(SYSTEM) as work:
        row = lock_for_result(held)
        if not _is_ours(row, held.token):
            return
        if why == "timeout":
            end_without_result(
                work, row, AssignmentStatus.FAILED, why="the assignment's time ran out",
                failure_class="timeout",
            )  # fmt: skip
        else:
            requeue_or_fail(work, row, why=why, is_transient=is_transient)
