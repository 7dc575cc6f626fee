"""The rebuilt present beside the real one: what the audit trail says must be what the rows say."""

from __future__ import annotations

from typing import Any

from django.db.models import Q

from orchestration.models import Assignment, Decision, Project, Task, TaskDependency
from orchestration.selectors.activity import newest_position
from orchestration.selectors.board import read_running, read_traffic
from orchestration.selectors.master import MASTER_PAGE, list_master
from orchestration.selectors.replay import past_roots, past_running, past_traffic, read_past
from orchestration.services.audit import seal_events

TASK_FIELDS = (
    "pk", "number", "parent_id", "kind", "title", "step_key", "phase", "rank", "status",
    "cancel_reason", "is_superseded",
)  # fmt: skip


def assert_rebuilt_is_present(project: Project) -> None:
    """Rebuild the board from the sealed trail and compare all of it with the rows."""
    while seal_events():
        pass
    board = read_past(project.pk, newest_position())
    project.refresh_from_db()
    assert board.project_status == project.status
    rows = Task.objects.filter(project=project)
    real = {row["pk"]: row for row in rows.values(*TASK_FIELDS)}
    assert {one.id: _fields(one, real[one.id]) for one in board.tasks.values()} == real
    assert _past_needs(board) == _real_needs(project)
    assert {
        pk: (one.task_id, one.seat, one.backend, one.status) for pk, one in board.work.items()
    } == {
        row.pk: (row.task_id, row.seat, row.backend, row.status)
        for row in Assignment.objects.filter(project=project)
    }
    opened = {pk: one.kind for pk, one in board.decisions.items() if one.closed_at is None}
    asked = Decision.objects.filter(project=project, status="open")
    assert opened == dict(asked.values_list("pk", "kind"))
    assert past_traffic(board) == read_traffic(project.pk)
    assert past_running(board) == read_running(project.pk)
    assert [_row(one) for one in past_roots(board, project)[:MASTER_PAGE]] == [
        _row(one) for one in list_master(project)[0]
    ]


def _fields(past: Any, row: dict[str, Any]) -> dict[str, Any]:
    """The rebuilt fields of a task; a step's rank is not on the board."""
    names = {"pk": "id"}
    found = {name: getattr(past, names.get(name, name)) for name in TASK_FIELDS}
    return found if row["parent_id"] is None else found | {"rank": row["rank"]}


def _past_needs(board: Any) -> dict[int, set[str]]:
    steps = [one for one in board.tasks.values() if one.parent_id and not one.is_superseded]
    return {one.id: set(one.needs) for one in steps if one.needs}


def _real_needs(project: Project) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {}
    edges = TaskDependency.objects.filter(
        Q(task__project=project, task__parent__isnull=False, task__is_superseded=False)
    )
    for pk, key in edges.values_list("task_id", "requires__step_key"):
        found.setdefault(pk, set()).add(key)
    return found


def _row(one: Any) -> tuple[Any, ...]:
    return (
        one.task.pk, one.task.status, one.stage, one.steps_done, one.steps_total, one.waiting,
        one.needs_agent,
    )  # fmt: skip
