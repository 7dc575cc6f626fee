"""Remind Sir of what still waits, and owe each reader the digest of the day.

Found by rows, in bounded batches; a run that comes twice reminds once.
Source: DESIGN section 9.
"""

from __future__ import annotations

from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from django.db.models import Q
from django.utils import timezone

from orchestration.contracts.notices import DeliveryKind
from orchestration.models import Decision, Delivery, NotificationChannel
from orchestration.policy import DEFAULT_POLICY
from orchestration.services.notices import note_waiting
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.work import SYSTEM, locked, unit_of_work
from orchestration.states import DecisionStatus, ProjectStatus

BATCH = 200


def remind() -> int:
    """Remind Sir of open items whose time has come. Return of how many.

    A suspended project's items are among them: what stopped it often waits for Sir.
    """
    due = Decision.objects.filter(
        status=DecisionStatus.OPEN.value, remind_at__lte=timezone.now()
    ).exclude(project__status=ProjectStatus.ARCHIVED.value)
    ids = list(due.order_by("remind_at").values_list("pk", flat=True)[:BATCH])
    return sum(_remind(pk) for pk in ids)


@retry_on_deadlock
def _remind(decision_id: int) -> bool:
    """Remind of one item, asked again under its lock. Locks: the decision, the last in order."""
    with unit_of_work(SYSTEM) as work:
        rows = Decision.objects.select_related("project").filter(
            pk=decision_id, status=DecisionStatus.OPEN.value, remind_at__lte=work.now
        )
        decision = locked(rows).first()
        if decision is None:
            return False
        event = note_waiting(work, decision, decision.project)
        work.record(
            "decision.reminded",
            subject=f"decision:{decision.pk}",
            project_id=decision.project_id,
            task_id=decision.task_id,
            after={"event": event.value, "number": decision.reminded},
        )
        work.hint("inbox", None)
        work.hint(f"decision:{decision.pk}", None, decision.version)
    return True


def owe_digests() -> int:
    """Owe each reader's digest once its time of day has come. Return how many are owed now.

    One that was missed while nothing ran goes out the same day; a day that is over is skipped.
    """
    now = timezone.now()
    rows = NotificationChannel.objects.select_related("project").filter(
        Q(digested_on__isnull=True) | Q(digested_on__lt=now.date() + timedelta(days=1)),
        is_enabled=True,
        has_digest=True,
    )
    return sum(_owe_digest(row, now) for row in rows if is_digest_due(row, now))


def digest_clock(channel: NotificationChannel) -> tuple[ZoneInfo, time]:
    """Time zone and time of day of a digest: the reader's own, else the project's policy's."""
    policy = channel.project.policy if channel.project is not None else DEFAULT_POLICY
    zone = channel.time_zone or policy.notifications.time_zone
    at = channel.digest_at or time.fromisoformat(policy.notifications.digest_at)
    return ZoneInfo(zone), at


def is_digest_due(channel: NotificationChannel, now: datetime) -> bool:
    """Whether the digest of the reader's day is due and not owed yet."""
    zone, at = digest_clock(channel)
    local = now.astimezone(zone)
    is_new = channel.digested_on is None or channel.digested_on < local.date()
    return is_new and local.time() >= at


@retry_on_deadlock
def _owe_digest(channel: NotificationChannel, now: datetime) -> bool:
    zone, _ = digest_clock(channel)
    day = now.astimezone(zone).date()
    key = f"digest:{channel.pk}:{day.isoformat()}"
    with unit_of_work(SYSTEM):
        Delivery.objects.bulk_create(
            [
                Delivery(
                    channel=channel,
                    kind=DeliveryKind.DIGEST.value,
                    key=key,
                    message_id=f"digest_{channel.pk}_{day.isoformat()}",
                    due_at=now,
                    created_at=now,
                )
            ],
            ignore_conflicts=True,
        )
        NotificationChannel.objects.filter(pk=channel.pk).update(digested_on=day)
    return True
