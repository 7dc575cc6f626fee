"""Reads about tasks that services, API and dashboard share: readiness, master list, filters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from orchestration.models import Decision, Project, Task, TaskDependency
from orchestration.models.prepared import Prepared
from orchestration.models.rows import fetch_columns, new_row
from orchestration.states import (
    MASTER_VIEW,
    TASK_HOLDS_SLOT,
    DecisionStatus,
    NotReadyReason,
    ProjectStatus,
    Route,
    TaskKind,
    TaskStatus,
)

OPEN_PROJECTS = (ProjectStatus.ACTIVE.value, ProjectStatus.COMPLETED.value)
PLANNED_ROUTES = (Route.THREE_STEP.value, Route.WORKFLOW.value)
HELD = [state.value for state in TASK_HOLDS_SLOT]
FAILED_MASTER = MASTER_VIEW[TaskStatus.FAILED]
OUTCOME_PREFIXES = ("failed: ", "NO-GO: ", "waived: ")
MASTER_COLUMNS = (
    "id", "number", "external_key", "title", "description", "spec_id", "rank", "status",
    "status_detail", "cancel_reason", "last_outcome", "failure_count",
)  # fmt: skip
IMPORTED_REASON = "imported"
"""`cancel_reason` of a task that came in cancelled; nobody gave a reason for it."""


def not_ready_reason(task: Task) -> NotReadyReason | None:
    """Say why a pending task is not offered, or None when it is ready.

    Errors: none; a task that is not pending has no reason either.
    """
    running = 0
    if task.status == TaskStatus.PENDING and task.parent is not None:
        running = task.parent.children.filter(status__in=HELD, is_planned=False).count()
    return reason_of(task, running=running)


def reason_of(task: Task, *, running: int) -> NotReadyReason | None:
    """Say why a pending task is not offered, when `running` siblings hold a slot."""
    if task.status != TaskStatus.PENDING:
        return None
    if task.project.status not in OPEN_PROJECTS:
        return NotReadyReason.SUSPENDED
    if task.remaining_dependencies:
        return NotReadyReason.DEPENDENCIES
    if task.is_awaiting_commands:
        return NotReadyReason.AWAITING_COMMAND_APPROVAL
    parent = task.parent
    if parent is not None:
        root = task.root or parent
        # A child that an agent spawned may be what its blocked spawner waits for.
        idle = parent.status != TaskStatus.WORKING and not task.is_spawned
        held = root.is_ending or root.is_replanning or idle
        if held or task.phase > parent.open_phase:
            return NotReadyReason.PHASE
        if running >= task.project.policy.limits.parallel_children:
            return NotReadyReason.SLOTS
    if not task.is_assessed:
        return NotReadyReason.ASSESSING
    return NotReadyReason.QUEUED_ROOT if task.route in PLANNED_ROUTES else None


def master_status(task: Task) -> str:
    """Say a task's state as the master list does.

    A failed root stays FAILED there until its re-plan starts, although it is pending again.
    """
    is_waiting_again = task.status == TaskStatus.PENDING and task.failure_count > 0
    if task.parent_id is None and is_waiting_again:
        return FAILED_MASTER
    return MASTER_VIEW[TaskStatus(task.status)]


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """What a task's own row does not say. Shape: `depends_on` are ids."""

    reason: NotReadyReason | None
    depends_on: tuple[int, ...]
    waiting_for_sir: int


def facts_of(project: Project, tasks: Sequence[Task]) -> Mapping[int, TaskFacts]:
    """Gather the facts of some tasks of one project, in a fixed number of queries."""
    _attach_relatives(project, tasks)
    needed: dict[int, list[int]] = {}
    edges = TaskDependency.objects.filter(task__in=[task.pk for task in tasks])
    for task_id, requires_id in edges.order_by("pk").values_list("task_id", "requires_id"):
        needed.setdefault(task_id, []).append(requires_id)
    running = _running_by_parent({task.parent_id for task in tasks if task.parent_id is not None})
    waiting = _open_decisions_by_task(project)
    return {
        task.pk: TaskFacts(
            reason=reason_of(task, running=running.get(task.parent_id or 0, 0)),
            depends_on=tuple(needed.get(task.pk, ())),
            waiting_for_sir=waiting[task.pk],
        )
        for task in tasks
    }


def _attach_relatives(project: Project, tasks: Sequence[Task]) -> None:
    """Attach project, parent and root to the tasks: two tables wide joins cost more than this."""
    ids = {pk for task in tasks for pk in (task.parent_id, task.root_id) if pk is not None}
    known = {task.pk: task for task in tasks}
    missing = ids - known.keys()
    if missing:
        known |= {row.pk: row for row in Task.objects.filter(pk__in=missing)}
    for task in known.values():
        task.project = project
    for task in tasks:
        if task.parent_id is not None:
            task.parent = known[task.parent_id]
        if task.root_id is not None:
            task.root = known[task.root_id]


