"""Sir changes a channel: what it tells and where it leads, without ever seeing the address."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
import time_machine
from django.test import Client

from orchestration.models import AuditEvent, NotificationChannel
from orchestration.outbound.sealing import open_sealed
from tests.api.callers import facts
from tests.dashboard.test_notification_pages import (
    SECRET_PATH,
    SETTINGS,
    add_webhook,
    webhook_form,
)
from tests.factories import new_project

pytestmark = pytest.mark.django_db
MORNING = datetime(2026, 12, 1, 7, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def lets_out(settings: Any) -> None:
    """The operator allows private receivers and plain HTTP, and set up mail."""
    settings.COUNTERSIGN_NOTIFY_PRIVATE = True
    settings.COUNTERSIGN_NOTIFY_HTTP = True
    settings.EMAIL_HOST = "mail.example"


@pytest.fixture
def channel(sir_client: Client) -> NotificationChannel:
    """A webhook."""
    return add_webhook(sir_client)[0]


def mail_form(**rest: str) -> dict[str, str]:
    """Fill the form of an e-mail channel with a digest at eight."""
    form = {"kind": "email", "address": "sir@example.com", "digest": "1", "digest_at": "08:00"}
    return webhook_form(**(form | rest))


def change(client: Client, channel: NotificationChannel, form: dict[str, str]) -> Any:
    """Send the form of a channel."""
    return client.post(f"{SETTINGS}{channel.pk}/", form)


def test_form_shows_what_is_set_and_never_the_address(
    sir_client: Client, channel: NotificationChannel
) -> None:
    page = sir_client.get(f"{SETTINGS}{channel.pk}/").content.decode()
    assert 'value="ci"' in page
    assert "http://127.0.0.1:9/…" in page
    assert SECRET_PATH not in page
    assert "whsec_" not in page
    assert f'href="{SETTINGS}{channel.pk}/"' in sir_client.get(SETTINGS).content.decode()


def test_change_keeps_address_and_secret_and_is_in_the_trail(
    sir_client: Client, channel: NotificationChannel
) -> None:
    project = new_project("demo")
    form = webhook_form(name="deploys", address="", scope="p0", project=str(project.pk))
    assert change(sir_client, channel, form).status_code == 303
    now = NotificationChannel.objects.get()
    assert (now.name, now.is_p0_only, now.project_id) == ("deploys", True, project.pk)
    assert (now.address, now.secret) == (channel.address, channel.secret)
    event = AuditEvent.objects.get(kind="channel.changed")
    assert event.actor == "human:sir"
    assert isinstance(event.before, dict)
    assert (event.before["name"], facts(event)["name"]) == ("ci", "deploys")
    assert (event.before["project"], facts(event)["project"]) == (None, project.pk)
    assert facts(event)["is_moved"] is False


def test_new_address_is_checked_sealed_and_recorded_without_its_secrets(
    sir_client: Client, channel: NotificationChannel, settings: Any
) -> None:
    form = webhook_form(address="http://127.0.0.1:10/T1-other")
    assert change(sir_client, channel, form).status_code == 303
    now = NotificationChannel.objects.get()
    assert open_sealed(now.address) == "http://127.0.0.1:10/T1-other"
    assert now.address_hint == "http://127.0.0.1:10/…"
    assert now.secret == channel.secret
    event = AuditEvent.objects.get(kind="channel.changed")
    assert facts(event)["is_moved"] is True
    assert "T1-other" not in f"{event.before}{event.after}"
    settings.COUNTERSIGN_NOTIFY_PRIVATE = False
    refused = change(sir_client, channel, webhook_form())
    assert refused.status_code == 422
    assert SECRET_PATH.encode() not in refused.content
    now.refresh_from_db()
    assert now.address_hint == "http://127.0.0.1:10/…"


@pytest.mark.parametrize(
    "faulty", [{"name": ""}, {"time_zone": "Mars/Olympus"}, {"digest_at": "25:99"},
               {"project": "999999"}, {"language": "xx"}],
)  # fmt: skip
def test_faulty_change_is_422_and_changes_nothing(
    sir_client: Client, channel: NotificationChannel, faulty: dict[str, str]
) -> None:
    form = webhook_form(**({"name": "other", "scope": "p0"} | faulty))
    assert change(sir_client, channel, form).status_code == 422
    now = NotificationChannel.objects.get()
    assert (now.name, now.is_p0_only) == ("ci", False)


def test_kind_stays_what_it_is(sir_client: Client, channel: NotificationChannel) -> None:
    assert change(sir_client, channel, mail_form()).status_code == 409
    assert NotificationChannel.objects.get().kind == "webhook"


@pytest.mark.parametrize(
    ("digest_at", "digested_on"), [("06:30", date(2026, 12, 1)), ("08:30", None)]
)
def test_digest_that_is_moved_comes_at_its_next_time(
    sir_client: Client, digest_at: str, digested_on: date | None
) -> None:
    with time_machine.travel(MORNING, tick=False):
        sir_client.post(SETTINGS, mail_form())
        channel = NotificationChannel.objects.get()
        assert channel.digested_on is None
        change(sir_client, channel, mail_form(address="", digest_at=digest_at))
    assert NotificationChannel.objects.get().digested_on == digested_on


def test_archived_project_of_a_channel_stays_its_own(
    sir_client: Client, channel: NotificationChannel
) -> None:
    project = new_project("demo")
    NotificationChannel.objects.update(project=project)
    project.status = "archived"
    project.save()
    page = sir_client.get(f"{SETTINGS}{channel.pk}/").content.decode()
    assert f'<option value="{project.pk}" selected>' in page


def test_others_may_not_and_what_is_gone_is_404(
    sir_client: Client, viewer_client: Client, client: Client, channel: NotificationChannel
) -> None:
    for other, status in ((viewer_client, 403), (client, 302)):
        assert other.get(f"{SETTINGS}{channel.pk}/").status_code == status
        assert change(other, channel, webhook_form(name="mine")).status_code == 403
    sir_client.post(f"{SETTINGS}{channel.pk}/remove/")
    assert sir_client.get(f"{SETTINGS}{channel.pk}/").status_code == 404
    assert change(sir_client, channel, webhook_form()).status_code == 404
    assert NotificationChannel.objects.get().name == "ci"
