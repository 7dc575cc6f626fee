"""Locked artifacts: content-addressed, versioned, immutable; reads are recorded.

Source: DESIGN section 8 ("Locked artifacts").
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Max, QuerySet

from orchestration.models import (
    Artifact,
    ArtifactContent,
    Output,
    Task,
)
from orchestration.models.prepared import Prepared
from orchestration.models.rows import new_row
from orchestration.services.work import Work
from orchestration.states import OutputType


def lock_artifacts(
    work: Work,
    task: Task,
    outputs: Sequence[Output],
    files: Mapping[str, bytes],
    *,
    exception_note: str = "",
    name: str = "",
    has_versions: bool = False,
) -> list[Artifact]:
    """Lock the newest outputs of a finished step: one artifact version each.

    `files` holds the bytes of outputs that are paths, as they were when they were verified.
    An output whose digest equals the standing version's makes no new one. `name` names them all
    (there is one); `has_versions` says that the task has locked before.
    """
    knows = has_versions or task.attempt > 1 or task.fix_round
    standing = _standing_versions(task) if knows else {}
    contents: dict[str, ArtifactContent] = {}
    rows: list[Artifact] = []
    for output in outputs:
        called = name or output.path or output.title
        data = files.get(output.path) if output.path else output.content.encode()
        digest = hashlib.sha256(data or b"").hexdigest()
        version, known = standing.get(called, (0, ""))
        if data is None or (known == digest and not exception_note):
            continue
        contents[digest] = new_row(ArtifactContent, sha256=digest, size_bytes=len(data), data=data)
        rows.append(_version(work, task, output, called, version + 1, contents[digest]))
        rows[-1].exception_note = exception_note
        standing[called] = (version + 1, digest)
    if rows:
        work.insert(list(contents.values()))
        work.insert(rows)
    for row in rows:
        record_locked(work, row)
    return rows


def lock_document(work: Work, task: Task, name: str, data: bytes) -> Artifact:
    """Lock a document that we wrote ourselves as the next version of its name."""
    digest = hashlib.sha256(data).hexdigest()
    content = new_row(ArtifactContent, sha256=digest, size_bytes=len(data), data=data)
    newest = dict(_newest_versions(task.pk)).get(name, 0)
    row = new_row(
        Artifact,
        project_id=task.project_id,
        task=task,
        name=name,
        type=OutputType.DOCUMENT.value,
        version=newest + 1,
        content_id=digest,
        size_bytes=len(data),
        locked_at=work.now,
    )
    work.insert([content])
    work.insert([row])
    record_locked(work, row)
    return row


@Prepared
def _newest_versions(task_id: int) -> QuerySet[Any, Any]:
    rows = Artifact.objects.filter(task=task_id).order_by()
    return rows.values_list("name").annotate(Max("version"))


def record_locked(work: Work, row: Artifact) -> None:
    """Record that a version was locked."""
    work.record(
        "artifact.locked",
        subject=f"artifact:{row.pk}",
        project_id=row.project_id,
        task_id=row.task_id,
        after={"name": row.name, "version": row.version, "sha256": row.content_id},
        why=row.exception_note,
    )


def _version(
    work: Work, task: Task, output: Output, name: str, number: int, content: ArtifactContent
) -> Artifact:
    return new_row(
        Artifact,
        project_id=task.project_id,
        task=task,
        output=output,
        name=name,
        type=output.type,
        version=number,
        content_id=content.sha256,
        size_bytes=content.size_bytes,
        locked_at=work.now,
    )


def _standing_versions(task: Task) -> dict[str, tuple[int, str]]:
    """Newest version and digest of each artifact name of a task."""
    newest = task.artifacts.values("name").annotate(newest=Max("version"))
    versions = {row["name"]: row["newest"] for row in newest}
    rows = task.artifacts.filter(name__in=versions).values_list("name", "version", "content_id")
    return {name: (version, sha) for name, version, sha in rows if versions[name] == version}
