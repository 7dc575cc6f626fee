"""Assignments, outputs, comments, tool calls and artifacts as the API shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from orchestration.api.shapes.base import AgentName, Id, OptionalId, OrNone, RowId, Shape, TaskId
from orchestration.mark_words import mark_document
from orchestration.models import Artifact, Assignment, Output, Task
from orchestration.rules.trust import declared_trust, proven_trust, read_anchors, trust_band
from orchestration.services.handshake_gate import needs_handshake
from orchestration.states import Seat


def _status_of(task: object) -> object:
    return getattr(task, "status", task)


class AssignmentShape(Shape):
    """A piece of work as everybody sees it; its lease token is its holder's alone."""

    id: RowId
    task: TaskId
    seat: str
    backend: str
    status: str
    attempt: int
    agent: AgentName
    holder: Annotated[OrNone, Field(validation_alias="worker")]
    lease_expires_at: datetime | None
    is_clock_stopped: bool
    deadline: datetime | None
    input: dict[str, Any]
    hints: dict[str, Any]
    limits: dict[str, Any]
    usage: dict[str, Any]
    corrections: list[str]
    result: Any
    error: str
    queued_at: datetime
    leased_at: datetime | None
    finished_at: datetime | None


class Hints(Shape):
    """What the policy advises; an agent may do otherwise."""

    model: str | None
    effort: str | None
    thinking: str | None


class Limits(Shape):
    """What an assignment may use. None means that nothing is set."""

    turns: int | None
    cost_usd: float | None
    deadline: datetime | None


class ClaimedShape(Shape):
    """An assignment as its holder gets it. Send `lease_token` with every call about it.

    Shape: with `handshake_required` an intent_confirmation has to be acked before the work starts;
    `corrections` are what was corrected or answered in an earlier one.
    """

    id: str
    seat: str
    project: str
    project_slug: str
    task: str
    task_key: str
    title: str
    description: str
    attempt: int
    lease_token: str
    lease_expires_at: datetime | None
    input: dict[str, Any]
    hints: Hints
    limits: Limits
    handshake_required: bool
    corrections: list[str]
    task_url: str
    prompt_url: str

    @classmethod
    def of_lease(cls, row: Assignment) -> Self:
        """Shape a leased assignment for its holder; its task and project are loaded."""
        task, project = row.task, row.task.project
        url = f"/api/projects/{project.slug}/tasks/{task.pk}"
        return cls(
            id=str(row.pk),
            seat=row.seat,
            project=str(project.pk),
            project_slug=project.slug,
            task=str(task.pk),
            task_key=str(task),
            title=task.title,
            description=task.description,
            attempt=row.attempt,
            lease_token=row.lease_token,
            lease_expires_at=row.lease_expires_at,
            input=row.input,
            hints=Hints(**{name: row.hints.get(name) for name in Hints.model_fields}),
            limits=Limits(
                turns=row.limits.get("turns"),
                cost_usd=row.limits.get("cost_usd"),
                deadline=row.deadline,
            ),
            handshake_required=row.seat == Seat.EXECUTOR and needs_handshake(task, row),
            corrections=list(row.corrections),
            task_url=url,
            prompt_url=f"{url}/bootstrap?role={row.seat}",
        )


class LeaseShape(Shape):
    """A lease after a heartbeat, or an assignment after its release.

    Shape: `task_status` is `waiting_human` while Sir is asked, so also over budget: stop working.
    """

    id: RowId
    task: TaskId
    seat: str
    status: str
    lease_expires_at: datetime | None
    is_clock_stopped: bool
    task_status: Annotated[str, BeforeValidator(_status_of), Field(validation_alias="task")]


class ResultShape(Shape):
    """What a result did. `repeat` marks the identical repeat of the report that stands."""

    id: str
    task: str
    seat: str
    status: str
    task_status: str
    repeat: bool
    next: ClaimedShape | None

    @classmethod
    def of_result(
        cls, row: Assignment, task: Task, *, is_repeat: bool, following: Assignment | None
    ) -> Self:
        """Shape a recorded result and, where one was asked for, the next assignment."""
        return cls(
            id=str(row.pk),
            task=str(row.task_id),
            seat=row.seat,
            status=row.status,
            task_status=task.status,
            repeat=is_repeat,
            next=ClaimedShape.of_lease(following) if following is not None else None,
        )


