"""Reads for the day's digest: what waits, what policies decided, what failed.

Shape: at most LISTED rows a part; the number of queries is constant.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext

from orchestration.contracts.notices import DeliveryResult
from orchestration.models import Decision, Delivery, Task
from orchestration.notice_words import KINDS, Digest, DigestLine
from orchestration.states import DecisionStatus, ProjectStatus, TaskStatus

LISTED = 30
DAY = timedelta(days=1)


def _waiting(project_id: int | None) -> QuerySet[Decision]:
    rows = Decision.objects.filter(status=DecisionStatus.OPEN.value)
    return rows.filter(project=project_id) if project_id is not None else rows


def _by_policy(project_id: int | None, until: datetime) -> QuerySet[Decision]:
    rows = Decision.objects.filter(decided_at__gt=until - DAY, decided_at__lte=until).exclude(
        decided_by_policy=""
    )
    return rows.filter(project=project_id) if project_id is not None else rows


def _failed_tasks(project_id: int | None) -> QuerySet[Task]:
    """Roots that stand failed."""
    rows = Task.objects.filter(
        parent__isnull=True, status__in=[TaskStatus.FAILED.value, TaskStatus.FATAL.value]
    ).exclude(project__status=ProjectStatus.ARCHIVED.value)
    return rows.filter(project=project_id) if project_id is not None else rows


def _failed_deliveries(until: datetime) -> QuerySet[Delivery]:
    return Delivery.objects.filter(
        result=DeliveryResult.FAILED.value, closed_at__gt=until - DAY, closed_at__lte=until
    )


def is_digest_empty(*, project_id: int | None, until: datetime) -> bool:
    """Whether a day has nothing to tell."""
    return not (
        _waiting(project_id).exists()
        or _by_policy(project_id, until).exists()
        or _failed_tasks(project_id).exists()
        or _failed_deliveries(until).exists()
    )


def read_digest(
    *, project_id: int | None, until: datetime, url_of: Callable[[int], str], url: str
) -> Digest:
    """Read the day that ends at `until`, in the language and time zone that are active.

    Shape: `url_of` gives the address of an item.
    """
    waiting = _waiting(project_id).select_related("project", "task__root").order_by("created_at")
    settled = _by_policy(project_id, until).select_related("project", "task__root")
    tasks = _failed_tasks(project_id).select_related("project").order_by("pk")
    lost = _failed_deliveries(until).select_related("channel").order_by("closed_at")
    failures = [
        DigestLine(
            f"{row.project.name} {row.project.key_prefix}-{row.number}", row.title, row.last_outcome
        )
        for row in tasks[:LISTED]
    ]
    failures += [
        DigestLine(gettext("Notifications"), row.channel.name, row.error) for row in lost[:LISTED]
    ]
    return Digest(
        day=date_format(timezone.localtime(until), "Y-m-d"),
        waiting=[_decision_line(row, url_of, _since(row)) for row in waiting[:LISTED]],
        waiting_count=waiting.count(),
        by_policy=[
            _decision_line(row, url_of, f"{row.decided_by_policy}: {row.verdict}")
            for row in settled.order_by("decided_at")[:LISTED]
        ],
        failures=failures,
        url=url,
    )


def _since(row: Decision) -> str:
    since = date_format(timezone.localtime(row.created_at), "Y-m-d H:i")
    told = gettext("%(kind)s, since %(time)s") % {"kind": KINDS[row.kind], "time": since}
    return f"P0, {told}" if row.is_p0 else told


def _decision_line(row: Decision, url_of: Callable[[int], str], note: str) -> DigestLine:
    place = row.project.name
    if row.task is not None:
        root = row.task.root if row.task.root is not None else row.task
        place = f"{place} {row.project.key_prefix}-{root.number}"
    return DigestLine(place, row.title, note, url_of(row.pk))
