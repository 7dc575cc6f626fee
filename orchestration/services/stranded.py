"""Repair rows that nothing moves any more: ready tasks, finished parents, roots that wait.

Source: DESIGN section 3.
"""

from __future__ import annotations

from django.db.models import Exists, F, OuterRef, Q

from orchestration.models import Assignment, Project, Task
from orchestration.services.completion import check_planned
from orchestration.services.lookups import lock_project, lock_task
from orchestration.services.loop import settle_ending
from orchestration.services.readiness import make_ready, start_roots
from orchestration.services.repairing import BATCH, repair_each
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.tasks import lock_with_parent
from orchestration.services.work import SYSTEM, unit_of_work
from orchestration.states import ASSIGNMENT_LIVE, ProjectStatus, TaskKind, TaskStatus


def restart_stranded_tasks() -> int:
    """Start ready tasks that have no live assignment, finish parents whose steps all ended.

    Nothing leaves such rows behind in normal running; this is the repair of a fault we do not know.
    """
    states = [state.value for state in ASSIGNMENT_LIVE]
    live = Assignment.objects.filter(status__in=states).values("task_id")
    rows = (
        Task.objects.filter(
            status=TaskStatus.PENDING.value,
            remaining_dependencies=0,
            is_superseded=False,
            is_awaiting_commands=False,
            project__status=ProjectStatus.ACTIVE.value,
        )
        .filter(
            Q(parent__isnull=True, is_planned=False)
            | (Q(parent__status=TaskStatus.WORKING.value) | Q(blueprint__isnull=True))
            & Q(
                parent__isnull=False,
                phase__lte=F("parent__open_phase"),
                root__is_ending=False,
                root__is_replanning=False,
            )
        )
        .exclude(pk__in=live)
    )
    ids = list(rows.order_by("pk").values_list("pk", flat=True)[:BATCH])
    return repair_each(ids, _restart) + _finish_stranded_parents()


@retry_on_deadlock
def _restart(task_id: int) -> bool:
    with unit_of_work(SYSTEM) as work:
        task = lock_with_parent(task_id)
        live = [state.value for state in ASSIGNMENT_LIVE]
        if task.status != TaskStatus.PENDING or task.assignments.filter(status__in=live).exists():
            return False
        return bool(make_ready(work, [task]))


def _finish_stranded_parents() -> int:
    """Finish planned tasks none of whose steps is unfinished, and conclude drained attempts."""
    children = Task.objects.filter(parent=OuterRef("pk"))
    ended = (TaskStatus.DONE.value, TaskStatus.CANCELLED.value)
    parents = Task.objects.filter(
        Exists(children),
        ~Exists(children.exclude(status__in=ended)),
        status=TaskStatus.WORKING.value,
        is_planned=True,
        project__status=ProjectStatus.ACTIVE.value,
    )
    count = repair_each(list(parents.values_list("pk", flat=True)[:BATCH]), _finish)
    ending = Task.objects.exclude(project__status=ProjectStatus.SAFE_STOP.value).filter(
        is_ending=True, status=TaskStatus.WORKING.value
    )
    return count + repair_each(list(ending.values_list("pk", flat=True)[:BATCH]), _settle)


@retry_on_deadlock
def _finish(task_id: int) -> bool:
    with unit_of_work(SYSTEM) as work:
        task = lock_task(task_id)
        before = task.status
        check_planned(work, task)
        return task.status != before


@retry_on_deadlock
def _settle(task_id: int) -> bool:
    with unit_of_work(SYSTEM) as work:
        settle_ending(work, lock_task(task_id))
    return True


def start_waiting_roots() -> int:
    """Start planned roots that wait although a place is free."""
    waiting = Task.objects.filter(
        project=OuterRef("pk"),
        parent__isnull=True,
        kind=TaskKind.TASK.value,
        status=TaskStatus.PENDING.value,
        is_planned=True,
    )
    rows = Project.objects.filter(Exists(waiting), status=ProjectStatus.ACTIVE.value)
    return repair_each(list(rows.values_list("pk", flat=True)[:BATCH]), _start_roots)


@retry_on_deadlock
def _start_roots(project_id: int) -> bool:
    with unit_of_work(SYSTEM) as work:
        start_roots(work, lock_project(project_id))
    return True
