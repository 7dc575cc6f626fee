"""Where a thing stands, in words and addresses: keys of tasks, paths of steps, pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from orchestration.models import Decision, Project, Task


def address(name: str, *arguments: object, **query: object) -> str:
    """The address of a dashboard page, with the query parameters that are not empty."""
    url = reverse(f"dashboard:{name}", args=[str(one) for one in arguments])
    return with_query(url, query)


def with_query(url: str, query: Mapping[str, object]) -> str:
    """Add the query parameters that are not empty."""
    given = {name: str(value) for name, value in query.items() if value not in (None, "", False)}
    return f"{url}?{urlencode(given)}" if given else url


def task_key(task: Task, project: Project) -> str:
    """The readable key of a root, and of a step the key of its root."""
    root = task.root if task.root_id and task.root is not None else task
    return f"{project.key_prefix}-{root.number}"


def step_path(task: Task) -> str:
    """The step keys from below the root down to a task; empty for a root."""
    keys: list[str] = []
    one: Task | None = task
    while one is not None and one.parent_id is not None:
        keys.append(one.step_key or f"#{one.number}")
        one = one.parent
    return " / ".join(reversed(keys))


def task_place(task: Task, project: Project) -> str:
    """Root key and step: `PAY-12 / 2b`."""
    path = step_path(task)
    return f"{task_key(task, project)} / {path}" if path else task_key(task, project)


def board_url(project: Project, **query: Any) -> str:
    """The address of a project's board."""
    return address("board", project.slug, **query)


def task_url(task: Task, project: Project) -> str:
    """The address of a task's page."""
    return address("task", project.slug, task.pk)


def decision_url(decision: Decision) -> str:
    """The address of a decision's page."""
    return address("decision", decision.pk)


def decision_place(decision: Decision) -> str:
    """Where a decision stands: its task and step, else its project."""
    if decision.task is None:
        return decision.project.name
    return task_place(decision.task, decision.project)
