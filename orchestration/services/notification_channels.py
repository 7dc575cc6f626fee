"""Set up the ways out of the building. What is secret is shown once, if at all, and never recorded.

Source: DESIGN section 16.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any
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
from orchestration.outbound.sealing import is_open, seal
from orchestration.outbound.services import read_service
from orchestration.outbound.signing import new_secret
from orchestration.services.deliveries import drop_owed, new_message_id
from orchestration.services.reminding import digest_clock
from orchestration.services.sending import allowed_reach
from orchestration.services.work import Actor, Work, locked, unit_of_work

MAX_CHANNELS = 50
FILLED = (
    "name", "project", "is_p0_only", "has_digest", "digest_at", "time_zone", "language",
)  # fmt: skip
"""What a person may set at any time."""
ROTATION = timedelta(hours=24)
"""How long both secrets sign after a rotation."""


@dataclass(frozen=True, slots=True)
class NewChannel:
    """What a person asks for.

    Shape: `digest_at` and `time_zone` empty mean the policy's; an empty `address` keeps the one
    that a channel has.
    """

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
    with unit_of_work(actor) as work:
        if NotificationChannel.objects.filter(removed_at__isnull=True).count() >= MAX_CHANNELS:
            raise Conflict("there are too many channels; remove one first", code="too_many")
        channel = NotificationChannel(
            kind=new.kind.value,
            user_id=user_id,
            address=seal(new.address.strip()),
            address_hint=hint,
            secret=seal(secret),
            created_at=work.now,
        )
        _fill(channel, new)
        channel.digested_on = _told_today(channel, work.now)
        channel.save()
        _record(work, channel, "channel.created")
    return channel, secret


def change_channel(channel_id: int, new: NewChannel, *, actor: Actor) -> NotificationChannel:
    """Change what a channel tells, and where it leads if an address is given; its kind stays.

    What is owed goes to the new address. A webhook keeps its secret.

    Errors: as for a new one; Invalid when no address is given and the stored one cannot be read;
    Conflict when its kind is another.
    """
    hint = _checked_address(new) if new.address.strip() else ""
    _check_rest(new)
    with unit_of_work(actor) as work:
        channel = access_channel(channel_id, lock=True)
        if channel.kind != new.kind:
            raise Conflict("the kind of a channel stays what it is", code="other_kind")
        if not hint and not is_open(channel.address):
            raise _refused_address("the stored address cannot be read; enter it anew")
        before, clock = _shown(channel), (channel.has_digest, *digest_clock(channel))
        if hint:
            channel.address, channel.address_hint = seal(new.address.strip()), hint
        _fill(channel, new)
        if (channel.has_digest, *digest_clock(channel)) != clock:
            channel.digested_on = _told_today(channel, work.now) or channel.digested_on
        work.touch(channel, "address", "address_hint", "digested_on", *FILLED)
        _record(work, channel, "channel.changed", before=before, is_moved=bool(hint))
    return channel


def _fill(channel: NotificationChannel, new: NewChannel) -> None:
    """Write what FILLED names."""
    channel.name, channel.project_id = new.name.strip(), new.project_id
    channel.is_p0_only = new.is_p0_only
    channel.has_digest = new.has_digest and new.kind is not ChannelKind.WEBHOOK
    channel.digest_at, channel.time_zone = new.digest_at, new.time_zone
    channel.language = new.language


def _told_today(channel: NotificationChannel, now: datetime) -> date | None:
    """Today, once the digest's time of day is over: the first comes at the next one."""
    zone, at = digest_clock(channel)
    local = now.astimezone(zone)
    return local.date() if local.time() >= at else None


def _checked_address(new: NewChannel) -> str:
    """Check where a channel leads, and name it without its secrets. Errors: Invalid."""
    address, reach = new.address.strip(), allowed_reach()
    try:
        if new.kind is ChannelKind.EMAIL:
            return hide_address(require_address(address))[:200]
        if new.kind is ChannelKind.APPRISE:
            return read_service(address, reach)[:200]
        target = parse_target(address, reach)
        resolve_allowed(target.host, target.port, reach)
    except AddressRefused as error:
        raise _refused_address(str(error)) from None
    port = urlsplit(address).port
    return f"{target.scheme}://{target.host}{f':{port}' if port else ''}/…"[:200]


def _refused_address(said: str) -> Invalid:
    return Invalid(
        f"the address is refused: {said}",
        code="address_refused",
        errors=[{"path": "address", "message": said}],
    )


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
        secret = new_secret()
        # One that cannot be read signs nothing; the other end goes on with the new one alone.
        channel.old_secret = channel.secret if is_open(channel.secret) else ""
        channel.secret = seal(secret)
        channel.old_secret_until = work.now + ROTATION
        work.touch(channel, "secret", "old_secret", "old_secret_until")
        _record(work, channel, "channel.rotated")
    return channel, secret


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


def is_readable(channel: NotificationChannel) -> bool:
    """Whether what a channel needs to send can be read with the SECRET_KEY of today."""
    return is_open(channel.address) and is_open(channel.secret)


def _shown(channel: NotificationChannel) -> dict[str, Any]:
    """What may be seen of a channel; its address and secrets are left out."""
    return {
        "kind": channel.kind,
        "name": channel.name,
        "address": channel.address_hint,
        "project": channel.project_id,
        "is_p0_only": channel.is_p0_only,
        "has_digest": channel.has_digest,
        "digest_at": channel.digest_at.isoformat("minutes") if channel.digest_at else None,
        "time_zone": channel.time_zone,
        "language": channel.language,
        "is_enabled": channel.is_enabled,
    }


def _record(
    work: Work,
    channel: NotificationChannel,
    kind: str,
    *,
    before: dict[str, Any] | None = None,
    **more: Any,
) -> None:
    """Record what was done to a channel."""
    work.record(
        kind,
        subject=f"channel:{channel.pk}",
        project_id=channel.project_id,
        before=before,
        after={**_shown(channel), **more},
    )
