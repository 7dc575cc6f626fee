"""Reads of what just happened: topics changed since a position, and the live log of a project.

Source: DESIGN section 15 (snapshot with its position, catch-up), UI.md section 5.4 (log).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from orchestration.contracts.hints import HintMessage
from orchestration.errors import Invalid
from orchestration.models import AuditEvent, AuditSeal, LogChunk

CHANGES_LIMIT = 500
LOG_CHUNKS = 200
LOG_LINES = 400
FIRST_LINES = 200
PLACE_FIELDS = (
    "task_id", "task__number", "task__step_key", "task__root_id", "task__root__number",
)  # fmt: skip
"""What a line needs of its task; 400 whole tasks are a hundred milliseconds of JSON."""
SETTLED_AFTER = timedelta(seconds=5)
"""A log row's transaction takes milliseconds: nothing older can still become visible."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What a page has to fetch again. `is_reset` when it is too much to name."""

    position: int
    hints: list[HintMessage]
    is_reset: bool = False


def newest_position() -> int:
    """The position of the newest sealed event; 0 when nothing is sealed yet.

    A page reads it before its snapshot: what comes later is caught up with, never missed.
    """
    return AuditSeal.objects.order_by("-position").values_list("position", flat=True).first() or 0


def changes_after(position: int, *, project_id: int | None) -> Changes:
    """Name the topics that changed after a sealed position, committed but unsealed ones too.

    Without a project every project's topics are named, without those of single tasks.
    """
    newest = newest_position()
    rows = AuditEvent.objects.filter(Q(seal__position__gt=position) | Q(seal__isnull=True))
    if project_id is not None:
        rows = rows.filter(
            Q(project_id=project_id) | Q(kind__startswith="decision.") | Q(project__isnull=True)
        )
    found = list(
        rows.order_by("pk").values_list("project_id", "task_id", "kind", "subject")[
            : CHANGES_LIMIT + 1
        ]
    )
    if len(found) > CHANGES_LIMIT:
        return Changes(newest, [], is_reset=True)
    hints: dict[str, HintMessage] = {}
    for event_project, task_id, kind, subject in found:
        for topic in _topics(event_project, task_id, kind, subject, wants_tasks=bool(project_id)):
            hints[topic] = HintMessage(topic=topic, project=event_project, version=0)
    if project_id is not None:
        topic = f"log:{project_id}"
        hints[topic] = HintMessage(topic=topic, project=project_id, version=0)
    return Changes(newest, list(hints.values()))


def _topics(
    project_id: int | None, task_id: int | None, kind: str, subject: str, *, wants_tasks: bool
) -> Iterable[str]:
    if kind.startswith("decision."):
        yield "inbox"
        yield subject
    if project_id is not None:
        yield f"project:{project_id}"
        yield f"audit:{project_id}"
    if task_id is not None and wants_tasks:
        yield f"task:{task_id}"


# --- The live log ---------------------------------------------------------------------------------

LOGGED_KINDS = (
    "task.claimed", "task.working", "task.review", "task.blocked", "task.waiting_human",
    "task.done", "task.failed", "task.fatal", "task.cancelled", "task.progress",
    "assignment.expired", "plan.drafted", "plan.audited", "plan.needs_revision", "plan.rejected",
    "blueprint.locked", "review.pass", "review.fail", "fix.recorded", "artifact.locked",
    "defect.open", "defect.verified", "defect.accepted_as_is", "defect.rejected",
    "decision.opened", "decision.decided", "decision.withdrawn", "decision.expired",
    "handshake.opened", "handshake.awaiting_auditor", "handshake.awaiting_sir",
    "handshake.confirmed", "handshake.confirmed_with_correction", "handshake.rejected",
    "handshake.void",
)  # fmt: skip
"""Events that are worth a line beside the output of commands."""


