"""Seal committed events into a gap-free, hashed chain, and verify it.

Row ids are not commit order, so a single sealer gives each committed event its position in an
insert-only table and links it to the one before. The hash covers what the database returns.
Source: DESIGN section 13.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, connection
from django.db.models import Max
from django.utils import timezone

from orchestration.models import AuditEvent, AuditSeal
from orchestration.services.work import SYSTEM, unit_of_work

GENESIS = "0" * 64
BATCH = 1000
SEALER_LOCK = 7_240_511
SETTLED_AFTER = timedelta(minutes=15)
"""Transactions are over by then: no event older than this can still become visible."""


@dataclass(frozen=True, slots=True)
class ChainFault:
    """The first thing wrong with the chain. `event_id` is None for a gap."""

    position: int
    event_id: int | None
    problem: str


def event_digest(event: AuditEvent, position: int, previous: str) -> str:
    """Hash one event as stored, at its place in the chain."""
    body = json.dumps(
        [
            position,
            previous,
            event.pk,
            event.project_id,
            event.task_id,
            event.kind,
            event.actor,
            event.subject,
            event.before,
            event.after,
            event.why,
            event.request_id,
            event.at.isoformat(),
        ],
        ensure_ascii=False,
        sort_keys=True,
        separators=(",", ":"),
    )
    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()


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


def _seal_batch() -> int:
    unsealed = AuditEvent.objects.filter(seal__isnull=True, pk__gt=_settled_id())
    if not unsealed.exists():
        return 0
    try:
        with unit_of_work(SYSTEM) as work:
            if not _is_only_sealer():
                return 0
            events = list(unsealed.order_by("pk")[:BATCH])
            last = AuditSeal.objects.order_by("-position").first()
            rows = list(_links(events, last, work.now))
            AuditSeal.objects.bulk_create(rows)
            for project_id in {event.project_id for event in events if event.project_id}:
                work.hint(f"audit:{project_id}", project_id)
    except IntegrityError:
        return 0
    return len(rows)


def _settled_id() -> int:
    """Every event up to this id is sealed or was never committed: ids below it need no look."""
    before = timezone.now() - SETTLED_AFTER
    return AuditEvent.objects.filter(at__lt=before, seal__isnull=False).aggregate(
        newest=Max("pk")
    )["newest"] or 0


def _is_only_sealer() -> bool:
    if connection.vendor != "postgresql":
        return True
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [SEALER_LOCK])
        row = cursor.fetchone()
    return bool(row and row[0])


def _links(events: list[AuditEvent], last: AuditSeal | None, now: Any) -> Iterator[AuditSeal]:
    position = last.position if last else 0
    previous = last.hash if last else GENESIS
    for event in events:
        position += 1
        digest = event_digest(event, position, previous)
        yield AuditSeal(
            position=position, event=event, previous_hash=previous, hash=digest, sealed_at=now
        )
        previous = digest


def verify_chain() -> tuple[int, ChainFault | None]:
    """Recompute the whole chain. Return how many seals were checked and the first fault, if any.

    Also a fault: an event that stayed unsealed although it is older than the sealer's settling time.
    """
    previous, expected, count = GENESIS, 1, 0
    for seal in AuditSeal.objects.select_related("event").order_by("position").iterator(BATCH):
        if seal.position != expected:
            return count, ChainFault(expected, None, f"position {expected} is missing")
        if seal.previous_hash != previous:
            return count, ChainFault(seal.position, seal.event_id, "the link before it is broken")
        if event_digest(seal.event, seal.position, previous) != seal.hash:
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
    oldest = (
        AuditEvent.objects.filter(seal__isnull=True, pk__gt=_settled_id()).order_by("pk").first()
    )
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

