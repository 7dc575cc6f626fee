"""Follow one root task from the command line: its log, its moves, and what it waits for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.db.models import Max, Q
from django.utils import timezone

from orchestration.management.cards import decision_card, plain_text
from orchestration.models import (
    Artifact,
    Assignment,
    AuditEvent,
    AuditSeal,
    Decision,
    LogChunk,
    Task,
)
from orchestration.seats.registry import EXTERNAL
from orchestration.selectors.root_queue import MAX_PLACES, read_root_queue
from orchestration.selectors.tasks import not_ready_reason
from orchestration.states import (
    ASSIGNMENT_LIVE,
    AssignmentStatus,
    DecisionKind,
    DecisionStatus,
    NotReadyReason,
    TaskStatus,
)

SETTLED_AFTER = timedelta(seconds=10)
"""Row ids are not commit order; a piece of log this old has no younger sibling with a lower id."""
CARD_AFTER = timedelta(seconds=2)
"""A card is shown after the moves that led to it; their seals come a moment later than the rows."""
WAITS_FOR = {"sir": ", which waits for Sir", "agent": ", which waits for an agent", "": ""}
QUIET_KINDS = frozenset({"task.claimed"})
SHOWN_KINDS = ("task.", "defect.", "plan.audited", "blueprint.locked", "artifact.locked")


class Standing(StrEnum):
    """How a followed root stands."""

    RUNNING = "running"
    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"


@dataclass(slots=True)
class Follower:
    """What was shown of one root so far. `write` gets one line at a time, without its end."""

    root: Task
    write: Callable[[str], None]
    decision_url: Callable[[int], str]
    position: int = 0
    floor: int = 0
    seen: set[int] = field(default_factory=set)
    partial: dict[int | None, str] = field(default_factory=dict)
    cards: set[int] = field(default_factory=set)
    opened: set[str] = field(default_factory=set)
    labels: dict[int, str] = field(default_factory=dict)
    said: str = ""

    @classmethod
    def start(
        cls, root: Task, write: Callable[[str], None], decision_url: Callable[[int], str]
    ) -> Follower:
        """Begin where the root began, so that nothing of it is missed."""
        before = AuditSeal.objects.filter(event__at__lt=root.created_at).aggregate(
            p=Max("position")
        )
        floor = LogChunk.objects.filter(at__lt=root.created_at).aggregate(pk=Max("pk"))
        return cls(root, write, decision_url, position=before["p"] or 0, floor=floor["pk"] or 0)

    def poll(self) -> Standing:
        """Show what is new and say how the root stands."""
        # Read before the log: what the end of the run wrote is then shown before it is told.
        self.root = Task.objects.select_related("project").get(pk=self.root.pk)
        standing = self._standing()
        lines = [*self._log_lines(), *self._event_lines()]
        for at, text in sorted(lines, key=lambda line: line[0]):
            self.write(f"{timezone.localtime(at):%H:%M:%S}  {text}")
        self._show_cards()
        self._say_why_waiting(standing)
        return standing

    def is_all_told(self) -> bool:
        """Whether every event of the root so far was sealed, and so shown."""
        newest = AuditSeal.objects.filter(_in_tree(self.root, "event__task")).last()
        waiting = AuditEvent.objects.filter(_in_tree(self.root, "task"), seal__isnull=True)
        told = newest is None or newest.position <= self.position
        return told and not waiting.exists()

    def artifacts(self) -> Iterator[str]:
        """Describe what the root's steps locked, in order."""
        rows = Artifact.objects.filter(_in_tree(self.root, "task")).order_by("pk")
        for row in rows.select_related("content"):
            note = f"  ({row.exception_note})" if row.exception_note else ""
            yield f"{row.name} v{row.version}  sha-256 {row.content_id[:12]}…{note}"

    def _standing(self) -> Standing:
        if self.root.status == TaskStatus.DONE:
            return Standing.DONE
        if self.root.status in (TaskStatus.FATAL, TaskStatus.CANCELLED):
            return Standing.FAILED
        return Standing.RUNNING if self._is_moving() else Standing.WAITING

    def _is_moving(self) -> bool:
        """Whether something of the root is running, or about to without anybody's help."""
        live = Assignment.objects.filter(
            _in_tree(self.root, "task"), status__in=[state.value for state in ASSIGNMENT_LIVE]
        )
        ours = live.exclude(backend=EXTERNAL, status=AssignmentStatus.QUEUED.value)
        if ours.exists():
            return True
        return not (live.exists() or self._open_decisions() or self._root_waits())

    def _root_waits(self) -> bool:
        return self.root.status == TaskStatus.PENDING and bool(not_ready_reason(self.root))

    def _open_decisions(self) -> list[Decision]:
        rows = Decision.objects.filter(
            _in_tree(self.root, "task"), status=DecisionStatus.OPEN.value
        ).exclude(kind=DecisionKind.HIGH_NOTICE.value)
        return list(rows.select_related("task__project").order_by("priority", "pk"))

    def _log_lines(self) -> Iterator[tuple[datetime, str]]:
        rows = LogChunk.objects.filter(_in_tree(self.root, "task"), pk__gt=self.floor)
        settled = timezone.now() - SETTLED_AFTER
        for row in rows.order_by("pk"):
            if row.at < settled:
                self.floor = max(self.floor, row.pk)
            if row.pk in self.seen:
                continue
            self.seen.add(row.pk)
            *lines, rest = (self.partial.get(row.assignment_id, "") + row.text).split("\n")
            self.partial[row.assignment_id] = rest
            for line in lines:
                yield row.at, f"{self._label(row.task_id)} | {plain_text(line)}"
        self.seen = {pk for pk in self.seen if pk > self.floor}

    def _event_lines(self) -> Iterator[tuple[datetime, str]]:
        rows = AuditSeal.objects.filter(
            _in_tree(self.root, "event__task"), position__gt=self.position
        )
        for seal in rows.select_related("event").order_by("position"):
            self.position = seal.position
            event = seal.event
            if event.kind == "decision.opened":
                self.opened.add(event.subject)
            if event.task_id is not None and _is_shown(event):
                said = describe_move(event.kind, event.after or {}, event.why)
                yield event.at, f"{self._label(event.task_id)} {said}"

    def _label(self, task_id: int) -> str:
        if task_id not in self.labels:
            task = Task.objects.select_related("project").get(pk=task_id)
            self.labels[task_id] = f"{task!s:<10} {plain_text(task.step_key):<12}"
        return self.labels[task_id]

    def _show_cards(self) -> None:
        for decision in self._open_decisions():
            is_old = timezone.now() - decision.created_at > CARD_AFTER
            is_told = is_old or f"decision:{decision.pk}" in self.opened
            if is_told and decision.pk not in self.cards:
                self.cards.add(decision.pk)
                for line in decision_card(decision, self.decision_url(decision.pk)):
                    self.write(line)

    def _say_why_waiting(self, standing: Standing) -> None:
        """Say once why nothing moves, where no decision says it already."""
        why = "" if standing is not Standing.WAITING else self._why_waiting()
        if why and why != self.said:
            self.write(why)
        self.said = why

    def _queue(self) -> str:
        """Its place in the queue, and what those before it at work wait for."""
        queue = read_root_queue(self.root.project)
        held = [f"{one.task}{WAITS_FOR[one.waits_for]}" for one in queue.holders]
        place = queue.places.get(self.root.pk, f"more than {MAX_PLACES}")
        return f"queued, place {place}" + (f", behind {' and '.join(held)}" if held else "")

    def _why_waiting(self) -> str:
        reason = not_ready_reason(self.root)
        if reason == NotReadyReason.QUEUED_ROOT:
            return f"{self.root} cannot start yet: {self._queue()}"
        if reason is not None:
            state = self.root.project.status
            return f"{self.root} cannot start yet: {reason} (the project is {state})"
        waiting = Assignment.objects.filter(
            _in_tree(self.root, "task"), backend=EXTERNAL, status=AssignmentStatus.QUEUED.value
        ).select_related("task__project")
        named = ", ".join(f"{row.task} ({row.seat})" for row in waiting[:5])
        if not named:
            return ""
        return f"Waiting for an agent: {named}. `manage.py create_agent NAME` makes its token."


def _in_tree(root: Task, path: str) -> Q:
    """Select the rows of a root and of everything below it."""
    return Q(**{f"{path}_id": root.pk}) | Q(**{f"{path}__root_id": root.pk})


def _is_shown(event: AuditEvent) -> bool:
    """Leave out what would only be noise: claims, and steps that are merely there."""
    is_new = event.kind == "task.pending" and event.before is None
    return event.kind.startswith(SHOWN_KINDS) and event.kind not in QUIET_KINDS and not is_new


def describe_move(kind: str, after: dict[str, Any], why: str) -> str:
    """Say one audit event in a line."""
    noun, _, move = kind.partition(".")
    if kind == "plan.audited":
        return f"plan audited: {after.get('verdict')}"
    if kind == "blueprint.locked":
        return f"blueprint locked: {after.get('steps')} steps, {str(after.get('sha256'))[:12]}…"
    if kind == "artifact.locked":
        return f"artifact locked: {plain_text(str(after.get('name', '')))}"
    said = move if noun == "task" else f"{noun} {move}"
    if noun == "defect" and after.get("severity"):
        said = f"{after['severity']} {said}"
    line = why.strip().partition("\n")[0]
    return f"{said}: {plain_text(line)}" if line else said
