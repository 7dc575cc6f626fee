"""Reads of what people are told: the list in the page, how much of it is unread, the channels.

Source: DESIGN section 9; UI.md section 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import User
from django.db.models import Count, Exists, F, IntegerField, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from orchestration.contracts.notices import ASKING, DeliveryResult, NoticeEvent
from orchestration.models import (
    Decision,
    DecisionView,
    Delivery,
    Notice,
    NoticeRead,
    NotificationChannel,
)
from orchestration.states import DecisionStatus

PAGE = 50
NEWS_DAYS = timedelta(days=14)
RELATED = ("decision__project", "decision__task__root", "decision__decided_by")


@dataclass(frozen=True, slots=True)
class NoticeItem:
    """One line of the list, and whether this reader has read it."""

    notice: Notice
    is_unread: bool


def _unread_asking(user_id: int) -> QuerySet[Notice]:
    """Notices of open items that this reader neither read nor answered by looking at the item."""
    seen = DecisionView.objects.filter(
        decision=OuterRef("decision"), user=user_id, seen_at__gte=OuterRef("created_at")
    )
    read = NoticeRead.objects.filter(notice=OuterRef("pk"), user=user_id)
    return Notice.objects.filter(
        ~Exists(seen),
        ~Exists(read),
        decision__status=DecisionStatus.OPEN.value,
        event__in=[event.value for event in ASKING],
    )


def _unread_news(user_id: int) -> QuerySet[Notice]:
    """What policies decided of late and this reader has not read."""
    read = NoticeRead.objects.filter(notice=OuterRef("pk"), user=user_id)
    since = timezone.now() - NEWS_DAYS
    return Notice.objects.filter(
        ~Exists(read), event=NoticeEvent.EXPIRED.value, created_at__gt=since
    )


def _counted(rows: QuerySet[Notice] | QuerySet[Decision]) -> Coalesce:
    """The number of rows as one value of a larger query."""
    counted = rows.order_by().annotate(one=F("id") * 0).values("one").annotate(n=Count("pk"))
    return Coalesce(Subquery(counted.values("n"), output_field=IntegerField()), 0)


def count_for(user_id: int) -> tuple[int, int]:
    """How many items are open, and how many notices this reader has not read. One query."""
    found = (
        User.objects.filter(pk=user_id)
        .values_list(
            _counted(Decision.objects.filter(status=DecisionStatus.OPEN.value)),
            _counted(_unread_asking(user_id)),
            _counted(_unread_news(user_id)),
        )
        .first()
    )
    waiting, asking, news = found or (0, 0, 0)
    return waiting, asking + news


def list_notices(user_id: int, *, before: int | None = None) -> tuple[list[NoticeItem], int | None]:
    """List what happened, newest first, and the cursor of the next page, if there is one."""
    rows = Notice.objects.select_related(*RELATED).order_by("-pk")
    if before is not None:
        rows = rows.filter(pk__lt=before)
    found = list(rows[: PAGE + 1])
    shown = found[:PAGE]
    ids = [row.pk for row in shown]
    unread = set(_unread_asking(user_id).filter(pk__in=ids).values_list("pk", flat=True))
    unread |= set(_unread_news(user_id).filter(pk__in=ids).values_list("pk", flat=True))
    items = [NoticeItem(row, row.pk in unread) for row in shown]
    return items, (shown[-1].pk if len(found) > PAGE else None)


def unread_ids(user_id: int, *, until: int) -> list[int]:
    """Ids of the unread notices up to one that was shown."""
    rows = [_unread_asking(user_id), _unread_news(user_id)]
    return [pk for one in rows for pk in one.filter(pk__lte=until).values_list("pk", flat=True)]


def urgent_unseen(user_id: int) -> list[Decision]:
    """Open P0 items that this reader has not looked at, for the browser's own notifications."""
    seen = DecisionView.objects.filter(decision=OuterRef("pk"), user=user_id, seen_at__isnull=False)
    rows = Decision.objects.filter(~Exists(seen), status=DecisionStatus.OPEN.value, is_p0=True)
    return list(rows.select_related("project").order_by("-pk")[:5])


def list_channels() -> Sequence[NotificationChannel]:
    """Every channel that was not removed, with its project."""
    rows = NotificationChannel.objects.filter(removed_at__isnull=True)
    return list(rows.select_related("project", "user").order_by("pk"))


def recent_deliveries(limit: int = 20) -> Sequence[Delivery]:
    """What was sent, failed or is being tried, newest first. What was not needed is left out."""
    rows = Delivery.objects.filter(
        Q(result__in=[DeliveryResult.SENT.value, DeliveryResult.FAILED.value])
        | Q(result=DeliveryResult.OWED.value, attempts__gt=0)
        | Q(result=DeliveryResult.OWED.value, kind="test")
    )
    related = ("channel", "notice__decision__project")
    return list(rows.select_related(*related).order_by("-pk")[:limit])
