"""Reads of the audit trail: sealed events in order of position, newest first, narrowed and paged.

Source: DESIGN section 13.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta

from django.db.models import F, Max, Min, Q, QuerySet
from django.utils import timezone

from orchestration.errors import NotFound
from orchestration.models import AuditEvent, AuditSeal, Task
from orchestration.selectors.activity import newest_position
from orchestration.selectors.master import UNREAD

AUDIT_PAGE = 100
SEARCHED = 20_000
"""Events whose words are searched for one page: what a reader waits for, not the whole trail."""
FEW = 2_000
"""So many events are named one by one; more are looked for in the trail itself."""
UNREAD_OF_EVENTS = tuple(
    f"{path}__{name}" for path in ("event__task", "event__task__root") for name in UNREAD
)
SETTLED_AFTER = timedelta(minutes=15)
"""Transactions are over by then: no event older than this can still become visible."""


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """What the reader narrowed the trail to; empty means everything. Units: `on`, a local day.

    With `in_words` a text that names one thing is searched for in kinds and reasons as well.
    """

    project: str = ""
    noun: str = ""
    actor: str = ""
    text: str = ""
    on: date | None = None
    in_words: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing is narrowed."""
        return not (self.project or self.noun or self.actor or self.text or self.on)


@dataclass(frozen=True, slots=True)
class AuditPage:
    """One page of sealed events, newest first. `older` and `newer` are positions to page from.

    Shape: `searched_to` is where a search of the words paused, with `older` to go on from there;
    `is_exact` where the text named a task or a position, whose events these are.
    """

    seals: list[AuditSeal]
    older: int | None
    newer: int | None
    searched_to: int | None = None
    is_exact: bool = False


def list_events(
    wanted: AuditFilter, *, before: int | None = None, after: int | None = None
) -> AuditPage:
    """List sealed events before a position (or the page that follows `after`), newest first.

    Positions have no gaps and never change, so a page shows the same rows for ever. A text is
    looked up where an index answers it, else searched for in `SEARCHED` events at a time.
    """
    rows = AuditSeal.objects.filter(_where(wanted, "event__"))
    named = _named(wanted.text) if wanted.text and not wanted.in_words else None
    if named is not None:
        found = _page_of_few(rows.filter(named), before=before, after=after)
        return replace(found, is_exact=True)
    if wanted.text:
        return _search(wanted, before=before, after=after)
    few = _few_about(wanted.noun) if wanted.noun else None
    if few is not None:
        return _page_of_few(rows.filter(event__in=few), before=before, after=after)
    return _page(rows, before=before, after=after)


def _page(rows: QuerySet[AuditSeal], *, before: int | None, after: int | None) -> AuditPage:
    if after is not None:
        found = _read(rows.filter(position__gt=after).order_by("position"))
        page, has_newer = found[:AUDIT_PAGE][::-1], len(found) > AUDIT_PAGE
        has_older = bool(page) and _has_any(rows, position__lt=page[-1].position)
    else:
        older = rows.filter(position__lt=before) if before is not None else rows
        found = _read(older.order_by("-position"))
        page, has_older = found[:AUDIT_PAGE], len(found) > AUDIT_PAGE
        has_newer = bool(page) and _has_any(rows, position__gt=page[0].position)
    if not page:
        return AuditPage([], None, None)
    return AuditPage(
        page, page[-1].position if has_older else None, page[0].position if has_newer else None
    )


def _has_any(rows: QuerySet[AuditSeal], **where: int) -> bool:
    """Whether there is such a row. Asked for in order: so that the index of positions is walked."""
    order = "position" if "position__gt" in where else "-position"
    return bool(rows.filter(**where).order_by(order).values_list("position")[:1])


def _page_of_few(rows: QuerySet[AuditSeal], *, before: int | None, after: int | None) -> AuditPage:
    """Page over rows that are read by name, all of them: they stand far apart in the trail.

    In one ordered and limited statement PostgreSQL would walk the trail to them.
    """
    known = sorted(rows.order_by().values_list("position", flat=True), reverse=True)
    if after is not None:
        chosen = [one for one in known if one > after][-AUDIT_PAGE:]
    else:
        chosen = [one for one in known if before is None or one < before][:AUDIT_PAGE]
    if not chosen:
        return AuditPage([], None, None)
    return AuditPage(
        _read_at(chosen),
        chosen[-1] if known[-1] < chosen[-1] else None,
        chosen[0] if known[0] > chosen[0] else None,
    )


