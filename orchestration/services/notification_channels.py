"""Set up the ways out of the building. What is secret is shown once, if at all, and never recorded.

Source: DESIGN section 16.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import time, timedelta
from urllib.parse import urlsplit
from uuid import uuid4

from django.conf import settings
from django.utils import timezone

from orchestration.contracts.notices import ChannelKind, DeliveryKind, DeliveryResult
from orchestration.contracts.time_zones import is_time_zone
from orchestration.errors import Conflict, Invalid, NotFound
from orchestration.models import Delivery, NotificationChannel, Project
from orchestration.outbound.addresses import AddressRefused, parse_target, resolve_allowed
from orchestration.outbound.mailing import hide_address, require_address
from orchestration.outbound.services import read_service
from orchestration.outbound.signing import new_secret
from orchestration.services.deliveries import drop_owed, new_message_id
from orchestration.services.reminding import digest_clock
from orchestration.services.sending import allowed_reach
from orchestration.services.work import Actor, Work, locked, unit_of_work

MAX_CHANNELS = 50
ROTATION = timedelta(hours=24)
"""How long both secrets sign after a rotation."""


@dataclass(frozen=True, slots=True)
class NewChannel:
    """What a person asks for. Shape: `digest_at` and `time_zone` empty mean the policy's."""

    kind: ChannelKind
    name: str
    address: str
    project_id: int | None = None
    is_p0_only: bool = False
    has_digest: bool = False
    digest_at: time | None = None
    time_zone: str = ""
    language: str = "en"


def add_channel(
    new: NewChannel, *, user_id: int | None, actor: Actor
) -> tuple[NotificationChannel, str]:
    """Make a channel; return it with its signing secret, which is shown once (webhooks only).

    Errors: Invalid naming the field for an address that is none or may not be spoken to, an
    unknown time zone or project; Conflict when there are too many.
    """
    hint = _checked_address(new)
    _check_rest(new)
    secret = new_secret() if new.kind is ChannelKind.WEBHOOK else ""
    has_digest = new.has_digest and new.kind is not ChannelKind.WEBHOOK
    with unit_of_work(actor) as work:
        if NotificationChannel.objects.filter(removed_at__isnull=True).count() >= MAX_CHANNELS:
            raise Conflict("there are too many channels; remove one first", code="too_many")
        channel = NotificationChannel(
            kind=new.kind.value,
            name=new.name.strip(),
            project_id=new.project_id,
            user_id=user_id,
            address=new.address.strip(),
            address_hint=hint[:200],
            secret=secret,
            is_p0_only=new.is_p0_only,
            has_digest=has_digest,
            digest_at=new.digest_at,
            time_zone=new.time_zone,
            language=new.language,
            created_at=work.now,
        )
        zone, at = digest_clock(channel)
        local = work.now.astimezone(zone)
        # The first digest comes at the next time of day, not at once for a morning that is over.
        channel.digested_on = local.date() if local.time() >= at else None
        channel.save()
        _record(work, channel, "channel.created")
    return channel, secret


def _checked_address(new: NewChannel) -> str:
    """Check where a channel leads, and name it without its secrets. Errors: Invalid."""
    address, reach = new.address.strip(), allowed_reach()
    try:
        if new.kind is ChannelKind.EMAIL:
            return hide_address(require_address(address))
        if new.kind is ChannelKind.APPRISE:
            return read_service(address, reach)
        target = parse_target(address, reach)
        resolve_allowed(target.host, target.port, reach)
    except AddressRefused as error:
        said = str(error)
        raise Invalid(
            f"the address is refused: {said}",
            code="address_refused",
            errors=[{"path": "address", "message": said}],
        ) from None
    port = urlsplit(address).port
    return f"{target.scheme}://{target.host}{f':{port}' if port else ''}/…"


def _check_rest(new: NewChannel) -> None:
    if not new.name.strip() or len(new.name) > 80 or not new.name.isprintable():
        raise Invalid(
            "the channel needs a name of at most 80 characters",
            errors=[{"path": "name", "message": "is required, at most 80 characters"}],
        )
    if new.time_zone and not is_time_zone(new.time_zone):
        raise Invalid(
            "the time zone is unknown",
            errors=[{"path": "time_zone", "message": "is not the name of a time zone"}],
        )
    if new.language not in dict(settings.LANGUAGES):
        raise Invalid(
            "the language is unknown", errors=[{"path": "language", "message": "is unknown"}]
        )
    if new.project_id is not None and not Project.objects.filter(pk=new.project_id).exists():
        raise Invalid(
            "there is no such project", errors=[{"path": "project", "message": "does not exist"}]
        )


