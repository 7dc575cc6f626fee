"""Store what is handed in: outputs read and hashed by us, comments, hand-offs, tool calls.

Source: DESIGN section 8 ("Outputs") and 12 ("Hand-off").
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestration.contracts.results import CommentInput, OutputInput, ToolCallInput
from orchestration.errors import WorkspaceError
from orchestration.models import Agent, Assignment, Comment, Output, Task, ToolCall
from orchestration.models.rows import fetch_rows, new_row
from orchestration.rules.handoff import check_handoff
from orchestration.runner.workspace import read_inside
from orchestration.seats.base import MAX_ARTIFACT_BYTES
from orchestration.services.mail import mail_mentions
from orchestration.services.moves import hint_task
from orchestration.services.work import Work
from orchestration.states import CommentType

SECTION = "#"
"""Between the path of a document and the section of it that an output is."""
MAX_OUTPUT_BYTES = MAX_ARTIFACT_BYTES
"""The largest output that is a path or an upload."""


def read_output(task: Task, document: OutputInput) -> tuple[bytes, str]:
    """Return the bytes of an output and their digest; a path is read inside the workspace.

    Errors: WorkspaceError when the project has no workspace or the path leaves it; TooLarge.
    """
    if document.path is None:
        data = (document.content or "").encode()
    else:
        if not task.project.workspace:
            raise WorkspaceError("this project has no workspace, so an output cannot be a path")
        data = read_inside(Path(task.project.workspace), document.path, MAX_OUTPUT_BYTES)
    return data, hashlib.sha256(data).hexdigest()


def add_output(
    work: Work,
    task: Task,
    document: OutputInput,
    *,
    assignment: Assignment | None,
    data: bytes,
    change_note: str = "",
    is_orphan: bool = False,
    is_recorded: bool = True,
    marks: Sequence[Mapping[str, Any]] = (),
) -> Output:
    """Store one output; the same path or title again makes the next version.

    Without `is_recorded` the caller's own event names it, as a hand-in does.

    Locks: expects the task's row locked.
    """
    name = {"path": document.path} if document.path else {"title": document.title}
    version = 1
    if task.attempt > 1 or task.fix_round or task.status != "working":
        version += task.outputs.filter(**name).count()
    output = new_row(
        Output,
        task=task,
        assignment=assignment,
        attempt=task.attempt,
        version=version,
        type=document.type.value,
        title=document.title,
        summary=document.summary,
        content=document.content or "",
        path=document.path or "",
        sha256=hashlib.sha256(data).hexdigest(),
        size_bytes=len(data),
        assertions=[one.to_document() for one in document.assertions],
        marks=[dict(one) for one in marks],
        change_note=change_note,
        is_orphan=is_orphan,
        created_at=work.now,
    )
    work.insert([output])
    if not is_recorded:
        return output
    work.record(
        "output.added",
        subject=f"output:{output.pk}",
        project_id=task.project_id,
        task_id=task.pk,
        after={"title": output.title, "version": version, "sha256": output.sha256},
        why=change_note,
    )
    hint_task(work, task)
    return output


def newest_outputs(task: Task) -> list[Output]:
    """The newest version of each output of a task's present attempt, oldest name first."""
    newest: dict[str, Output] = {}
    where = "task_id = %s AND attempt = %s AND NOT is_orphan ORDER BY id"
    for output in fetch_rows(Output, where, [task.pk, task.attempt]):
        newest[output.path or output.title] = output
    if task.role:
        _drop_sections(newest)
    return list(newest.values())


def _drop_sections(newest: dict[str, Output]) -> None:
    """Leave out sections of a document that stands there whole: they are in it."""
    for name in [one for one in newest if SECTION in one]:
        document = name.partition(SECTION)[0]
        if any(one == document or one.endswith(f"/{document}") for one in newest):
            del newest[name]


def sections_of(task: Task, name: str, path: str) -> list[Output]:
    """The newest version of each section of a document, in the order they first came."""
    newest: dict[str, Output] = {}
    where = "task_id = %s AND attempt = %s AND NOT is_orphan ORDER BY id"
    for output in fetch_rows(Output, where, [task.pk, task.attempt]):
        if output.title.startswith((f"{name}{SECTION}", f"{path}{SECTION}")):
            newest[output.title.removeprefix(path.removesuffix(name))] = output
    return list(newest.values())


def add_comment(
    work: Work,
    task: Task,
    document: CommentInput,
    *,
    author: str,
    agent: Agent | None = None,
    assignment: Assignment | None = None,
    is_recorded: bool = True,
    mentions: bool = True,
) -> Comment:
    """Store one comment; a hand-off is checked first. Whoever it mentions gets it by mail.

    Without `is_recorded` the caller's own event tells of it, as a hand-in does.

    Errors: Invalid for a hand-off that is too long (with its length) or not schema-valid.
    """
    if document.comment_type is CommentType.HANDOFF:
        check_handoff(document.body)
    comment = new_row(
        Comment,
        task=task,
        comment_type=document.comment_type.value,
        body=document.body,
        author=author,
        agent=agent,
        attempt=task.attempt,
        assignment=assignment,
        created_at=work.now,
    )
    work.insert([comment])
    if mentions and "@" in comment.body:
        mail_mentions(work, task, comment)
    if not is_recorded:
        return comment
    work.record(
        f"comment.{document.comment_type}",
        subject=f"comment:{comment.pk}",
        project_id=task.project_id,
        task_id=task.pk,
        after={"author": author, "characters": len(document.body)},
    )
    hint_task(work, task)
    return comment


def add_tool_calls(
    work: Work, assignment: Assignment, calls: Sequence[ToolCallInput]
) -> list[ToolCall]:
    """Store tool calls of an assignment; they count as progress under its lease."""
    rows = [
        ToolCall(
            assignment=assignment,
            tool=call.tool[:120],
            command=call.command or "",
            exit_code=call.exit_code,
            outcome=call.outcome,
            output_tail=call.output_tail,
            duration_ms=call.duration_ms,
            source=call.source,
            call_id=call.call_id,
            input_digest=call.input_digest,
            at=call.at or work.now,
        )
        for call in calls
    ]
    ToolCall.objects.bulk_create(rows)
    assignment.has_progress = True
    work.touch(assignment, "has_progress")
    work.hint(f"task:{assignment.task_id}", assignment.project_id)
    return rows


def command_calls(runs: Sequence[Mapping[str, Any]]) -> list[ToolCallInput]:
    """Turn our own runner's records into tool calls that we observed."""
    return [
        ToolCallInput(
            tool="command",
            command=shlex.join(run["argv"]),
            exit_code=run["exit_code"],
            outcome="ok" if run["ok"] else "failed",
            output_tail=run["output_tail"],
            duration_ms=run["duration_ms"],
            source="harness",
        )
        for run in runs
    ]
