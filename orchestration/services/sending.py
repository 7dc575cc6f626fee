"""Say one delivery over its channel: what is written, in whose language, and how it went.

No transaction is open while this runs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.urls import reverse
from django.utils import timezone, translation

from orchestration.contracts.notices import (
    ASKING,
    ChannelKind,
    DeliveryKind,
    DeliveryResult,
    NoticeEvent,
)
from orchestration.models import Decision, Delivery, Notice, NotificationChannel
from orchestration.notice_words import (
    Message,
    Told,
    digest_message,
    notice_message,
    plain_line,
    quiet_line,
    test_message,
)
from orchestration.outbound.addresses import AddressRefused, Reach, parse_target
from orchestration.outbound.mailing import MailFailed, send_mail
from orchestration.outbound.posting import PostFailed, post
from orchestration.outbound.sealing import SealBroken, open_sealed
from orchestration.outbound.services import ServiceFailed, send_to_service
from orchestration.outbound.signing import signed_headers
from orchestration.selectors.digests import read_digest
from orchestration.words import verdict_text

GONE = 410
UNREADABLE = "its address or secret cannot be read: SECRET_KEY was changed; enter them anew"


@dataclass(frozen=True, slots=True)
class Sent:
    """How one try went. `is_gone` means that the receiver wants nothing more, ever."""

    is_ok: bool
    problem: str = ""
    is_gone: bool = False


def allowed_reach() -> Reach:
    """What the operator allows beside public addresses over TLS."""
    return Reach(
        private=settings.COUNTERSIGN_NOTIFY_PRIVATE, plain_http=settings.COUNTERSIGN_NOTIFY_HTTP
    )


def decision_url(decision_id: int) -> str:
    """The address of an item's card. Opening it decides nothing."""
    return settings.COUNTERSIGN_URL + reverse("dashboard:decision", args=[decision_id])


def try_once(delivery: Delivery) -> Sent:
    """Send a delivery once. Whatever goes wrong is told in words that hold no secret."""
    channel = delivery.channel
    try:
        if channel.kind == ChannelKind.WEBHOOK:
            return _post_webhook(delivery, channel)
        message = write_message(delivery)
        if channel.kind == ChannelKind.EMAIL:
            thread = _thread_of(delivery)
            # Programs that thread mail want the same words in the subject too.
            topic = message.topic or message.subject
            send_mail(
                open_sealed(channel.address),
                subject=f"Re: {topic}" if thread else topic,
                text=message.text,
                message_id=delivery.message_id,
                thread=thread,
            )
        else:
            send_to_service(
                open_sealed(channel.address),
                title=message.subject,
                text=message.text,
                reach=allowed_reach(),
            )
    except SealBroken:
        return Sent(is_ok=False, problem=UNREADABLE)
    except (MailFailed, ServiceFailed, PostFailed, AddressRefused) as error:
        return Sent(is_ok=False, problem=str(error))
    return Sent(is_ok=True)


MAX_THREAD = 20


def _thread_of(delivery: Delivery) -> list[str]:
    """The ids under which the same item was told over this channel before, the opening first."""
    if delivery.notice is None:
        return []
    rows = Delivery.objects.filter(
        channel=delivery.channel_id,
        notice__decision=delivery.notice.decision_id,
        result=DeliveryResult.SENT.value,
    )
    ids = rows.exclude(pk=delivery.pk).order_by("closed_at", "pk")
    return list(ids.values_list("message_id", flat=True)[:MAX_THREAD])


def write_message(delivery: Delivery) -> Message:
    """Write what a person reads, in the language and time zone of the channel."""
    channel = delivery.channel
    line = plain_line if channel.kind == ChannelKind.EMAIL else quiet_line
    with translation.override(channel.language), timezone.override(zone_of(channel)):
        if delivery.kind == DeliveryKind.TEST:
            return test_message(channel.name, settings.COUNTERSIGN_URL)
        if delivery.kind == DeliveryKind.DIGEST:
            digest = read_digest(
                project_id=channel.project_id,
                until=delivery.created_at,
                url_of=decision_url,
                url=settings.COUNTERSIGN_URL + reverse("dashboard:inbox"),
            )
            return digest_message(digest, line)
        return notice_message(told_of(_notice_of(delivery)), line)


