"""Deliver what people are owed to be told: spread notices over the channels, claim, send, settle.

The rows are the queue: a claim is one conditional update with an end, so of two workers one sends,
and a worker that dies between claim and send leaves a message that is sent later, under the same
id. The job may run twice, late or never.
Source: DESIGN sections 3, 9 and 16.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import uuid4

from django.db.models import F, Q, QuerySet
from django.utils import timezone

from orchestration.access import HumanRole
from orchestration.contracts.notices import (
    ASKING,
    DeliveryKind,
    DeliveryResult,
    NoticeEvent,
)
from orchestration.models import Decision, DecisionView, Delivery, Notice, NotificationChannel
from orchestration.selectors.digests import is_digest_empty
from orchestration.services.reminding import owe_digests, remind
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.sending import Sent, try_once
from orchestration.services.work import SYSTEM, Work, locked, unit_of_work
from orchestration.states import DecisionStatus, ProjectStatus

BATCH = 200
SLICE_SECONDS = 30.0
CLAIM_SECONDS = 180
"""Longer than any try takes, so that nobody takes over from a sender that lives."""
ATTEMPTS = 8
FIRST_RETRY_SECONDS = 10
RETRY_GROWTH = 4
LONGEST_RETRY_SECONDS = 6 * 3600
WAIT_FOR_OPENING = timedelta(seconds=20)
ASKING_EVENTS = tuple(event.value for event in ASKING)

_delivering = threading.Lock()


def deliver_notices(*, slice_seconds: float = SLICE_SECONDS) -> int:
    """Remind, spread and send what is due. Return how many deliveries were tried.

    One thread a process does it: a slow receiver must not hold more than one.
    """
    if not _delivering.acquire(blocking=False):
        return 0
    try:
        remind()
        spread_notices()
        owe_digests()
        return send_due(slice_seconds=slice_seconds)
    finally:
        _delivering.release()


# --- Spreading ------------------------------------------------------------------------------------


@retry_on_deadlock
def spread_notices() -> int:
    """Write the deliveries of new notices, once each. Return how many notices were spread."""
    owed = Notice.objects.filter(spread_at__isnull=True).order_by("pk")
    if not owed.exists():
        return 0
    with unit_of_work(SYSTEM) as work:
        rows = list(locked(owed.select_related("decision__project"), skip=True)[:BATCH])
        channels = list(NotificationChannel.objects.filter(is_enabled=True))
        told = _already_told(rows) if channels else set()
        deliveries = [
            _delivery(work, notice, channel)
            for notice in rows
            for channel in channels
            if _concerns(notice, channel, told)
        ]
        Delivery.objects.bulk_create(deliveries, ignore_conflicts=True)
        Notice.objects.filter(pk__in=[row.pk for row in rows]).update(spread_at=work.now)
    return len(rows)


def _already_told(notices: Sequence[Notice]) -> set[tuple[int, int]]:
    """Items and the channels that told of them, or are about to."""
    ended = [row.decision_id for row in notices if NoticeEvent(row.event) not in ASKING]
    rows = Delivery.objects.filter(
        notice__decision__in=ended,
        notice__event__in=ASKING_EVENTS,
        result__in=[DeliveryResult.OWED.value, DeliveryResult.SENT.value],
    )
    return set(rows.values_list("notice__decision_id", "channel_id"))


def _concerns(notice: Notice, channel: NotificationChannel, told: set[tuple[int, int]]) -> bool:
    decision = notice.decision
    if channel.project_id not in (None, decision.project_id):
        return False
    if NoticeEvent(notice.event) not in ASKING:
        return (decision.pk, channel.pk) in told
    is_new = notice.created_at >= channel.created_at
    return is_new and (decision.is_p0 or not channel.is_p0_only)


def _delivery(work: Work, notice: Notice, channel: NotificationChannel) -> Delivery:
    policy = notice.decision.project.policy.notifications
    delay = timedelta()
    if notice.event == NoticeEvent.OPENED:
        is_p0 = notice.decision.is_p0
        delay = timedelta(seconds=policy.p0_delay_seconds if is_p0 else policy.delay_seconds)
    return Delivery(
        channel=channel,
        kind=DeliveryKind.NOTICE.value,
        notice=notice,
        key=f"notice:{notice.pk}:{channel.pk}",
        message_id=new_message_id(),
        due_at=notice.created_at + delay,
        created_at=work.now,
    )


def new_message_id() -> str:
    """Make the id under which every try of one message goes out."""
    return f"msg_{uuid4().hex}"


# --- Sending --------------------------------------------------------------------------------------


def due_deliveries(now: datetime) -> QuerySet[Delivery]:
    """What is due and that nobody sends at the moment: P0 first, then the oldest."""
    free = Q(claimed_until__isnull=True) | Q(claimed_until__lte=now)
    rows = Delivery.objects.filter(
        free, result=DeliveryResult.OWED.value, due_at__lte=now, channel__is_enabled=True
    )
    return rows.order_by(F("notice__decision__is_p0").desc(nulls_last=True), "due_at", "pk")


def send_due(*, slice_seconds: float = SLICE_SECONDS) -> int:
    """Send what is due, one after the other. Return how many were tried.

    A channel that fails waits for its retry; what else is owed over it is left for another time.
    """
    ends = time.monotonic() + slice_seconds
    tried, failing, is_more = 0, set[int](), True
    while is_more and time.monotonic() < ends:
        due = due_deliveries(timezone.now()).exclude(channel__in=failing)
        found = list(due.values_list("pk", "channel_id")[:BATCH])
        tried += _send_each(found, failing, ends=ends)
        is_more = len(found) == BATCH
    return tried


def _send_each(found: Sequence[tuple[int, int]], failing: set[int], *, ends: float) -> int:
    """Send these until the slice ends; add the channels that fail. Return how many were tried."""
    tried = 0
    for pk, channel_id in found:
        if time.monotonic() >= ends:
            break
        if channel_id in failing:
            continue
        token = claim_delivery(pk)
        if token is None:
            continue
        sent = _deliver(pk, token)
        tried += sent is not None
        if sent is not None and not sent.is_ok:
            failing.add(channel_id)
    return tried


def claim_delivery(delivery_id: int) -> str | None:
    """Take a due delivery for this worker. Return the token of the claim, None when it is taken.

    One conditional update, so that of two workers exactly one gets it; no lock is held.
    """
    now, token = timezone.now(), uuid4().hex
    count = (
        due_deliveries(now)
        .order_by()
        .filter(pk=delivery_id)
        .update(
            claim=token,
            claimed_until=now + timedelta(seconds=CLAIM_SECONDS),
            attempts=F("attempts") + 1,
        )
    )
    return token if count == 1 else None


def _deliver(delivery_id: int, token: str) -> Sent | None:
    """Send a claimed delivery, if it is still wanted. Return how it went, None when not sent."""
    delivery = Delivery.objects.select_related(
        "channel__project",
        "notice__decision__project",
        "notice__decision__task__root",
        "notice__decision__decided_by",
    ).get(pk=delivery_id)
    unwanted = why_unwanted(delivery)
    if unwanted is not None:
        _close(delivery, token, DeliveryResult.DROPPED, unwanted)
        return None
    if _must_wait(delivery):
        _put_off(delivery, token, timezone.now() + WAIT_FOR_OPENING, is_try=False)
        return None
    sent = try_once(delivery)
    _settle(delivery, token, sent)
    return sent


def why_unwanted(delivery: Delivery) -> str | None:
    """Why a delivery is not sent any more, asked at the last moment; None when it is."""
    if delivery.kind == DeliveryKind.DIGEST:
        empty = is_digest_empty(project_id=delivery.channel.project_id, until=delivery.created_at)
        return "nothing to tell" if empty else None
    if delivery.notice is None:
        return None
    event, decision = NoticeEvent(delivery.notice.event), delivery.notice.decision
    if event not in ASKING:
        is_told = _told_already(delivery).exists() or _being_told(delivery).exists()
        return None if is_told else "nothing was told before"
    if decision.status != DecisionStatus.OPEN:
        return f"the item was {decision.status} before"
    if decision.project.status == ProjectStatus.ARCHIVED:
        return "the project is archived"
    if event == NoticeEvent.OPENED and is_seen_by_sir(decision):
        return "Sir has seen the item"
    return None


def is_seen_by_sir(decision: Decision) -> bool:
    """Whether somebody who decides has looked at the item."""
    return DecisionView.objects.filter(
        decision=decision, seen_at__isnull=False, user__groups__name=HumanRole.SIR.value
    ).exists()


def _siblings(delivery: Delivery) -> QuerySet[Delivery]:
    """What asked for a verdict on the same item over the same channel."""
    return Delivery.objects.filter(
        channel_id=delivery.channel_id,
        notice__decision__notices=delivery.notice_id,
        notice__event__in=ASKING_EVENTS,
    )


def _told_already(delivery: Delivery) -> QuerySet[Delivery]:
    return _siblings(delivery).filter(result=DeliveryResult.SENT.value)


def _being_told(delivery: Delivery) -> QuerySet[Delivery]:
    """What asks for a verdict on the same item and is on its way at this moment."""
    return _siblings(delivery).filter(
        result=DeliveryResult.OWED.value, claimed_until__gt=timezone.now()
    )


def _must_wait(delivery: Delivery) -> bool:
    """Whether an outcome must wait: what it answers is on its way and may arrive or fail yet."""
    if delivery.notice is None or NoticeEvent(delivery.notice.event) in ASKING:
        return False
    return not _told_already(delivery).exists()


# --- Settling -------------------------------------------------------------------------------------


def retry_seconds(attempts: int) -> float:
    """How long to wait after so many failed tries: growing, with jitter, at most hours."""
    grown: float = min(FIRST_RETRY_SECONDS * RETRY_GROWTH ** (attempts - 1), LONGEST_RETRY_SECONDS)
    return grown * random.uniform(0.75, 1.25)  # noqa: S311  # jitter


def _settle(delivery: Delivery, token: str, sent: Sent) -> None:
    if sent.is_ok:
        _close(delivery, token, DeliveryResult.SENT, "")
    elif sent.is_gone or delivery.attempts >= ATTEMPTS:
        _close(delivery, token, DeliveryResult.FAILED, sent.problem, is_gone=sent.is_gone)
    else:
        later = timezone.now() + timedelta(seconds=retry_seconds(delivery.attempts))
        _put_off(delivery, token, later, problem=sent.problem)


def _put_off(
    delivery: Delivery, token: str, due_at: datetime, *, problem: str = "", is_try: bool = True
) -> None:
    """Give a claim back with a later time. What was not tried does not count as a try."""
    rows = Delivery.objects.filter(pk=delivery.pk, claim=token, result=DeliveryResult.OWED.value)
    rows.update(
        due_at=due_at,
        claimed_until=None,
        claim="",
        error=problem[:300],
        attempts=delivery.attempts if is_try else delivery.attempts - 1,
    )


@retry_on_deadlock
def _close(
    delivery: Delivery,
    token: str,
    result: DeliveryResult,
    problem: str,
    *,
    is_gone: bool = False,
) -> None:
    """Write what became of a delivery, if it is still ours to say."""
    with unit_of_work(SYSTEM) as work:
        rows = Delivery.objects.filter(
            pk=delivery.pk, claim=token, result=DeliveryResult.OWED.value
        )
        count = rows.update(
            result=result.value, error=problem[:300], closed_at=work.now, claimed_until=None
        )
        if not count or result == DeliveryResult.DROPPED:
            return
        _record(work, delivery, result, problem)
        if is_gone:
            close_channel(work, delivery.channel, why=problem)
        if result == DeliveryResult.FAILED:
            work.hint("inbox", None)


def _record(work: Work, delivery: Delivery, result: DeliveryResult, problem: str) -> None:
    decision = delivery.notice.decision if delivery.notice is not None else None
    work.record(
        f"notification.{result}",
        subject=f"channel:{delivery.channel_id}",
        project_id=decision.project_id if decision is not None else delivery.channel.project_id,
        task_id=decision.task_id if decision is not None else None,
        after={
            "kind": delivery.kind,
            "event": delivery.notice.event if delivery.notice is not None else None,
            "decision": str(decision.pk) if decision is not None else None,
            "message_id": delivery.message_id,
            "attempts": delivery.attempts,
        },
        why=problem,
    )


def close_channel(work: Work, channel: NotificationChannel, *, why: str) -> None:
    """Stop a channel whose receiver wants nothing more; what is still owed over it is dropped."""
    NotificationChannel.objects.filter(pk=channel.pk).update(
        is_enabled=False, disabled_reason=why[:200]
    )
    drop_owed(work, channel, why="the channel is off")
    work.record(
        "channel.disabled",
        subject=f"channel:{channel.pk}",
        project_id=channel.project_id,
        after={"name": channel.name, "kind": channel.kind},
        why=why,
    )


def drop_owed(work: Work, channel: NotificationChannel, *, why: str) -> None:
    """Drop what is still owed over a channel."""
    Delivery.objects.filter(channel=channel, result=DeliveryResult.OWED.value).update(
        result=DeliveryResult.DROPPED.value, closed_at=work.now, error=why[:300]
    )
