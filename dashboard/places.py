"""Where a thing stands, in words and addresses: keys of tasks, paths of steps, pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import urlencode

from django.urls import get_script_prefix, reverse

from orchestration.models import Decision, Project, Task


def address(name: str, *arguments: object, **query: object) -> str:
    """The address of a dashboard page, with the query parameters that are not empty."""
    texts = [str(one) for one in arguments]
    kinds = tuple(map(_kind, texts))
    if all(kinds):
        url = _pattern(get_script_prefix(), name, kinds).format(*texts)
    else:
        url = reverse(f"dashboard:{name}", args=texts)
    return with_query(url, query)


STANDS_FOR = {"number": "97000{}079", "word": "zq-{}-qz"}
"""What is resolved for a number or a word, and then replaced by it."""
WORD = re.compile(r"[A-Za-z0-9_-]{1,50}")


def _kind(text: str) -> str:
    """What the routes know an argument as; empty for what only they can judge."""
    if text.isascii() and text.isdigit():
        return "number" if len(text) < 19 else ""
    return "word" if WORD.fullmatch(text) else ""


@cache
def _pattern(_prefix: str, name: str, kinds: tuple[str, ...]) -> str:
    """Resolve an address once for all arguments of a kind: a list names hundreds of them."""
    marks = [STANDS_FOR[kind].format(number) for number, kind in enumerate(kinds)]
    url = reverse(f"dashboard:{name}", args=marks)  # never with braces: they are quoted
    for number, mark in enumerate(marks):
        url = url.replace(mark, f"{{{number}}}")
    return url


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