def _notice_of(delivery: Delivery) -> Notice:
    if delivery.notice is None:
        raise ValueError(f"delivery {delivery.pk} tells of nothing")
    return delivery.notice


def zone_of(channel: NotificationChannel) -> ZoneInfo:
    """The time zone of a channel: its own, else its project's."""
    if channel.time_zone:
        return ZoneInfo(channel.time_zone)
    if channel.project is not None:
        return ZoneInfo(channel.project.policy.notifications.time_zone)
    return ZoneInfo("UTC")


def told_of(notice: Notice) -> Told:
    """Gather the facts of a notice, as the item stands now."""
    decision = notice.decision
    rule = decision.on_expiry or {}
    is_over = NoticeEvent(notice.event) not in ASKING
    return Told(
        kind=decision.kind,
        event=notice.event,
        is_p0=decision.is_p0,
        project=decision.project.name,
        key=key_of(decision),
        title=decision.title,
        url=decision_url(decision.pk),
        created_at=timezone.localtime(decision.created_at),
        deadline=timezone.localtime(decision.deadline) if decision.deadline else None,
        policy_id=str(rule.get("policy_id", "")),
        outcome=str(rule.get("outcome", "")),
        verdict=verdict_words(decision) if is_over else "",
        decided_by=decider_of(decision) if is_over else "",
    )


def key_of(decision: Decision) -> str:
    """The readable key of the decision's root task; empty where it is about none."""
    task = decision.task
    if task is None:
        return ""
    root = task.root if task.root_id is not None and task.root is not None else task
    return f"{decision.project.key_prefix}-{root.number}"


def verdict_words(decision: Decision) -> str:
    """The verdict as the card's button says it."""
    for option in decision.options:
        if option["verdict"] == decision.verdict:
            label: dict[str, Any] = option["label"]
            return verdict_text(label["code"], label["params"])
    return decision.verdict


def decider_of(decision: Decision) -> str:
    """Who gave the verdict: a person or a named policy."""
    if decision.decided_by is not None:
        return decision.decided_by.get_username()
    return decision.decided_by_policy


def _post_webhook(delivery: Delivery, channel: NotificationChannel) -> Sent:
    reach = allowed_reach()
    target = parse_target(open_sealed(channel.address), reach)
    now = timezone.now()
    body = json.dumps(webhook_body(delivery, now), ensure_ascii=False).encode()
    is_rotating = channel.old_secret_until is not None and channel.old_secret_until > now
    keys = [open_sealed(one) for one in (channel.secret, channel.old_secret if is_rotating else "")]
    headers = signed_headers(
        keys, message_id=delivery.message_id, timestamp=int(now.timestamp()), body=body
    )
    answer = post(target, body=body, headers=headers, reach=reach)
    if 200 <= answer.status < 300:
        return Sent(is_ok=True)
    problem = f"the receiver answered {answer.status}"
    return Sent(is_ok=False, problem=problem, is_gone=answer.status == GONE)


def webhook_body(delivery: Delivery, at: datetime) -> dict[str, Any]:
    """What a webhook carries: codes and addresses. What agents wrote stays in the building."""
    if delivery.notice is None:
        data: dict[str, Any] = {"channel": delivery.channel.name}
        return {"type": "channel.test", "timestamp": at.isoformat(), "data": data}
    notice, decision = delivery.notice, delivery.notice.decision
    rule = decision.on_expiry or {}
    data = {
        "id": str(decision.pk),
        "kind": decision.kind,
        "is_p0": decision.is_p0,
        "status": decision.status,
        "project": decision.project.slug,
        "task": key_of(decision) or None,
        "created_at": decision.created_at.isoformat(),
        "deadline": decision.deadline.isoformat() if decision.deadline else None,
        "on_expiry": {name: rule[name] for name in ("policy_id", "outcome") if name in rule},
        "reminder": notice.round,
        "verdict": decision.verdict or None,
        "decided_by": decider_of(decision) or None,
        "url": decision_url(decision.pk),
    }
    return {"type": f"decision.{notice.event}", "timestamp": at.isoformat(), "data": data}
