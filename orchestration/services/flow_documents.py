"""Documents of a workflow: locked artifacts, their copies in the workspace, boxes that are ticked.

The artifact is the truth. The copy is written in the transaction that locks it, so that whoever
starts next finds it; a roll-back leaves a copy that the next writing replaces.
Source: DESIGN section 11 ("Workflows"), source document 004 sections 7.2 and 8.3.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Sequence
from pathlib import Path

from django.db.models import Max

from orchestration.errors import CountersignError, NotFound
from orchestration.models import (
    Artifact,
    ArtifactContent,
    Project,
    Task,
    WorkflowDocument,
    WorkflowRun,
)
from orchestration.models.rows import new_row
from orchestration.rules.box_lists import (
    BoxList,
    mark_items,
    parse_plan_md,
    parse_task_md,
    tick_item,
)
from orchestration.rules.flow_stages import BOXES, STRICT_PLAN, document_path, is_box_plan
from orchestration.runner.file_writes import FileContent, FileWrite, read_content, write_all
from orchestration.services.artifacts import record_locked
from orchestration.services.work import Work, locked

FILE_MODE = 0o644
ZIP_TIME = (1980, 1, 1, 0, 0, 0)
"""The time of every entry, so that the same documents give the same bytes."""


def run_of(task: Task) -> WorkflowRun | None:
    """Find the workflow that a task belongs to."""
    return WorkflowRun.objects.filter(task_id=task.lineage_root_id).first()


def read_document(run: WorkflowRun, name: str) -> str | None:
    """Read the standing version of a document of a run; None while there is none."""
    path = document_path(run.directory, name)
    found = run.documents.filter(path=path).values_list("artifact__content__data", flat=True)
    data = found.first()
    return bytes(data).decode("utf-8", "replace") if data is not None else None


def hold_document(task: Task, path: str) -> None:
    """Lock the standing version of a document before another is made: ticks are versions too."""
    run = run_of(task)
    if run is not None:
        locked(WorkflowDocument.objects.filter(run=run, path=path)).first()


def keep_documents(work: Work, task: Task, artifacts: Sequence[Artifact]) -> None:
    """Let newly locked artifacts stand for the documents of their run, and write them out.

    One that was handed in as a path stands in the workspace already.
    Locks: expects the task locked.
    """
    run = run_of(task)
    if run is None:
        return
    for artifact in artifacts:
        if not artifact.name.startswith(f"{run.directory}/"):
            continue
        marked = _keep_marks(work, run, artifact)
        _set_standing(work, run, marked or artifact)
        output = artifact.output
        if marked is not None:
            _write_out(work, task, marked.name, bytes(marked.content.data))
        elif output is not None and not output.path:
            _write_out(work, task, artifact.name, output.content.encode())


def _keep_marks(work: Work, run: WorkflowRun, artifact: Artifact) -> Artifact | None:
    """Lock a new list of boxes once more with the marks of the standing one, where they differ.

    Only the system ticks: who rewrites the list neither takes a tick away nor makes one.
    Locks: expects the standing document held, so that no box is ticked meanwhile.
    """
    if artifact.name != document_path(run.directory, BOXES.get(run.name, "")):
        return None
    work.flush()
    row = WorkflowDocument.objects.filter(run=run, path=artifact.name).first()
    if row is None:
        return None
    standing = _parsed(run, bytes(row.artifact.content.data).decode())
    done = {one.number for one in standing.items if one.is_done}
    text = bytes(artifact.content.data).decode()
    marked = mark_items(text, _parsed(run, text), done)
    return _next_version(work, artifact, marked.encode()) if marked != text else None


def _set_standing(work: Work, run: WorkflowRun, artifact: Artifact) -> None:
    work.flush()
    WorkflowDocument.objects.update_or_create(
        run=run, path=artifact.name, defaults={"artifact": artifact, "updated_at": work.now}
    )
    work.record(
        "document.locked",
        subject=f"artifact:{artifact.pk}",
        project_id=run.project_id,
        task_id=artifact.task_id,
        after={"change": run.change_id, "path": artifact.name, "version": artifact.version},
    )


def _write_out(work: Work, task: Task, path: str, data: bytes) -> None:
    """Write a document into the workspace; what cannot be written is recorded, not fatal."""
    if not task.project.workspace:
        return
    workspace = Path(task.project.workspace)
    try:
        old = read_content(workspace, path)
        mode, owner = (old.mode, old.owner) if old is not None else (FILE_MODE, None)
        write_all(workspace, [FileWrite(path, old, FileContent(data, mode, owner))])
    except (CountersignError, OSError) as error:
        work.record(
            "document.unwritten",
            subject=f"task:{task.pk}",
            project_id=task.project_id,
            task_id=task.pk,
            after={"path": path},
            why=str(error)[:500],
        )


def read_boxes(run: WorkflowRun) -> BoxList | None:
    """Parse the list of boxes of a run; None while it is not locked, or for one without boxes."""
    name = BOXES.get(run.name, "")
    text = read_document(run, name) if name else None
    return _parsed(run, text) if text is not None else None


def _parsed(run: WorkflowRun, text: str) -> BoxList:
    return parse_task_md(text) if run.name == STRICT_PLAN else parse_plan_md(text)


def tick_box(work: Work, task: Task, parent: Task | None) -> None:
    """Tick the box of a SubCoding task that is done: a new locked version, before others start.

    Locks: expects parent and task locked; the parent's lock puts the ticks of siblings in a row.
    """
    if parent is None or not is_box_plan(parent.role, parent.step_key):
        return
    run = run_of(task)
    if run is None:
        return
    path = document_path(run.directory, BOXES[run.name])
    row = locked(WorkflowDocument.objects.filter(run=run, path=path)).first()
    if row is None:
        return
    text = bytes(row.artifact.content.data).decode()
    boxes = {one.number: one for one in _parsed(run, text).items}
    box = boxes.get(task.step_key)
    if box is None or box.is_done:
        return
    data = tick_item(text, box).encode()
    row.artifact = _next_version(work, row.artifact, data)
    row.updated_at = work.now
    work.flush()
    row.save(update_fields=["artifact", "updated_at"])
    work.record(
        "document.ticked",
        subject=f"artifact:{row.artifact_id}",
        project_id=task.project_id,
        task_id=task.pk,
        after={"path": path, "box": box.number, "version": row.artifact.version},
    )
    _write_out(work, task, path, data)


def _next_version(work: Work, standing: Artifact, data: bytes) -> Artifact:
    """Lock the next version of an artifact with other bytes."""
    digest = hashlib.sha256(data).hexdigest()
    content = new_row(ArtifactContent, sha256=digest, size_bytes=len(data), data=data)
    versions = Artifact.objects.filter(task_id=standing.task_id, name=standing.name)
    newest = versions.aggregate(newest=Max("version"))["newest"]
    row = new_row(
        Artifact,
        project_id=standing.project_id,
        task_id=standing.task_id,
        output_id=standing.output_id,
        name=standing.name,
        type=standing.type,
        version=newest + 1,
        content_id=digest,
        size_bytes=len(data),
        locked_at=work.now,
    )
    work.insert([content])
    work.insert([row])
    record_locked(work, row)
    row.content = content
    return row


def zip_documents(task: Task) -> tuple[str, bytes]:
    """Pack the standing documents of a task's workflow. Shape: file name, bytes of the zip.

    Errors: NotFound where the task belongs to no workflow, or nothing is locked yet.
    """
    run = run_of(task)
    rows = list(run.documents.select_related("artifact__content")) if run is not None else []
    if run is None or not rows:
        raise NotFound("This task has no documents.")
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for row in rows:
            entry = zipfile.ZipInfo(row.path, ZIP_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = FILE_MODE << 16
            archive.writestr(entry, bytes(row.artifact.content.data))
    return f"{run.change_id}.zip", held.getvalue()


def runs_of(project: Project) -> list[WorkflowRun]:
    """List the workflow runs of a project, newest first."""
    rows = WorkflowRun.objects.filter(project=project).select_related("task__project")
    return list(rows.prefetch_related("documents__artifact").order_by("-pk")[:200])
