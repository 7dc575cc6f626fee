"""What the tasks before a task left behind, in four queries for one of them or fifty.

Source: DESIGN section 12 (L2d).
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from django.db.models import F, QuerySet

from orchestration.models import Artifact, Comment, Output, Task
from orchestration.models.prepared import Prepared
from orchestration.rules.prompt_facts import Predecessor, Said
from orchestration.states import CommentType

SHOWN_SUMMARIES = 5
SHOWN_ARTIFACTS = 20
SUMMARY_CHARACTERS = 4_000


def read_predecessors(task: Task) -> list[Predecessor]:
    """Read the tasks that a task waits for, oldest first, with summaries, hand-off, artifacts."""
    found = _required(task.pk)
    if not found:
        return []
    summaries, handoffs, artifacts = _summaries(task.pk), _handoffs(task.pk), _artifacts(task.pk)
    prefix = task.project.key_prefix
    return [
        Predecessor(
            key=f"{prefix}-{number}",
            title=title,
            status=status,
            summaries=summaries[pk][-SHOWN_SUMMARIES:],
            handoff=handoffs.get(pk),
            artifacts=artifacts[pk][-SHOWN_ARTIFACTS:],
        )
        for pk, number, title, status in found
    ]


@Prepared
def _required(task_id: int) -> QuerySet[Any, Any]:
    rows = Task.objects.filter(dependents__task=task_id).order_by("pk")
    return rows.values_list("pk", "number", "title", "status")


def _summaries(task_id: int) -> dict[int, list[Said]]:
    """The newest version of each output of the attempt that counts."""
    newest: dict[int, dict[str, Said]] = defaultdict(dict)
    for pk, title, path, summary, agent, backend in _outputs_before(task_id):
        by = f"agent:{agent}" if agent else backend or "system"
        text = (summary or title)[:SUMMARY_CHARACTERS]
        newest[pk][path or title] = Said(text, by, note=path or title)
    return defaultdict(list, {pk: list(said.values()) for pk, said in newest.items()})


@Prepared
def _outputs_before(task_id: int) -> QuerySet[Any, Any]:
    rows = Output.objects.filter(
        task__dependents__task=task_id, is_orphan=False, attempt=F("task__attempt")
    ).order_by("pk")
    return rows.values_list(
        "task_id", "title", "path", "summary", "assignment__agent__name", "assignment__backend"
    )


def _handoffs(task_id: int) -> dict[int, Said]:
    return {
        pk: Said(body, comment_author(author, agent_id))
        for pk, body, author, agent_id in _handoffs_before(task_id)
    }


@Prepared
def _handoffs_before(task_id: int) -> QuerySet[Any, Any]:
    rows = Comment.objects.filter(
        task__dependents__task=task_id, comment_type=CommentType.HANDOFF.value
    ).order_by("pk")
    return rows.values_list("task_id", "body", "author", "agent_id")


def comment_author(author: str, agent_id: int | None) -> str:
    """Say whose words a comment is, so that no agent passes for a person by its name."""
    return f"agent:{author}" if agent_id is not None else author


def _artifacts(task_id: int) -> dict[int, list[tuple[str, str]]]:
    newest: dict[int, dict[str, tuple[str, str]]] = defaultdict(dict)
    for pk, made_by, name, version in _artifacts_before(task_id):
        newest[made_by][name] = (f"{name} v{version}", f"/api/artifacts/{pk}/content")
    return defaultdict(list, {pk: list(names.values()) for pk, names in newest.items()})


@Prepared
def _artifacts_before(task_id: int) -> QuerySet[Any, Any]:
    rows = Artifact.objects.filter(task__dependents__task=task_id).order_by("pk")
    return rows.values_list("pk", "task_id", "name", "version")