def access_channel(channel_id: int, *, lock: bool = False) -> NotificationChannel:
    """Find a channel that was not removed. Errors: NotFound."""
    rows = NotificationChannel.objects.filter(pk=channel_id, removed_at__isnull=True)
    found: NotificationChannel | None = (locked(rows) if lock else rows).first()
    if found is None:
        raise NotFound("There is no such channel.")
    return found


def switch_channel(channel_id: int, *, is_enabled: bool, actor: Actor) -> NotificationChannel:
    """Turn a channel on or off; what is owed over one that goes off is dropped."""
    with unit_of_work(actor) as work:
        channel = access_channel(channel_id, lock=True)
        if channel.is_enabled == is_enabled:
            return channel
        channel.is_enabled, channel.disabled_reason = is_enabled, ""
        work.touch(channel, "is_enabled", "disabled_reason")
        if not is_enabled:
            drop_owed(work, channel, why="the channel is off")
        _record(work, channel, "channel.enabled" if is_enabled else "channel.disabled")
    return channel


def rotate_secret(channel_id: int, *, actor: Actor) -> tuple[NotificationChannel, str]:
    """Give a webhook a new secret, shown once; for a day both sign.

    Errors: Conflict for a channel that signs nothing.
    """
    with unit_of_work(actor) as work:
        channel = access_channel(channel_id, lock=True)
        if channel.kind != ChannelKind.WEBHOOK:
            raise Conflict("only webhooks sign", code="not_signed")
        channel.old_secret, channel.secret = channel.secret, new_secret()
        channel.old_secret_until = work.now + ROTATION
        work.touch(channel, "secret", "old_secret", "old_secret_until")
        _record(work, channel, "channel.rotated")
    return channel, channel.secret


def remove_channel(channel_id: int, *, actor: Actor) -> None:
    """Remove a channel and its secrets for good; what it sent stays on record."""
    with unit_of_work(actor) as work:
        channel = access_channel(channel_id, lock=True)
        channel.address = channel.secret = channel.old_secret = ""
        channel.is_enabled, channel.removed_at = False, work.now
        work.touch(channel, "address", "secret", "old_secret", "is_enabled", "removed_at")
        drop_owed(work, channel, why="the channel was removed")
        _record(work, channel, "channel.removed")


def send_test(channel_id: int, *, actor: Actor) -> Delivery:
    """Owe a channel a test, sent in the background like anything else.

    Errors: Conflict when the channel is off.
    """
    with unit_of_work(actor) as work:
        channel = access_channel(channel_id, lock=True)
        if not channel.is_enabled:
            raise Conflict("the channel is off", code="channel_off")
        delivery = Delivery.objects.create(
            channel=channel,
            kind=DeliveryKind.TEST.value,
            key=f"test:{channel.pk}:{uuid4().hex}",
            message_id=new_message_id(),
            due_at=work.now,
            created_at=work.now,
        )
        _record(work, channel, "channel.tested")
        work.tells = True
    return delivery


def try_again(delivery_id: int, *, actor: Actor) -> Delivery:
    """Owe a failed delivery once more, under the same message id.

    Errors: NotFound; Conflict when it did not fail or its channel is off.
    """
    with unit_of_work(actor) as work:
        rows = Delivery.objects.select_related("channel").filter(pk=delivery_id)
        delivery: Delivery | None = locked(rows).first()
        if delivery is None:
            raise NotFound("There is no such delivery.")
        if delivery.result != DeliveryResult.FAILED or not delivery.channel.is_enabled:
            raise Conflict("this delivery cannot be tried again", code="not_failed")
        delivery.result, delivery.closed_at = DeliveryResult.OWED.value, None
        delivery.attempts, delivery.claimed_until, delivery.claim = 0, None, ""
        delivery.due_at = timezone.now()
        work.touch(delivery, "result", "closed_at", "attempts", "claimed_until", "claim", "due_at")
        _record(work, delivery.channel, "notification.retried")
        work.tells = True
    return delivery


def _record(work: Work, channel: NotificationChannel, kind: str) -> None:
    """Record what was done to a channel; its address and secrets are left out."""
    work.record(
        kind,
        subject=f"channel:{channel.pk}",
        project_id=channel.project_id,
        after={
            "kind": channel.kind,
            "name": channel.name,
            "address": channel.address_hint,
            "is_p0_only": channel.is_p0_only,
            "has_digest": channel.has_digest,
            "is_enabled": channel.is_enabled,
        },
    )
