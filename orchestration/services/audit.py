"""Seal committed events into a gap-free, hashed chain, and verify it.

Row ids are not commit order, so a single sealer gives each committed event its position in an
insert-only table and links it to the one before. The hash covers what the database returns.
Source: DESIGN section 13.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from orchestration.models import AuditEvent, AuditSeal
from orchestration.models.inserts import insert_states
from orchestration.models.statements import EVENT_COLUMNS, unsealed_events
from orchestration.selectors.audit import SETTLED_AFTER
from orchestration.services.work import SYSTEM, Work, unit_of_work

GENESIS = "0" * 64
BATCH = 200
SEALER_LOCK = 7_240_511
FLOOR_LOOK_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ChainFault:
    """The first thing wrong with the chain. `event_id` is None for a gap."""

    position: int
    event_id: int | None
    problem: str


_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


def event_digest(columns: Sequence[Any], position: int, previous: str) -> str:
    """Hash one event as the database returns it, at its place in the chain.

    Shape: `columns` as EVENT_COLUMNS; the time is the last of them.
    """
    body = _encode([position, previous, *columns[:-1], columns[-1].isoformat()])
    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()


class _Floor:
    """The id up to which every event is sealed or was never committed: nothing to look for below.

    It follows the sealed ids while they are contiguous. A gap (a rolled-back transaction) is
    stepped over once everything around it is older than any transaction can be.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._id: int | None = None
        self._looked_at = 0.0

    def current(self) -> int:
        """Return the floor, moved up as far as is safe."""
        with self._lock:
            now = time.monotonic()
            if self._id is None or now - self._looked_at > FLOOR_LOOK_SECONDS:
                self._looked_at = now
                self._id = max(self._id or 0, _settled_id())
            return self._id

    def advance(self) -> None:
        """Follow the sealed ids upwards while there is no gap."""
        with self._lock:
            floor = self._id or 0
            sealed = AuditSeal.objects.filter(event_id__gt=floor).order_by("event_id")
            for event_id in sealed.values_list("event_id", flat=True)[: 5 * BATCH]:
                if event_id != floor + 1:
                    break
                floor = event_id
            self._id = floor

    def reset(self) -> None:
        """Forget: another database lies behind this process now."""
        with self._lock:
            self._id = None


floor = _Floor()
_sealing = threading.Lock()


def _settled_id() -> int:
    """The event of the newest seal that is older than any transaction can be."""
    before = timezone.now() - SETTLED_AFTER
    seals = AuditSeal.objects.filter(sealed_at__lt=before).order_by("-position")
    return seals.values_list("event_id", flat=True).first() or 0


def seal_events() -> int:
    """Seal what was committed since last time, in batches. Return how many events.

    One sealer at a time: an advisory lock on PostgreSQL, the writer lock on SQLite; the unique
    previous hash refuses a second one even so.
    """
    total = 0
    while True:
        sealed = _seal_batch()
        total += sealed
        if sealed < BATCH:
            return total


def _unsealed() -> QuerySet[AuditEvent]:
    return AuditEvent.objects.filter(seal__isnull=True, pk__gt=floor.current()).order_by("pk")


def _seal_batch() -> int:
    newest = AuditEvent.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    if newest < floor.current():
        floor.reset()
    if not _sealing.acquire(blocking=False):
        return 0
    try:
        if connection.vendor == "postgresql":
            with unit_of_work(SYSTEM) as work:
                rows, projects = _next_links() if _is_only_sealer() else ([], set())
                _insert_seals(work, rows, projects)
        else:
            # Hashing happens before the writer lock is taken: the steps must not wait for it.
            rows, projects = _next_links()
            if rows:
                with unit_of_work(SYSTEM) as work:
                    _insert_seals(work, rows, projects)
    except IntegrityError:
        # Another sealer linked to the same event first; its batch stands, ours comes again.
        return 0
    finally:
        _sealing.release()
    # Only what is really committed moves the floor: inside an outer transaction this waits.
    transaction.on_commit(floor.advance)
    return len(rows)


def _next_links() -> tuple[list[dict[str, Any]], set[int]]:
    """Link the next events to the chain. Shape: seals as plain values, the projects they touch."""
    unsealed = unsealed_events(floor.current(), limit=BATCH)
    last = AuditSeal.objects.order_by("-position").first()
    rows = list(_links(unsealed, last))
    return rows, {columns[1] for columns in unsealed if columns[1] is not None}


def _insert_seals(work: Work, rows: list[dict[str, Any]], projects: set[int]) -> None:
    insert_states(AuditSeal, [row | {"sealed_at": work.now} for row in rows])
    for project_id in projects:
        work.hint(f"audit:{project_id}", project_id)


def _is_only_sealer() -> bool:
    if connection.vendor != "postgresql":
        return True
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [SEALER_LOCK])
        row = cursor.fetchone()
    return bool(row and row[0])


def _links(events: Sequence[Sequence[Any]], last: AuditSeal | None) -> Iterator[dict[str, Any]]:
    position = last.position if last else 0
    previous = last.hash if last else GENESIS
    for columns in events:
        position += 1
        digest = event_digest(columns, position, previous)
        yield {
            "position": position,
            "event_id": columns[0],
            "previous_hash": previous,
            "hash": digest,
        }
        previous = digest


def verify_chain() -> tuple[int, ChainFault | None]:
    """Recompute the whole chain. Return how many seals were checked and the first fault, if any.

    Also a fault: an event still unsealed although it is older than the settling time.
    """
    previous, expected, count = GENESIS, 1, 0
    for seal in AuditSeal.objects.select_related("event").order_by("position").iterator(BATCH):
        if seal.position != expected:
            return count, ChainFault(expected, None, f"position {expected} is missing")
        if seal.previous_hash != previous:
            return count, ChainFault(seal.position, seal.event_id, "the link before it is broken")
        columns = [getattr(seal.event, name) for name in EVENT_COLUMNS]
        if event_digest(columns, seal.position, previous) != seal.hash:
            return count, ChainFault(seal.position, seal.event_id, "the event was changed")
        previous, expected, count = seal.hash, expected + 1, count + 1
    late = AuditEvent.objects.filter(
        seal__isnull=True, at__lt=timezone.now() - SETTLED_AFTER
    ).first()
    if late is not None:
        return count, ChainFault(expected, late.pk, "the event was never sealed")
    return count, None


def sealer_lag_seconds() -> float:
    """Age of the oldest event not yet sealed. Units: seconds; 0 when all are."""
    oldest = _unsealed().first()
    return (timezone.now() - oldest.at).total_seconds() if oldest is not None else 0.0


def describe_event(seal: AuditSeal) -> Mapping[str, Any]:
    """Shape one sealed event for the feed and the export."""
    event = seal.event
    return {
        "position": seal.position,
        "id": str(event.pk),
        "at": event.at.isoformat(),
        "project": str(event.project_id) if event.project_id else None,
        "task": str(event.task_id) if event.task_id else None,
        "kind": event.kind,
        "actor": event.actor,
        "subject": event.subject,
        "before": event.before,
        "after": event.after,
        "why": event.why,
        "request_id": event.request_id,
        "hash": seal.hash,
    }


def export_events(*, project_id: int | None = None, after: int = 0) -> Iterator[Mapping[str, Any]]:
    """Yield sealed events in order, of one project or of all."""
    rows = AuditSeal.objects.select_related("event").filter(position__gt=after)
    if project_id is not None:
        rows = rows.filter(event__project_id=project_id)
    for seal in rows.order_by("position").iterator(BATCH):
        yield describe_event(seal)