def _running_by_parent(parent_ids: set[int]) -> Mapping[int, int]:
    if not parent_ids:
        return {}
    rows = Task.objects.filter(parent__in=parent_ids, status__in=HELD, is_planned=False)
    return dict(rows.order_by().values_list("parent").annotate(Count("pk")))


def _open_decisions_by_task(project: Project) -> Counter[int]:
    """Count the open decisions in each task's subtree: every one counts for all its ancestors."""
    rows = Decision.objects.filter(
        project=project, status=DecisionStatus.OPEN.value, task__isnull=False
    ).values_list(
        "task_id",
        "task__parent_id",
        "task__parent__parent_id",
        "task__parent__parent__parent_id",
    )
    return Counter(pk for chain in rows for pk in chain if pk is not None)


def ready_tasks(project: Project) -> QuerySet[Task]:
    """List the tasks of a project that may be claimed now."""
    rows = Task.objects.filter(project=project)
    if project.status not in OPEN_PROJECTS:
        return rows.none()
    held = (
        Task.objects.filter(parent=OuterRef("parent"), status__in=HELD, is_planned=False)
        .order_by()
        .values("parent")
        .annotate(count=Count("pk"))
        .values("count")
    )
    in_plan = Q(Q(parent__status=TaskStatus.WORKING.value) | Q(blueprint__isnull=True)) & Q(
        phase__lte=F("parent__open_phase"),
        root__is_ending=False,
        root__is_replanning=False,
        running__lt=project.policy.limits.parallel_children,
    )
    return (
        rows.filter(
            status=TaskStatus.PENDING.value,
            remaining_dependencies=0,
            is_awaiting_commands=False,
            is_assessed=True,
        )
        .exclude(route__in=PLANNED_ROUTES)
        .annotate(running=Coalesce(Subquery(held), 0))
        .filter(Q(parent__isnull=True) | in_plan)
    )


@Prepared
def _edges_between_roots(project_id: int) -> QuerySet[Any, Any]:
    rows = TaskDependency.objects.filter(task__project=project_id, task__parent__isnull=True)
    return rows.order_by("pk").values_list("task_id", "requires_id")


def master_list(project: Project) -> dict[str, dict[str, Any]]:
    """Give a project's master list. Shape: FORMATS ("Master task list"), in order of rank.

    A field that was never given is left out, so that what was imported comes back the same.
    """
    where = f"project_id = %s AND parent_id IS NULL AND kind = '{TaskKind.TASK}' ORDER BY rank, id"
    rows = fetch_columns(Task, MASTER_COLUMNS, where, [project.pk])
    # A whole row has 60 columns, and every command up to its limit keeps the whole list.
    roots = [
        new_row(Task, project=project, **dict(zip(MASTER_COLUMNS, row, strict=True)))
        for row in rows
    ]
    names = {root.pk: root.external_key or str(root) for root in roots}
    needed: dict[int, list[str]] = {}
    for task_id, requires_id in _edges_between_roots(project.pk):
        if task_id in names and requires_id in names:
            needed.setdefault(task_id, []).append(names[requires_id])
    return {names[root.pk]: _master_entry(root, needed.get(root.pk, [])) for root in roots}


def master_entries(project: Project, roots: Sequence[Task]) -> dict[str, dict[str, Any]]:
    """Give the master-list entries of some roots, without what they depend on."""
    for root in roots:
        root.project = project
    return {root.external_key or str(root): _master_entry(root, []) for root in roots}


def _master_entry(root: Task, depends_on: list[str]) -> dict[str, Any]:
    status = master_status(root)
    entry: dict[str, Any] = {"status": status}
    reason = _reason(root, status)
    optional = {
        "reason": reason,
        "title": root.title if root.title != root.external_key else "",
        "description": root.description if root.description != root.title else "",
        "depends_on": depends_on,
        "spec_id": root.spec_id,
    }
    entry |= {name: value for name, value in optional.items() if value}
    if root.rank != root.number:
        entry["rank"] = root.rank
    return entry


def _reason(root: Task, status: str) -> str:
    """Say why a root failed or was cancelled, without the word that the status says already."""
    if root.status == TaskStatus.CANCELLED:
        return root.status_detail or root.cancel_reason.removeprefix(IMPORTED_REASON)
    if root.status == TaskStatus.FAILED and root.status_detail:
        return root.status_detail
    if status in (FAILED_MASTER, MASTER_VIEW[TaskStatus.FATAL]):
        text = root.last_outcome
        prefix = next((one for one in OUTCOME_PREFIXES if text.startswith(one)), "")
        return text.removeprefix(prefix)
    return ""
