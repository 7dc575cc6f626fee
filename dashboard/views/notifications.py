"""What people are told: the list behind the bell, and Sir's page of channels."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import (
    require_GET,
    require_http_methods,
    require_POST,
    require_safe,
)

from dashboard.forms import read_number
from dashboard.http import DashboardRequest, actor_of, page, refusal, see_other, sir_only
from dashboard.notification_pages import (
    CHANNEL_WORDS,
    ChangeForm,
    ChannelForm,
    channel_line,
    delivery_line,
    notice_line,
    refusal_words,
    typed_of,
)
from dashboard.places import address
from dashboard.shapes import Crumb
from orchestration.errors import CountersignError, NotFound
from orchestration.models import NotificationChannel
from orchestration.notice_words import KINDS, quiet_line
from orchestration.selectors.activity import newest_position
from orchestration.selectors.board import list_project_names
from orchestration.selectors.notices import (
    count_for,
    list_channels,
    list_notices,
    recent_deliveries,
    urgent_unseen,
)
from orchestration.services.notices import mark_read
from orchestration.services.notification_channels import (
    access_channel,
    add_channel,
    change_channel,
    remove_channel,
    rotate_secret,
    send_test,
    switch_channel,
    try_again,
)
from orchestration.services.work import Actor

SETTINGS_PAGE = "dashboard/notifications/settings.html"
CHANGE_PAGE = "dashboard/notifications/change.html"
ACTIONS: Mapping[str, Callable[[int, Actor], object]] = {
    "test": lambda pk, actor: send_test(pk, actor=actor),
    "off": lambda pk, actor: switch_channel(pk, is_enabled=False, actor=actor),
    "on": lambda pk, actor: switch_channel(pk, is_enabled=True, actor=actor),
    "remove": lambda pk, actor: remove_channel(pk, actor=actor),
    "again": lambda pk, actor: try_again(pk, actor=actor),
}
"""What a button does; `again` is about a delivery, the others about a channel."""


@page
@require_safe
def notifications(request: DashboardRequest) -> HttpResponse:
    """What happened to the items of the inbox, newest first. Reading it decides nothing."""
    items, following = list_notices(request.user.pk, before=read_number(request.GET, "before"))
    context = {
        "lines": [notice_line(item) for item in items],
        "newest": items[0].notice.pk if items else 0,
        "unread": sum(item.is_unread for item in items),
        "following": following,
        "crumbs": [Crumb(_("Notifications"))],
        "position": newest_position(),
    }
    return render(request, "dashboard/notifications/list.html", context)


@page
@require_GET
@never_cache
def notifications_bell(request: DashboardRequest) -> HttpResponse:
    """The bell alone, refetched on each hint of the inbox, with the P0 items not looked at yet."""
    urgent = [
        {
            "id": row.pk,
            "title": f"P0 · {row.project.name}",
            "text": f"{KINDS[row.kind]}: {quiet_line(row.title)}",
            "url": address("decision", row.pk),
        }
        for row in urgent_unseen(request.user.pk)
    ]
    context = {"unread": count_for(request.user.pk)[1], "urgent": json.dumps(urgent)}
    return render(request, "dashboard/_parts/bell.html", context)


@page
@require_POST
def notifications_read(request: DashboardRequest) -> HttpResponse:
    """Mark what was shown as read, for this reader alone."""
    until = read_number(request.POST, "until") or 0
    mark_read(user_id=request.user.pk, until=until)
    return see_other(address("notifications"))


@sir_only
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def notification_settings(request: DashboardRequest) -> HttpResponse:
    """The channels out of the building; a POST makes one. A signing secret is shown this once."""
    if request.method != "POST":
        return _settings(request)
    form = ChannelForm(request.POST)
    if not form.is_valid():
        faults = {name: [str(one) for one in found] for name, found in form.errors.items()}
        return _settings(request, typed=request.POST.dict(), faults=faults, status=422)
    try:
        channel, secret = add_channel(
            form.channel(), user_id=request.user.pk, actor=actor_of(request)
        )
    except CountersignError as error:
        typed = request.POST.dict()
        return _settings(request, typed=typed, faults=refusal_words(error), status=error.status)
    if secret:
        return _settings(request, made=channel.name, secret=secret)
    return see_other(address("notification_settings"))


@sir_only
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def channel_change(request: DashboardRequest, pk: int) -> HttpResponse:
    """One channel, to be changed; its address is not shown and stays when none is typed."""
    channel = access_channel(pk)
    if request.method != "POST":
        return _change(request, channel, typed=typed_of(channel))
    form, typed = ChangeForm(request.POST), request.POST.dict()
    if not form.is_valid():
        faults = {name: [str(one) for one in found] for name, found in form.errors.items()}
        return _change(request, channel, typed=typed, faults=faults, status=422)
    try:
        change_channel(pk, form.channel(), actor=actor_of(request))
    except NotFound:
        raise
    except CountersignError as error:
        faults_ = refusal_words(error)
        return _change(request, channel, typed=typed, faults=faults_, status=error.status)
    return see_other(address("notification_settings"))


@sir_only
@require_POST
@never_cache
def channel_rotate(request: DashboardRequest, pk: int) -> HttpResponse:
    """Give a webhook a new secret and show it this once."""
    try:
        channel, secret = rotate_secret(pk, actor=actor_of(request))
    except NotFound:
        raise
    except CountersignError as error:
        return refusal(request, error, back_url=address("notification_settings"))
    return _settings(request, made=channel.name, secret=secret)


@sir_only
@require_POST
def channel_action(request: DashboardRequest, pk: int, action: str) -> HttpResponse:
    """Test, switch or remove a channel, or try a failed delivery again."""
    act = ACTIONS.get(action)
    if act is None:
        raise NotFound("There is no such action.")
    try:
        act(pk, actor_of(request))
    except NotFound:
        raise
    except CountersignError as error:
        return refusal(request, error, back_url=address("notification_settings"))
    return see_other(address("notification_settings"))


def _change(
    request: DashboardRequest,
    channel: NotificationChannel,
    *,
    typed: Mapping[str, Any],
    faults: Mapping[str, Sequence[str]] | None = None,
    status: int = 200,
) -> HttpResponse:
    fields, own = _fields(typed, faults or {}), channel.project
    if own is not None and own not in fields["projects"]:
        # An archived one is offered to nobody else, but saving must not widen this channel.
        fields["projects"].append(own)
    context = {
        **fields,
        "changed": channel_line(channel),
        "crumbs": [
            Crumb(_("Notifications"), address("notifications")),
            Crumb(_("Channels"), address("notification_settings")),
            Crumb(channel.name),
        ],
        "position": newest_position(),
    }
    return render(request, CHANGE_PAGE, context, status=status)


def _fields(typed: Mapping[str, Any], faults: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    return {
        # An address may hold a secret, so what was typed there does not come back.
        "typed": {**typed, "address": ""},
        "faults": dict(faults),
        "general": faults.get("", ()),
        "projects": list_project_names(),
        "kinds": CHANNEL_WORDS.items(),
        "languages": settings.LANGUAGES,
        "has_mail": bool(settings.EMAIL_HOST),
    }


def _settings(
    request: DashboardRequest,
    *,
    typed: Mapping[str, Any] | None = None,
    faults: Mapping[str, Sequence[str]] | None = None,
    made: str = "",
    secret: str = "",
    status: int = 200,
) -> HttpResponse:
    fields = {"language": get_language() or "en", "scope": "all", **dict(typed or {})}
    context = {
        **_fields(fields, faults or {}),
        "channels": [channel_line(row) for row in list_channels()],
        "deliveries": [delivery_line(row) for row in recent_deliveries()],
        "made": made,
        "secret": secret,
        "crumbs": [
            Crumb(_("Notifications"), address("notifications")),
            Crumb(_("Channels")),
        ],
        "position": newest_position(),
    }
    return render(request, SETTINGS_PAGE, context, status=status)
