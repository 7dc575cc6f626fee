"""Blocked tasks: what they wait for, and Sir's word where nothing will clear them.

Source: DESIGN section 4 (rule 16).
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestration.access import row_id
from orchestration.errors import Invalid
from orchestration.models import Assignment, Task
from orchestration.services.blockers import ask_to_clear
from orchestration.services.blueprints import is_satisfied
from orchestration.services.loop import settle_ending
from orchestration.services.moves import move_assignment, move_task
from orchestration.services.readiness import ready_again
from orchestration.services.upgrade import upgrade_if_due
from orchestration.services.work import Work, locked
from orchestration.states import AssignmentStatus, TaskStatus

DEAD = frozenset({TaskStatus.FAILED, TaskStatus.CANCELLED, TaskStatus.FATAL})
"""A blocker in one of these will not clear by itself, unless it was skipped."""


def block_task(
    work: Work, task: Task, held: Assignment, *, detail: str, blocked_by: Sequence[str]
) -> None:
    """Block a task behind others of its project; it ends the assignment (rule 16).

    Errors: Invalid for an unknown blocker or a cycle of blockers.
    Locks: the blockers, after the task and in id order: one that finishes at this moment either
    sees the task behind it, or is seen as done.
    """
    blockers = _lock_blockers(task, blocked_by)
    move_assignment(work, held, AssignmentStatus.CANCELLED, why="blocked")
    task.unexpected_blockers += 1
    work.touch(task, "unexpected_blockers")
    move_task(work, task, TaskStatus.BLOCKED, detail=detail)
    task.blocked_by.set(blockers)
    work.flush()
    if upgrade_if_due(work, task):
        return
    dead = [row for row in blockers if row.status in DEAD and not is_satisfied(row)]
    if blockers and all(is_satisfied(row) for row in blockers):
        move_task(work, task, TaskStatus.PENDING, why="its blockers are done already")
        work.flush()
        ready_again(work, task)
    elif not blockers or dead:
        ask_to_clear(work, task, detail)
    settle_ending(work, task)


def _lock_blockers(task: Task, names: Sequence[str]) -> list[Task]:
    ids = sorted({_blocker(task, name).pk for name in names})
    rows = locked(Task.objects.select_related("project").filter(pk__in=ids)).order_by("pk")
    return list(rows)


def _blocker(task: Task, name: str) -> Task:
    rows = Task.objects.select_related("project").filter(project_id=task.project_id)
    prefix, dash, rest = name.rpartition("-")
    found_id = row_id(name)
    number = row_id(rest) if not dash or prefix == task.project.key_prefix else None
    found = rows.filter(pk=found_id).first() if found_id is not None else None
    if found is None and number is not None:
        found = rows.filter(number=number).first()
    if found is None:
        message = f"{name!r} is no task of this project"
        raise Invalid(message, errors=[{"path": "blocked_by", "message": message}])
    if found.pk == task.pk or _waits_for(found, task.pk):
        raise Invalid(
            f"a cycle of blockers: {task} and {found} wait for each other",
            errors=[{"path": "blocked_by", "message": "makes a cycle"}],
        )
    return found


def _waits_for(task: Task, wanted: int) -> bool:
    """Whether a task is blocked, however far, by another."""
    seen, level = {task.pk}, [task.pk]
    while level:
        rows = Task.objects.filter(blocks__in=level, status__isnull=False)
        level = [pk for pk in rows.values_list("pk", flat=True).distinct() if pk not in seen]
        if wanted in level:
            return True
        seen.update(level)
    return False
