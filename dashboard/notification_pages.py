"""Rows and words of the notification pages, from what the selectors read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from dashboard.engine_texts import engine_words
from dashboard.inbox_rows import row_title
from dashboard.places import address
from dashboard.vocabulary import Label, Role
from orchestration.contracts.notices import ChannelKind, DeliveryKind, DeliveryResult, NoticeEvent
from orchestration.errors import CountersignError, Invalid
from orchestration.models import Delivery, NotificationChannel
from orchestration.notice_words import EVENTS, KINDS
from orchestration.selectors.notices import NoticeItem
from orchestration.services.notification_channels import NewChannel, is_readable
from orchestration.services.sending import decider_of, key_of, verdict_words

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

EVENT_LOOKS: Mapping[str, tuple[str, Role]] = {
    NoticeEvent.OPENED.value: ("hand-stop", Role.AMBER),
    NoticeEvent.REMINDER.value: ("bell-ringing", Role.AMBER),
    NoticeEvent.DEADLINE.value: ("hourglass", Role.AMBER),
    NoticeEvent.DECIDED.value: ("signature", Role.GREY),
    NoticeEvent.EXPIRED.value: ("hourglass", Role.INK),
    NoticeEvent.WITHDRAWN.value: ("arrow-back-up", Role.GREY),
}
EVENT_WORDS: Mapping[str, StrPromise] = {
    NoticeEvent.OPENED.value: _("Waiting for you"),
    NoticeEvent.REMINDER.value: _("Reminder"),
    NoticeEvent.DEADLINE.value: _("Deadline is near"),
    NoticeEvent.DECIDED.value: _("Decided"),
    NoticeEvent.EXPIRED.value: _("Decided by policy"),
    NoticeEvent.WITHDRAWN.value: _("Withdrawn"),
}
CHANNEL_WORDS: Mapping[str, StrPromise] = {
    ChannelKind.EMAIL.value: _("E-mail"),
    ChannelKind.APPRISE.value: _("Notification service"),
    ChannelKind.WEBHOOK.value: _("Webhook"),
}
RESULT_LABELS: Mapping[str, Label] = {
    DeliveryResult.OWED.value: Label("refresh", _("Being sent"), Role.BLUE),
    DeliveryResult.SENT.value: Label("check", _("Sent"), Role.GREEN),
    DeliveryResult.FAILED.value: Label("x", _("Failed"), Role.RED),
}
REFUSALS: Mapping[str, StrPromise] = {
    "it leads to a private or reserved address": _("It leads to a private or reserved address."),
    "its name does not resolve": _("Its name does not resolve."),
    "only https is allowed here": _("Only https is allowed here."),
    "expected https://host/path": _("An address such as https://host/path is expected."),
    "this is not an address": _("This is not an address."),
    "this is not an e-mail address": _("This is not an e-mail address."),
    "the address holds characters that none may hold": _(
        "The address holds characters that none may hold."
    ),
    "a name and password do not belong into the address": _(
        "A name and password do not belong into the address."
    ),
    "this service is not among those allowed": _("This service is not among those allowed."),
    "the service does not understand this address": _(
        "The service does not understand this address."
    ),
    "the address names a file of this machine": _("The address names a file of this machine."),
    "only services over TLS are allowed here (often the same with an s)": _(
        "Only services over TLS are allowed here (often the same with an s)."
    ),
    "no mail server is set up: the operator sets EMAIL_HOST": _(
        "No mail server is set up: the operator sets EMAIL_HOST."
    ),
    "the stored address cannot be read; enter it anew": _(
        "The stored address cannot be read. Enter it anew."
    ),
    "its address or secret cannot be read: SECRET_KEY was changed; enter them anew": _(
        "Its address or secret cannot be read: SECRET_KEY was changed."
    ),
}


UNREADABLE: Mapping[bool, StrPromise] = {
    False: _("SECRET_KEY was changed, so its address cannot be read. Enter the address anew."),
    True: _(
        "SECRET_KEY was changed, so its address and secret cannot be read. Enter the address anew, "
        "then ask for a new secret."
    ),
}
"""What to do about a channel that cannot be read; a webhook has a secret too."""


@dataclass(frozen=True, slots=True)
class NoticeLine:
    """One line of the list."""

    label: Label
    kind: str
    title: str
    place: str
    url: str
    at: datetime
    note: str
    is_p0: bool
    is_unread: bool


def notice_line(item: NoticeItem) -> NoticeLine:
    """Say what happened to an item, and what is known of it."""
    notice, decision = item.notice, item.notice.decision
    icon, role = EVENT_LOOKS[notice.event]
    is_over = notice.event in (NoticeEvent.DECIDED.value, NoticeEvent.EXPIRED.value)
    note = f"{verdict_words(decision)} · {decider_of(decision)}" if is_over else ""
    return NoticeLine(
        label=Label(icon, EVENT_WORDS[notice.event], role),
        kind=str(KINDS[decision.kind]),
        title=row_title(decision),
        place=" ".join(filter(None, (decision.project.name, key_of(decision)))),
        url=address("decision", decision.pk),
        at=notice.created_at,
        note=note,
        is_p0=decision.is_p0,
        is_unread=item.is_unread,
    )


@dataclass(frozen=True, slots=True)
class ChannelLine:
    """One channel as it is shown: never its address or secret."""

    pk: int
    kind: str | StrPromise
    name: str
    hint: str
    project: str
    is_p0_only: bool
    digest: str
    state: Label
    is_enabled: bool
    signs: bool
    trouble: str


def channel_line(channel: NotificationChannel) -> ChannelLine:
    """Shape a channel for the table."""
    state, trouble = Label("check", _("On"), Role.GREEN), ""
    if not channel.is_enabled:
        state = Label("ban", _("Off"), Role.GREY, channel.disabled_reason)
    if not is_readable(channel):
        state = Label("alert-octagon", _("Cannot be read"), Role.RED)
        trouble = str(UNREADABLE[channel.kind == ChannelKind.WEBHOOK])
    when = channel.digest_at.strftime("%H:%M") if channel.digest_at else ""
    digest = f"{when} {channel.time_zone}".strip() or str(_("as the policy says"))
    return ChannelLine(
        pk=channel.pk,
        kind=CHANNEL_WORDS[channel.kind],
        name=channel.name,
        hint=channel.address_hint,
        project=channel.project.name if channel.project is not None else "",
        is_p0_only=channel.is_p0_only,
        digest=digest if channel.has_digest else "",
        state=state,
        is_enabled=channel.is_enabled,
        signs=channel.kind == ChannelKind.WEBHOOK,
        trouble=trouble,
    )


@dataclass(frozen=True, slots=True)
class DeliveryLine:
    """One delivery: over which channel, of what, and how it went."""

    pk: int
    channel: str
    what: str
    url: str
    label: Label
    attempts: int
    problem: str
    at: datetime
    may_retry: bool


def delivery_line(row: Delivery) -> DeliveryLine:
    """Shape a delivery for the table."""
    decision = row.notice.decision if row.notice is not None else None
    words: str | StrPromise = _("Test") if row.kind == DeliveryKind.TEST else _("Daily digest")
    if row.notice is not None and decision is not None:
        words = f"{decision.project.name} · {decision.title} – {EVENTS[row.notice.event]}"
    return DeliveryLine(
        pk=row.pk,
        channel=row.channel.name,
        what=str(words),
        url=address("decision", decision.pk) if decision is not None else "",
        label=RESULT_LABELS[row.result],
        attempts=row.attempts,
        problem=str(REFUSALS.get(row.error, engine_words(row.error))),
        at=row.closed_at or row.created_at,
        may_retry=row.result == DeliveryResult.FAILED and row.channel.is_enabled,
    )


class ChannelForm(forms.Form):
    """A new channel as it is typed. What may be spoken to is asked by the service."""

    kind = forms.ChoiceField(
        choices=[(kind.value, CHANNEL_WORDS[kind.value]) for kind in ChannelKind]
    )
    name = forms.CharField(max_length=80)
    address = forms.CharField(max_length=2000)
    project = forms.IntegerField(required=False)
    scope = forms.ChoiceField(choices=[("all", "all"), ("p0", "p0")])
    digest = forms.BooleanField(required=False)
    digest_at = forms.TimeField(required=False)
    time_zone = forms.CharField(max_length=64, required=False)
    language = forms.ChoiceField(choices=settings.LANGUAGES)

    def channel(self) -> NewChannel:
        """What was asked for. Expects a valid form."""
        said = self.cleaned_data
        return NewChannel(
            kind=ChannelKind(said["kind"]),
            name=said["name"],
            address=said["address"],
            project_id=said["project"],
            is_p0_only=said["scope"] == "p0",
            has_digest=said["digest"],
            digest_at=said["digest_at"],
            time_zone=said["time_zone"],
            language=said["language"],
        )


class ChangeForm(ChannelForm):
    """A channel that is changed: what is left empty of its address stays."""

    address = forms.CharField(max_length=2000, required=False)


def typed_of(channel: NotificationChannel) -> dict[str, str]:
    """What the form of a channel shows; never its address."""
    return {
        "kind": channel.kind,
        "name": channel.name,
        "project": str(channel.project_id or ""),
        "scope": "p0" if channel.is_p0_only else "all",
        "digest": "1" if channel.has_digest else "",
        "digest_at": channel.digest_at.strftime("%H:%M") if channel.digest_at else "",
        "time_zone": channel.time_zone,
        "language": channel.language,
    }


def refusal_words(error: CountersignError) -> Mapping[str, Sequence[str]]:
    """The faults of a refused channel by field; the empty name is the whole form."""
    if isinstance(error, Invalid) and error.errors:
        return {
            fault["path"]: [str(REFUSALS.get(fault["message"], fault["message"]))]
            for fault in error.errors
        }
    return {"": [engine_words(error.detail)]}
