"""Other tasks on a task's page: what was split off from it, and who reads what it locked.

Source: UI.md section 5.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.http import DashboardRequest
from dashboard.places import task_key, task_url
from dashboard.presenters import task_label
from dashboard.vocabulary import Label
from orchestration.models import Project, Task
from orchestration.selectors.task_page import ArtifactItem, find_archive, list_artifacts


@dataclass(frozen=True, slots=True)
class TaskLine:
    """One task that is named on the page of another: split off from it, or reading its artifact."""

    key: str
    title: str
    url: str
    label: Label
    by: str


def reader_lines(item: ArtifactItem, project: Project) -> list[TaskLine]:
    """The steps that read an artifact, as many as were read."""
    return [
        _task_line(one, f"{task_key(one, project)} {one.step_key}", project) for one in item.read_by
    ]


def child_lines(children: Sequence[Task], project: Project) -> list[TaskLine]:
    """What was split off, with who does it."""
    return [_task_line(one, one.step_key or f"#{one.number}", project) for one in children]


def _task_line(one: Task, key: str, project: Project) -> TaskLine:
    return TaskLine(
        key=key.strip(),
        title=one.title,
        url=task_url(one, project),
        label=task_label(one.status, one.cancel_reason),
        by=one.assignee.name if one.assignee is not None else "",
    )


def artifacts_part(request: DashboardRequest, project: Project, found: Task) -> dict[str, Any]:
    """What a task and its steps locked, each with its readers, and the archive."""
    items = list_artifacts(found)
    return {
        "artifacts": [(one, reader_lines(one, project)) for one in items],
        "archive": find_archive(found),
    }
