"""Load and lock rows for the services, in the one lock order: project, parent, task, assignment."""

from __future__ import annotations

from typing import TypeVar

from django.db.models import Model

from orchestration.errors import NotFound, Stale
from orchestration.models import Assignment, Project, Task
from orchestration.models.locks import hold_versions, lock_versions
from orchestration.models.rows import fetch_rows

M = TypeVar("M", bound=Model)


def lock_project(project_id: int) -> Project:
    """Lock and return a project.

    Errors: NotFound.
    """
    return _one(Project, project_id, lock=True)


def hold_project(project_id: int) -> Project:
    """Return a project that nobody changes before this transaction ends; others may hold it too.

    For work that reads the project and never writes it: two holders who both went on to change it
    would wait for each other.
    Errors: NotFound.
    """
    return _one(Project, project_id, lock=True, shared=True)


def lock_task(task_id: int, *, project: Project | None = None) -> Task:
    """Lock and return a task with its project attached (the one given, where it is known).

    Errors: NotFound.
    """
    task = _one(Task, task_id, lock=True)
    task.project = project or _one(Project, task.project_id)
    return task


def lock_assignment(assignment_id: int) -> Assignment:
    """Lock and return an assignment together with its task, task first.

    Errors: NotFound.
    """
    task_id = Assignment.objects.filter(pk=assignment_id).values_list("task_id", flat=True).first()
    if task_id is None:
        raise NotFound("There is no such assignment.")
    task = lock_task(task_id)
    assignment = _one(Assignment, assignment_id, lock=True)
    assignment.task, assignment.project = task, task.project
    return assignment


def lock_for_result(assignment: Assignment) -> Assignment:
    """Lock root, parent, task and assignment, in this order: a finisher may close a phase.

    In a nested plan the root is locked too: whether its attempt ends decides what may start.
    All of them are attached to each other, with one copy of the project.
    Errors: NotFound.
    """
    known = assignment.task
    root = lock_task(known.root_id) if has_far_root(known) and known.root_id else None
    project = root.project if root is not None else None
    parent = lock_task(known.parent_id, project=project) if known.parent_id is not None else None
    task = lock_task(known.pk, project=parent.project if parent is not None else None)
    if parent is not None:
        task.parent = parent
        task.root = root or parent
        if root is not None:
            parent.root = root
    row = _one(Assignment, assignment.pk, lock=True)
    row.task, row.project = task, task.project
    return row


def has_far_root(task: Task) -> bool:
    """Whether a task's root is another row than its parent."""
    return task.root_id is not None and task.root_id != task.parent_id


def relock_for_result(held: Assignment) -> Assignment:
    """Lock what `lock_for_result` locks; use the copies in hand where nothing changed since.

    One statement instead of four: every change of a task or project shows in its version.
    Errors: NotFound.
    """
    task = held.task
    if has_far_root(task):
        return lock_for_result(held)
    parent = _parent_of(task)
    versions = lock_versions(held.pk, task.pk, task.parent_id)
    known = (
        held.status,
        held.token,
        task.version,
        task.project.version,
        parent.version if parent is not None else None,
    )
    return held if versions == known else lock_for_result(held)


def relock_for_claim(known: Task) -> Task:
    """Lock a root under its held project; use the copies in hand where nothing changed since.

    Errors: NotFound.
    """
    if hold_versions(known.pk) == (known.version, known.project.version):
        return known
    return lock_task(known.pk, project=hold_project(known.project_id))


def _parent_of(task: Task) -> Task | None:
    """Return the parent of a task as it is held, or read without a lock."""
    if task.parent_id is not None and not Task._meta.get_field("parent").is_cached(task):
        task.parent = _one(Task, task.parent_id)
        task.parent.project = task.project
        task.root = task.parent
    return task.parent


def _one(model: type[M], pk: int, *, lock: bool = False, shared: bool = False) -> M:
    rows = fetch_rows(model, "id = %s", [pk], lock=lock, shared=shared)
    if not rows:
        raise NotFound(f"There is no such {model._meta.verbose_name}.")
    return rows[0]


def lineage_root(task: Task) -> Task:
    """Return the root that failures and spending of a task are counted on."""
    if task.root_id is None:
        return task
    root = task.root
    if root is None:
        raise NotFound("The root of this task is gone.")
    root.project = task.project
    return root


def lock_lineage_root(task: Task) -> Task:
    """Lock and return the root of a task's lineage; the task itself when it is one."""
    if task.root_id is None:
        return task
    root = lock_task(task.root_id)
    task.root = root
    return root


def require_version(row: Project | Task, seen_version: int | None) -> None:
    """Raise unless a locked row is as the caller saw it; without a version nothing is asked.

    Errors: Stale naming the stored version.
    """
    if seen_version is not None and seen_version != row.version:
        raise Stale(f"seen version {seen_version}, stored {row.version}", version=row.version)
