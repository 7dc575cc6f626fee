"""What waits behind a task: its dependents, the phases its own phase holds up, and so on upwards.

Loaded for all asked trees at once, so that an inbox of any length costs the same two queries.
Source: DESIGN section 9 (cards, order), UI.md sections 5.1 and 5.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from django.db.models import Q, QuerySet

from orchestration.models import Artifact, Task, TaskDependency
from orchestration.states import TaskKind, TaskStatus

CLOSED = (TaskStatus.DONE.value, TaskStatus.CANCELLED.value)


@dataclass(frozen=True, slots=True)
class OpenStep:
    """One unfinished task of a tree."""

    id: int
    parent_id: int | None
    phase: int
    step_key: str
    title: str
    status: str


@dataclass(slots=True)
class WaitingWork:
    """The unfinished tasks of some trees and the dependencies between them."""

    steps: dict[int, OpenStep] = field(default_factory=dict)
    children: dict[int | None, list[OpenStep]] = field(default_factory=dict)
    dependents: dict[int, list[int]] = field(default_factory=dict)

    def behind(self, task_id: int) -> list[OpenStep]:
        """List the pending tasks that cannot start before a task ends, in plan order."""
        found: set[int] = set()
        current = self.steps.get(task_id)
        while current is not None:
            if current.parent_id is not None:
                siblings = self.children.get(current.parent_id, [])
                found.update(one.id for one in siblings if one.phase > current.phase)
            found.update(self._after(current.id))
            current = self.steps.get(current.parent_id) if current.parent_id else None
        pending = (self.steps[pk] for pk in found if pk in self.steps and pk != task_id)
        waiting = [one for one in pending if one.status == TaskStatus.PENDING]
        return sorted(waiting, key=lambda one: (one.phase, one.id))

    def children_named(self, parent_id: int, keys: Iterable[str]) -> list[OpenStep]:
        """List the unfinished steps of a planned task by their step keys."""
        wanted = set(keys)
        return [one for one in self.children.get(parent_id, []) if one.step_key in wanted]

    def edges_among(self, task_ids: Iterable[int]) -> list[tuple[int, int]]:
        """List the dependencies between some tasks, as (needed, dependent)."""
        wanted = set(task_ids)
        return [
            (needed, later)
            for needed in wanted
            for later in self.dependents.get(needed, [])
            if later in wanted
        ]

    def _after(self, task_id: int) -> set[int]:
        seen: set[int] = set()
        frontier = {task_id}
        while frontier:
            later = {one for pk in frontier for one in self.dependents.get(pk, ())}
            frontier = later - seen
            seen |= frontier
        return seen


def load_waiting_work(root_ids: Sequence[int], project_ids: Sequence[int]) -> WaitingWork:
    """Load the unfinished tasks of some trees, and the unfinished roots that wait for other roots.

    Of the other roots of a project nothing waits for anything: a long list of them stays unread.
    """
    work = WaitingWork()
    if not root_ids and not project_ids:
        return work
    # Lists of ids, never a subquery: beside it PostgreSQL would read every task there is.
    tops = [*root_ids, *_waiting_roots(project_ids)]
    tasks = Task.objects.filter(Q(pk__one_of=tops) | Q(root__one_of=root_ids), is_superseded=False)
    rows = tasks.exclude(status__in=CLOSED).values_list(
        "pk", "parent_id", "phase", "step_key", "title", "status"
    )
    for row in rows:
        step = OpenStep(*row)
        work.steps[step.id] = step
        work.children.setdefault(step.parent_id, []).append(step)
    pending = tasks.filter(status=TaskStatus.PENDING.value).order_by().values("pk")
    edges = TaskDependency.objects.filter(task__in=pending)
    for needed, later in edges.values_list("requires_id", "task_id"):
        work.dependents.setdefault(needed, []).append(later)
    return work


def count_needing(task_id: int) -> int:
    """Count the pending tasks that need a task, by whatever way. Shape: a query a level."""
    seen: set[int] = set()
    level = {task_id}
    while level:
        rows = TaskDependency.objects.filter(
            requires__in=level, task__status=TaskStatus.PENDING.value, task__is_superseded=False
        )
        level = set(rows.values_list("task_id", flat=True)) - seen
        seen |= level
    return len(seen)


def _waiting_roots(project_ids: Sequence[int]) -> QuerySet[Task, int]:
    """The pending roots of some projects that wait for another root."""
    rows = Task.objects.filter(
        project_id__in=project_ids, parent__isnull=True, status=TaskStatus.PENDING.value,
        kind=TaskKind.TASK.value, remaining_dependencies__gt=0,
    )  # fmt: skip
    return rows.order_by().values_list("pk", flat=True)


def locked_readers(task_id: int) -> list[Task]:
    """List the finished steps that read what a task locked: a change means to verify them again."""
    rows = Artifact.objects.filter(task_id=task_id, reads__task__status=TaskStatus.DONE.value)
    ids = rows.values_list("reads__task_id", flat=True)
    return list(Task.objects.filter(pk__in=ids).order_by("phase", "pk"))
