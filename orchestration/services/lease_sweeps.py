"""Take back leases that ran out or whose worker died, and end work that is over its time.

Source: DESIGN section 3 ("Leases").
"""

from __future__ import annotations

from functools import partial

from django.db.models import Q
from django.utils import timezone

from orchestration.models import Assignment
from orchestration.runner.processes import is_local_token, kill_group
from orchestration.seats.registry import EXTERNAL, worker_backends
from orchestration.services.failures import end_without_result, reclaim
from orchestration.services.lookups import lock_for_result
from orchestration.services.loop import settle_ending
from orchestration.services.repairing import BATCH, repair_each
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.work import SYSTEM, unit_of_work
from orchestration.states import AssignmentStatus, ProjectStatus, TaskStatus


def reclaim_expired_leases() -> int:
    """Take back leases that ran out, after the old process group is dead."""
    rows = Assignment.objects.filter(
        status=AssignmentStatus.LEASED.value,
        is_clock_stopped=False,
        lease_expires_at__lt=timezone.now(),
        held_result__isnull=True,
    ).filter(_CLOCK_RUNS)
    ids = list(rows.order_by("lease_expires_at").values_list("pk", flat=True)[:BATCH])
    return repair_each(ids, partial(_reclaim, why="lease expired"))


# The clocks of agents stand still while their project is not active; our own workers' do not:
# a crash is repaired and a result accepted all the same, but in safe stop Sir repairs first.
_CLOCK_RUNS = ~Q(backend=EXTERNAL) & ~Q(project__status=ProjectStatus.SAFE_STOP.value) | Q(
    project__status__in=[ProjectStatus.ACTIVE.value, ProjectStatus.COMPLETED.value]
)


def reclaim_from_dead(worker_prefix: str, *, alive: str) -> int:
    """Take back at once what an earlier process of this very place held (embedded mode's start)."""
    rows = Assignment.objects.filter(
        status=AssignmentStatus.LEASED.value,
        worker__startswith=worker_prefix,
        backend__in=worker_backends(),
        held_result__isnull=True,
    ).exclude(worker__startswith=alive)
    ids = list(rows.values_list("pk", flat=True))
    return repair_each(ids, partial(_reclaim, why="its worker process ended", even_unexpired=True))


@retry_on_deadlock
def _reclaim(assignment_id: int, *, why: str, even_unexpired: bool = False) -> bool:
    group = Assignment.objects.values_list("process_group", flat=True).get(pk=assignment_id)
    if not _old_group_is_dead(group):
        return False
    with unit_of_work(SYSTEM) as work:
        row = lock_for_result(Assignment.objects.select_related("task").get(pk=assignment_id))
        ended = row.lease_expires_at is not None and row.lease_expires_at < work.now
        if row.status != AssignmentStatus.LEASED or not (ended or even_unexpired):
            return False
        if row.task.status == TaskStatus.WAITING_HUMAN:
            return False
        reclaim(work, row, why=why)
        work.flush()
        settle_ending(work, row.task)
    return True


def _old_group_is_dead(process_group: str) -> bool:
    """Kill what is left of a recorded group on this machine; elsewhere it died with its parent."""
    pgid, _, token = process_group.partition(" ")
    if not pgid or not token or not is_local_token(token):
        return True
    return kill_group(int(pgid), token)


def end_overdue_assignments() -> int:
    """End agents' assignments whose timeout has passed; waiting for Sir is not counted."""
    rows = Assignment.objects.filter(
        status=AssignmentStatus.LEASED.value,
        backend=EXTERNAL,
        is_clock_stopped=False,
        deadline__lt=timezone.now(),
        project__status__in=[ProjectStatus.ACTIVE.value, ProjectStatus.COMPLETED.value],
    )
    return repair_each(list(rows.values_list("pk", flat=True)[:BATCH]), _end_overdue)


@retry_on_deadlock
def _end_overdue(assignment_id: int) -> bool:
    with unit_of_work(SYSTEM) as work:
        row = lock_for_result(Assignment.objects.select_related("task").get(pk=assignment_id))
        is_over = row.deadline is not None and row.deadline < work.now
        runs = row.project.status in (ProjectStatus.ACTIVE, ProjectStatus.COMPLETED)
        if row.status != AssignmentStatus.LEASED or row.is_clock_stopped or not (is_over and runs):
            return False
        end_without_result(
            work, row, AssignmentStatus.FAILED, why="the assignment's time ran out",
            failure_class="timeout",
        )  # fmt: skip
    return True
