"""Apply held results once their project goes on: the sweep's part of a safe stop.

Source: DESIGN section 4 rule 8.
"""

from __future__ import annotations

import logging

from django.db import InterfaceError, OperationalError

from orchestration.errors import CountersignError
from orchestration.models import Assignment, HeldResult
from orchestration.services.agent_results import REFUSED, hold_over_budget, require_movable
from orchestration.services.budgets import record_overrun
from orchestration.services.failures import requeue_or_fail
from orchestration.services.holding import REPORT
from orchestration.services.lookups import lock_for_result
from orchestration.services.loop import settle_ending
from orchestration.services.results import record_agent_result, record_worker_result
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.work import SYSTEM, Actor, Work, unit_of_work
from orchestration.services.working import shape_answer
from orchestration.states import AssignmentStatus, ProjectStatus, Seat, TaskStatus

logger = logging.getLogger(__name__)
BATCH = 200


def apply_held_results() -> int:
    """Apply what is held in projects that go on, in the order it came. Shape: how many, bounded.

    What came for a task that waits for Sir stays held until he has decided.
    """
    rows = HeldResult.objects.filter(
        project__status__in=[ProjectStatus.ACTIVE.value, ProjectStatus.SUSPENDED.value]
    ).exclude(assignment__task__status=TaskStatus.WAITING_HUMAN.value)
    ids = list(rows.order_by("pk").values_list("assignment_id", flat=True)[:BATCH])
    return sum(_apply(pk) for pk in ids)


def _apply(assignment_id: int) -> bool:
    """Apply one held result, or give its work back; what breaks here holds up no other."""
    try:
        return _apply_or_give_back(assignment_id)
    except Exception:
        # It is still held: the next sweep tries again.
        logger.exception("held result of assignment %s stays held", assignment_id)
        return False


def _apply_or_give_back(assignment_id: int) -> bool:
    try:
        return _apply_one(assignment_id)
    except CountersignError as error:
        logger.warning("held result of assignment %s: %s", assignment_id, error.detail)
        return _give_back(assignment_id, why=f"{REFUSED}: {error.detail}"[:500])
    except (OperationalError, InterfaceError):
        # The database's fault and not the result's.
        raise
    except Exception as error:
        logger.exception("held result of assignment %s", assignment_id)
        return _give_back(assignment_id, why=f"{REFUSED}: {type(error).__name__}: {error}"[:500])


@retry_on_deadlock
def _apply_one(assignment_id: int) -> bool:
    """Apply one held result if the lease it came under still stands."""
    held = HeldResult.objects.filter(assignment=assignment_id).first()
    if held is None:
        return False
    with unit_of_work(SYSTEM if held.is_workers else Actor(held.actor)) as work:
        row = _lock(assignment_id)
        if row.task.status == TaskStatus.WAITING_HUMAN:
            return False
        HeldResult.objects.filter(pk=held.pk).delete()
        if row.status != AssignmentStatus.LEASED or row.token != held.token:
            return False
        _record(work, row, held)
        work.flush()
        settle_ending(work, row.task)
        work.wake()
    return True


def _record(work: Work, row: Assignment, held: HeldResult) -> None:
    if held.is_workers:
        answer = shape_answer(row.task, Seat(row.seat), held.document)
        record_worker_result(work, row, row.task.parent, answer)
        return
    require_movable(row)
    if hold_over_budget(work, row, held.document, held.digest):
        return
    record_overrun(work, row)
    record_agent_result(work, row, row.task.parent, held.document)
    row.result = {**(row.result if isinstance(row.result, dict) else {}), REPORT: held.digest}
    work.touch(row, "result")


@retry_on_deadlock
def _give_back(assignment_id: int, *, why: str) -> bool:
    """Queue work again whose held result could not be applied; what cannot be undone asks Sir."""
    with unit_of_work(SYSTEM) as work:
        row = _lock(assignment_id)
        HeldResult.objects.filter(assignment=row).delete()
        if row.status == AssignmentStatus.LEASED:
            requeue_or_fail(work, row, why=why, is_transient=False)
            work.flush()
            settle_ending(work, row.task)
    return True


def _lock(assignment_id: int) -> Assignment:
    return lock_for_result(Assignment.objects.select_related("task").get(pk=assignment_id))
