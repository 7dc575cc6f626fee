"""What the tasks before a task left behind, in four queries for one of them or fifty.

Source: DESIGN section 12 (L2d).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from django.db.models import F

from orchestration.models import Artifact, Comment, Output, Task
from orchestration.rules.prompt_facts import Predecessor, Said
from orchestration.states import CommentType

SHOWN_SUMMARIES = 5
SHOWN_ARTIFACTS = 20
SUMMARY_CHARACTERS = 4_000


def read_predecessors(task: Task) -> list[Predecessor]:
    """Read the tasks that a task waits for, oldest first, with summaries, hand-off, artifacts."""
    found = list(
        Task.objects.filter(dependents__task=task)
        .only("number", "title", "status", "project_id", "step_key")
        .order_by("pk")
    )
    if not found:
        return []
    ids = [row.pk for row in found]
    summaries, handoffs, artifacts = _summaries(ids), _handoffs(ids), _artifacts(ids)
    prefix = task.project.key_prefix
    return [
        Predecessor(
            key=f"{prefix}-{row.number}",
            title=row.title,
            status=row.status,
            summaries=summaries[row.pk][-SHOWN_SUMMARIES:],
            handoff=handoffs.get(row.pk),
            artifacts=artifacts[row.pk][-SHOWN_ARTIFACTS:],
        )
        for row in found
    ]


def _summaries(ids: Sequence[int]) -> dict[int, list[Said]]:
    """The newest version of each output of the attempt that counts."""
    rows = (
        Output.objects.filter(task__in=ids, is_orphan=False, attempt=F("task__attempt"))
        .order_by("pk")
        .values_list(
            "task_id", "title", "path", "summary", "assignment__agent__name", "assignment__backend"
        )
    )
    newest: dict[int, dict[str, Said]] = defaultdict(dict)
    for task_id, title, path, summary, agent, backend in rows:
        by = f"agent:{agent}" if agent else backend or "system"
        text = (summary or title)[:SUMMARY_CHARACTERS]
        newest[task_id][path or title] = Said(text, by, note=path or title)
    return defaultdict(list, {pk: list(said.values()) for pk, said in newest.items()})


def _handoffs(ids: Sequence[int]) -> dict[int, Said]:
    rows = (
        Comment.objects.filter(task__in=ids, comment_type=CommentType.HANDOFF.value)
        .order_by("pk")
        .values_list("task_id", "body", "author", "agent_id")
    )
    return {
        task_id: Said(body, comment_author(author, agent_id))
        for task_id, body, author, agent_id in rows
    }


def comment_author(author: str, agent_id: int | None) -> str:
    """Say whose words a comment is, so that no agent passes for a person by its name."""
    return f"agent:{author}" if agent_id is not None else author


def _artifacts(ids: Sequence[int]) -> dict[int, list[tuple[str, str]]]:
    rows = Artifact.objects.filter(task__in=ids).order_by("pk")
    newest: dict[int, dict[str, tuple[str, str]]] = defaultdict(dict)
    for pk, task_id, name, version in rows.values_list("pk", "task_id", "name", "version"):
        newest[task_id][name] = (f"{name} v{version}", f"/api/artifacts/{pk}/content")
    return defaultdict(list, {pk: list(names.values()) for pk, names in newest.items()})