class Anchor(Shape):
    """A checkable fact that a text names: `[L2: the trace]`. It is no verification layer."""

    anchor_level: int
    text: str


OUTPUT_FIELDS = (
    "attempt", "version", "type", "title", "summary", "content", "path", "sha256", "size_bytes",
    "assertions", "marks", "change_note", "is_orphan", "created_at",
)  # fmt: skip
READ_CHARACTERS = 100_000
"""Characters of a content in which anchors are looked for."""


def _in_words(marks: Any) -> Any:
    return [mark_document(one) for one in marks]


class OutputShape(Shape):
    """An output. `is_orphan` marks what came under a lease that had ended.

    Shape: trust figures are 0 to 1, the band goes by the proven one; `anchor_density` is None
    where the text names no anchor.
    """

    id: RowId
    task: TaskId
    attempt: int
    version: int
    type: str
    title: str
    summary: str
    content: str
    path: str
    sha256: str
    size_bytes: int
    assertions: list[Any]
    declared_trust: float
    proven_trust: float
    trust_band: str
    anchors: list[Anchor]
    anchor_density: float | None
    marks: Annotated[list[Any], BeforeValidator(_in_words)]
    change_note: str
    is_orphan: bool
    created_at: datetime

    @model_validator(mode="before")
    @classmethod
    def add_trust(cls, row: Any) -> Any:
        """Add what follows from the claims and, without any, from the anchors of the text."""
        if not isinstance(row, Output):
            return row
        reading = read_anchors(row.content[:READ_CHARACTERS])
        proven = proven_trust(row.assertions)
        held = {name: getattr(row, name) for name in OUTPUT_FIELDS}
        return held | {
            "pk": row.pk,
            "task_id": row.task_id,
            "declared_trust": round(declared_trust(row.assertions), 4),
            "proven_trust": round(proven, 4),
            "trust_band": trust_band(proven),
            "anchors": [
                {"anchor_level": one.anchor_level, "text": one.text} for one in reading.anchors
            ],
            "anchor_density": round(reading.density, 4) if reading.anchors else None,
        }


class CommentShape(Shape):
    """A comment on a task."""

    id: RowId
    task: TaskId
    comment_type: str
    body: str
    author: str
    attempt: int
    created_at: datetime


class ToolCallShape(Shape):
    """A recorded tool call. Shape: FORMATS. Units: duration_ms in milliseconds."""

    id: RowId
    assignment: Annotated[Id, Field(validation_alias="assignment_id")]
    tool: str
    command: str
    exit_code: int | None
    outcome: str
    output_tail: str
    duration_ms: int | None
    source: str
    at: datetime


class ToolCallsShape(Shape):
    """What recording tool calls did. `warnings` name calls that repeat without end."""

    recorded: int
    total: int
    stopped: bool
    warnings: list[str]


class CodexShape(ToolCallsShape):
    """What taking lines of Codex did. `turns` are those that the lines ended."""

    turns: int


class LogShape(Shape):
    """What appending to the log did. Units: characters."""

    characters: int


class ArtifactShape(Shape):
    """A locked artifact; its bytes are at `content_url`."""

    id: RowId
    project: Annotated[Id, Field(validation_alias="project_id")]
    task: TaskId
    output: Annotated[OptionalId, Field(validation_alias="output_id")]
    name: str
    type: str
    version: int
    sha256: Annotated[str, Field(validation_alias="content_id")]
    size_bytes: int
    exception_note: str
    locked_at: datetime
    content_url: str = ""

    @classmethod
    def of(cls, row: object) -> Self:
        """Shape an artifact with the address of its bytes."""
        pk = row.pk if isinstance(row, Artifact) else ""
        url = f"/api/artifacts/{pk}/content"
        return cls.model_validate(row).model_copy(update={"content_url": url})


class ArtifactPage(Shape):
    """One page of artifacts."""

    results: list[ArtifactShape]
    next: str | None
    previous: str | None
