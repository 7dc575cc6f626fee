"""Reads about the fixes of locked artifacts: who waits for one, and which are still made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import Q, QuerySet

from orchestration.models import Defect, Task
from orchestration.models.prepared import Prepared
from orchestration.states import DEFECT_UNFINISHED, TaskStatus

_UNFINISHED = [state.value for state in DEFECT_UNFINISHED]
_ENDED = [state.value for state in (TaskStatus.DONE, TaskStatus.CANCELLED, TaskStatus.FATAL)]


def unfinished_locked() -> QuerySet[Defect]:
    """List the defects of standing locked artifacts that wait for Sir or for their fix."""
    return Defect.objects.filter(
        artifact__isnull=False, status__in=_UNFINISHED, task__is_superseded=False
    )


def waits_for_fix(root: Task) -> bool:
    """Whether what a root locked has a defect that is not ended yet. Costs one query."""
    return bool(_any_unfinished(root.pk))


@Prepared
def _any_unfinished(root_id: int) -> QuerySet[Any, Any]:
    below = Q(task__root=root_id, task__status=TaskStatus.DONE.value)
    return unfinished_locked().filter(Q(task=root_id) | below).values_list("pk")[:1]


def open_fixes(task_ids: Sequence[int]) -> list[int]:
    """List the tasks that fix what some tasks locked; a fatal one waits for Sir's own word."""
    rows = Task.objects.filter(
        fixes__task__in=task_ids, fixes__artifact__isnull=False, fixes__status__in=_UNFINISHED
    )
    return list(rows.exclude(status__in=_ENDED).values_list("pk", flat=True))
