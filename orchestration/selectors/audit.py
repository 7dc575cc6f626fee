"""Reads of the audit trail: sealed events in order of position, newest first, narrowed and paged.

Source: DESIGN section 13.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from django.db.models import Q, QuerySet
from django.utils import timezone

from orchestration.errors import NotFound
from orchestration.models import AuditEvent, AuditSeal

AUDIT_PAGE = 100
SETTLED_AFTER = timedelta(minutes=15)
"""Transactions are over by then: no event older than this can still become visible."""


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """What the reader narrowed the trail to; empty means everything. Units: `on`, a local day."""

    project: str = ""
    noun: str = ""
    actor: str = ""
    text: str = ""
    on: date | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is narrowed."""
        return not (self.project or self.noun or self.actor or self.text or self.on)


@dataclass(frozen=True, slots=True)
class AuditPage:
    """One page of sealed events, newest first. `older` and `newer` are positions to page from."""

    seals: list[AuditSeal]
    older: int | None
    newer: int | None


def list_events(
    wanted: AuditFilter, *, before: int | None = None, after: int | None = None
) -> AuditPage:
    """List sealed events before a position (or the page that follows `after`), newest first.

    Positions have no gaps and never change, so a page shows the same rows for ever.
    """
    rows = _narrow(AuditSeal.objects.all(), wanted)
    related = rows.select_related("event__project", "event__task__root")
    if after is not None:
        page = list(related.filter(position__gt=after).order_by("position")[:AUDIT_PAGE])[::-1]
    else:
        older = related.filter(position__lt=before) if before is not None else related
        page = list(older.order_by("-position")[:AUDIT_PAGE])
    for seal in page:
        if seal.event.task is not None and seal.event.project is not None:
            seal.event.task.project = seal.event.project
    if not page:
        return AuditPage([], None, None)
    first, last = page[0].position, page[-1].position
    has_older = rows.filter(position__lt=last).exists()
    has_newer = rows.filter(position__gt=first).exists()
    return AuditPage(page, last if has_older else None, first if has_newer else None)


def _narrow(rows: QuerySet[AuditSeal], wanted: AuditFilter) -> QuerySet[AuditSeal]:
    if wanted.project:
        rows = rows.filter(event__project__slug=wanted.project)
    if wanted.noun:
        rows = rows.filter(event__kind__startswith=f"{wanted.noun}.")
    if wanted.actor:
        rows = rows.filter(event__actor=wanted.actor)
    if wanted.on is not None:
        zone = timezone.get_current_timezone()
        start = datetime.combine(wanted.on, time.min, tzinfo=zone)
        rows = rows.filter(event__at__gte=start, event__at__lt=start + timedelta(days=1))
    if wanted.text:
        rows = rows.filter(_says(wanted.text))
    return rows


def _says(text: str) -> Q:
    """Match an event by kind, reason, subject, request id, position, or the key of its task."""
    found = (
        Q(event__kind__icontains=text)
        | Q(event__why__icontains=text)
        | Q(event__subject=text)
        | Q(event__request_id=text)
    )
    bare = text.strip().lstrip("#")
    prefix, _, number = bare.rpartition("-")
    if number.isdigit() and len(number) < 10:
        if prefix:
            found |= Q(event__project__key_prefix__iexact=prefix, event__task__number=int(number))
        else:
            found |= Q(position=int(number))
    return found


def list_nouns() -> list[str]:
    """The nouns of the events, for the filter. Shape: the part of a kind before its dot."""
    return [
        "agent", "artifact", "assessment", "assignment", "blueprint", "comment", "decision",
        "defect", "experience", "fix", "handshake", "human_token", "output", "plan", "project",
        "review", "task", "wiki",
    ]  # fmt: skip


def read_event(position: int) -> AuditSeal:
    """Find one sealed event by its position. Errors: NotFound."""
    if position >= 1 << 62:
        raise NotFound("There is no such event.")
    related = AuditSeal.objects.select_related("event__project", "event__task__root")
    seal = related.filter(position=position).first()
    if seal is None:
        raise NotFound("There is no such event.")
    if seal.event.task is not None and seal.event.project is not None:
        seal.event.task.project = seal.event.project
    return seal


def newest_seal() -> AuditSeal | None:
    """The newest link of the chain."""
    return AuditSeal.objects.order_by("-position").first()


def count_unsealed() -> int:
    """How many committed events wait for the sealer.

    Only those after the newest seal that is older than any transaction can be: all before are
    sealed, and a trail of millions is not joined with its seals for it.
    """
    settled = AuditSeal.objects.filter(sealed_at__lt=timezone.now() - SETTLED_AFTER)
    floor = settled.order_by("-position").values_list("event_id", flat=True).first() or 0
    return AuditEvent.objects.filter(seal__isnull=True, pk__gt=floor).count()
