"""Load and lock rows for the services, in the one lock order: project, parent, task, assignment."""

from __future__ import annotations

from orchestration.errors import NotFound
from orchestration.models import Assignment, Project, Task
from orchestration.services.work import locked


def lock_project(project_id: int) -> Project:
    """Lock and return a project.

    Errors: NotFound.
    """
    project = locked(Project.objects.filter(pk=project_id)).first()
    if project is None:
        raise NotFound("There is no such project.")
    return project


def lock_task(task_id: int) -> Task:
    """Lock and return a task with its project loaded.

    Errors: NotFound.
    """
    task = locked(Task.objects.select_related("project").filter(pk=task_id)).first()
    if task is None:
        raise NotFound("There is no such task.")
    return task


def lock_assignment(assignment_id: int) -> Assignment:
    """Lock and return an assignment together with its task, task first.

    Errors: NotFound.
    """
    task_id = Assignment.objects.filter(pk=assignment_id).values_list("task_id", flat=True).first()
    if task_id is None:
        raise NotFound("There is no such assignment.")
    task = lock_task(task_id)
    assignment = locked(Assignment.objects.filter(pk=assignment_id)).get()
    assignment.task = task
    assignment.project = task.project
    return assignment


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