@dataclass(frozen=True, slots=True)
class LogCursor:
    """How far a reader has come: sealed position, last settled row, and newer rows it has."""

    position: int = 0
    settled: int = 0
    seen: tuple[int, ...] = ()

    @classmethod
    def parse(cls, text: str) -> LogCursor:
        """Read a cursor that a page sends back. Errors: Invalid for any other text."""
        if not text:
            return cls()
        try:
            position, settled, seen = json.loads(text)
            return cls(int(position), int(settled), tuple(int(pk) for pk in seen[:LOG_CHUNKS]))
        except (ValueError, TypeError, OverflowError) as error:
            raise Invalid("the cursor of the log is malformed") from error

    def text(self) -> str:
        """Write the cursor for the page."""
        return json.dumps([self.position, self.settled, list(self.seen)], separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class LogRow:
    """One line of the log. Shape: `event` is an audit kind, or empty for a command's output."""

    at: datetime
    root_id: int | None
    root_number: int | None
    step: str
    source: str
    text: str
    event: str = ""
    facts: dict[str, Any] | None = None


def read_log(
    project_id: int, cursor: LogCursor, *, root_id: int | None = None
) -> tuple[list[LogRow], LogCursor]:
    """Read what came after a cursor: output of commands and events, oldest first.

    Without a cursor the newest lines. Each line is given once: rows still in flight are told apart
    by id, since ids are not commit order.
    """
    is_first = cursor == LogCursor()
    chunks = _chunks(project_id, cursor, root_id, is_first=is_first)
    events = _events(project_id, cursor, root_id, is_first=is_first)
    position = events[-1].seal__position if events else cursor.position
    if is_first:
        position = max(position, newest_position())
    rows = sorted([*_lines(chunks), *map(_event_row, events)], key=lambda row: row.at)
    return rows[-FIRST_LINES:] if is_first else rows, _advance(cursor, chunks, position)


def _chunks(
    project_id: int, cursor: LogCursor, root_id: int | None, *, is_first: bool
) -> list[Any]:
    rows = LogChunk.objects.filter(project_id=project_id)
    if root_id is not None:
        rows = rows.filter(Q(task=root_id) | Q(task__root=root_id))
    if is_first:
        rows = rows.order_by("-pk")
    else:
        rows = rows.filter(pk__gt=cursor.settled).exclude(pk__in=cursor.seen).order_by("pk")
    found = rows.values_list(
        "pk", "at", "text", "source", "assignment__agent__name", *PLACE_FIELDS, named=True
    )[:LOG_CHUNKS]
    return list(found)[::-1] if is_first else list(found)


def _events(
    project_id: int, cursor: LogCursor, root_id: int | None, *, is_first: bool
) -> list[Any]:
    rows: QuerySet[AuditEvent] = AuditEvent.objects.filter(
        project_id=project_id, kind__in=LOGGED_KINDS, seal__isnull=False
    )
    if root_id is not None:
        rows = rows.filter(Q(task=root_id) | Q(task__root=root_id))
    if is_first:
        rows = rows.order_by("-seal__position")
    else:
        rows = rows.filter(seal__position__gt=cursor.position).order_by("seal__position")
    found = rows.values_list(
        "kind", "actor", "after", "why", "at", "seal__position", *PLACE_FIELDS, named=True
    )[: LOG_CHUNKS if is_first else LOG_LINES]
    return list(found)[::-1] if is_first else list(found)


def _advance(cursor: LogCursor, chunks: Sequence[Any], position: int) -> LogCursor:
    edge = timezone.now() - SETTLED_AFTER
    old = [chunk.pk for chunk in chunks if chunk.at < edge]
    settled = max([cursor.settled, *old])
    fresh = [chunk.pk for chunk in chunks if chunk.pk > settled]
    seen = tuple(sorted({pk for pk in (*cursor.seen, *fresh) if pk > settled})[-LOG_CHUNKS:])
    return LogCursor(position, settled, seen)


def _lines(chunks: Sequence[Any]) -> Iterable[LogRow]:
    for chunk in chunks:
        source = chunk.assignment__agent__name or chunk.source
        for line in chunk.text.splitlines() or [""]:
            yield LogRow(chunk.at, *_place(chunk), source, line)


def _place(row: Any) -> tuple[int | None, int | None, str]:
    """Id and number of a row's root, and its step key."""
    if row.task_id is None:
        return None, None, ""
    if row.task__root_id is None:
        return row.task_id, row.task__number, row.task__step_key
    return row.task__root_id, row.task__root__number, row.task__step_key


def _event_row(event: Any) -> LogRow:
    facts = dict(event.after) if isinstance(event.after, dict) else {}
    facts["why"] = event.why
    source = event.actor.partition(":")[2] or event.actor
    return LogRow(event.at, *_place(event), source, "", event.kind, facts)