def _search(wanted: AuditFilter, *, before: int | None, after: int | None) -> AuditPage:
    """Search a stretch of the trail; where it ends without a full page, say so."""
    newest = newest_position()
    if after is not None:
        high = min(after + SEARCHED, newest)
        found = _hits(wanted, after, high).order_by("seal__position")[: AUDIT_PAGE + 1]
        hits = list(found)
        is_full = len(hits) > AUDIT_PAGE
        newer = hits[AUDIT_PAGE - 1] if is_full else high if high < newest else None
        return AuditPage(_read_at(hits[:AUDIT_PAGE]), after + 1 if after > 0 else None, newer)
    high = min(before - 1, newest) if before is not None else newest
    low = max(high - SEARCHED, 0)
    hits = list(_hits(wanted, low, high).order_by("-seal__position")[: AUDIT_PAGE + 1])
    newer = high if high < newest else None
    if len(hits) > AUDIT_PAGE:
        return AuditPage(_read_at(hits[:AUDIT_PAGE]), hits[AUDIT_PAGE - 1], newer)
    paused = low + 1 if low > 0 else None
    return AuditPage(_read_at(hits), paused, newer, searched_to=paused)


def _hits(wanted: AuditFilter, low: int, high: int) -> QuerySet[AuditEvent, int]:
    """The positions after `low`, up to `high`, whose events say the text.

    The stretch is told by the events' ids as well: else PostgreSQL reads them all.
    """
    stretch = {"position__gt": low, "position__lte": high}
    # Of a bare column PostgreSQL takes the least by walking its index from one end of the trail.
    event = F("event_id") + 0
    ends = AuditSeal.objects.filter(**stretch).aggregate(first=Min(event), last=Max(event))
    events = AuditEvent.objects.filter(
        _where(wanted, ""),
        _says(wanted.text),
        pk__gte=ends["first"] or 0,
        pk__lte=ends["last"] or 0,
    )
    return events.filter(**{f"seal__{name}": value for name, value in stretch.items()}).values_list(
        "seal__position", flat=True
    )


def _read_at(positions: Sequence[int]) -> list[AuditSeal]:
    return _read(AuditSeal.objects.filter(position__in=positions).order_by("-position"))


def _read(rows: QuerySet[AuditSeal]) -> list[AuditSeal]:
    """Read a page and one row more, which tells whether there is another."""
    related = rows.select_related("event__project", "event__task__root").defer(*UNREAD_OF_EVENTS)
    found = list(related[: AUDIT_PAGE + 1])
    for seal in found:
        if seal.event.task is not None and seal.event.project is not None:
            seal.event.task.project = seal.event.project
    return found


def _where(wanted: AuditFilter, event: str) -> Q:
    """Match what the trail is narrowed to but for its text. `event` leads to the event."""
    found = Q()
    if wanted.project:
        found &= Q(**{f"{event}project__slug": wanted.project})
    if wanted.noun:
        found &= Q(**{f"{event}kind__startswith": f"{wanted.noun}."})
    if wanted.actor:
        found &= Q(**{f"{event}actor": wanted.actor})
    if wanted.on is not None:
        zone = timezone.get_current_timezone()
        start = datetime.combine(wanted.on, time.min, tzinfo=zone)
        found &= Q(**{f"{event}at__gte": start, f"{event}at__lt": start + timedelta(days=1)})
    return found


def _few_about(noun: str) -> list[int] | None:
    """The events about a noun; None where there are many, which every stretch of the trail has."""
    kinds = AuditEvent.objects.filter(kind__startswith=f"{noun}.").order_by()
    few = list(kinds.values_list("pk", flat=True)[: FEW + 1])
    return few if len(few) <= FEW else None


def _key(text: str) -> tuple[str, int] | None:
    """Take `SHOP-2`, `#77` or `77` apart; None for any other text."""
    prefix, _, number = text.strip().lstrip("#").rpartition("-")
    return (prefix, int(number)) if number.isdigit() and len(number) < 10 else None


def _tasks_named(prefix: str, number: int) -> list[int]:
    tasks = Task.objects.filter(project__key_prefix__iexact=prefix, number=number)
    return list(tasks.values_list("pk", flat=True))


def _named(text: str) -> Q | None:
    """Match the events of the task or the position that a text names; None where it names none."""
    key = _key(text)
    if key is None:
        return None
    prefix, number = key
    if not prefix:
        at = AuditSeal.objects.filter(position=number)
        return Q(position=number) if at.exists() else None
    events = AuditEvent.objects.filter(task__in=_tasks_named(prefix, number)).order_by()
    few = list(events.values_list("pk", flat=True)[: FEW + 1])
    return Q(event__in=few) if 0 < len(few) <= FEW else None


def _says(text: str) -> Q:
    """Match an event by kind, reason, subject, request id, or the key of its task."""
    found = Q(kind__icontains=text) | Q(why__icontains=text) | Q(subject=text) | Q(request_id=text)
    key = _key(text)
    if key is not None and key[0]:
        found |= Q(task__in=_tasks_named(*key))
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
