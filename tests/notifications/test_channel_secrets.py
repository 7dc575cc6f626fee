"""What channels keep secret is sealed in the database, and a lost key is told, never guessed at."""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
import time_machine
from django.apps import apps
from django.db import connection
from django.test import Client, override_settings
from standardwebhooks import Webhook

from orchestration.contracts.notices import ChannelKind
from orchestration.models import Delivery, NotificationChannel
from orchestration.outbound.sealing import SealBroken, is_open, open_sealed, seal
from orchestration.services.deliveries import deliver_notices, send_due
from orchestration.services.notification_channels import (
    NewChannel,
    add_channel,
    change_channel,
    rotate_secret,
    send_test,
)
from orchestration.services.work import SYSTEM
from tests.api.callers import person
from tests.notifications.conftest import Mailbox, Receiver

pytestmark = pytest.mark.django_db
OTHER_KEY = "another-key-" + "y" * 50
SETTINGS = "/notifications/settings/"


def stored(pk: int) -> tuple[str, ...]:
    """The columns as a copy of the database shows them."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select address, secret, old_secret from orchestration_notificationchannel where id=%s",
            [pk],
        )
        row: tuple[str, ...] = cursor.fetchone()
    return row


def told(receiver: Receiver, secret: str) -> None:
    """Check that the newest request is signed with a secret."""
    last = receiver.requests[-1]
    assert Webhook(secret).verify(last.body, last.headers)


def test_database_holds_neither_addresses_nor_secrets(
    webhook: NotificationChannel, receiver: Receiver
) -> None:
    _, secret = rotate_secret(webhook.pk, actor=SYSTEM)
    columns = stored(webhook.pk)
    assert all(columns)
    for column in columns:
        assert "whsec_" not in column
        assert str(receiver.port) not in column
    assert open_sealed(columns[0]) == receiver.url
    assert open_sealed(columns[1]) == secret


def test_sealed_text_that_was_tampered_with_is_refused() -> None:
    with pytest.raises(SealBroken):
        open_sealed(seal("one")[:-4] + "AAA=")


def test_same_secret_is_sealed_differently_each_time() -> None:
    assert seal("one") != seal("one")
    assert (seal(""), open_sealed("")) == ("", "")


@pytest.mark.parametrize("stored", ["plain text", "gAAAAA", "whsec_AAAA"])
def test_what_was_not_sealed_here_is_refused(stored: str) -> None:
    with pytest.raises(SealBroken):
        open_sealed(stored)


def test_sealed_channel_still_signs_as_the_standard_says(
    webhook: NotificationChannel, receiver: Receiver
) -> None:
    send_test(webhook.pk, actor=SYSTEM)
    assert send_due() == 1
    told(receiver, open_sealed(webhook.secret))


def test_key_from_before_still_opens(webhook: NotificationChannel, receiver: Receiver) -> None:
    secret = open_sealed(webhook.secret)
    send_test(webhook.pk, actor=SYSTEM)
    with override_settings(SECRET_KEY=OTHER_KEY, SECRET_KEY_FALLBACKS=[django_key()]):
        assert send_due() == 1
    told(receiver, secret)


def django_key() -> str:
    """The key of this test run."""
    settings: Any = import_module("django.conf").settings
    key: str = settings.SECRET_KEY
    return key


def test_changed_key_is_told_and_repaired_by_entering_anew(
    webhook: NotificationChannel, receiver: Receiver
) -> None:
    send_test(webhook.pk, actor=SYSTEM)
    with override_settings(SECRET_KEY=OTHER_KEY):
        deliver_notices()
        row = Delivery.objects.get()
        assert (row.result, row.attempts) == ("", 1)
        assert "SECRET_KEY was changed" in row.error
        assert receiver.requests == []
        new = NewChannel(ChannelKind.WEBHOOK, "ci", receiver.url)
        change_channel(webhook.pk, new, actor=SYSTEM)
        _, secret = rotate_secret(webhook.pk, actor=SYSTEM)
        assert stored(webhook.pk)[2] == ""
        with time_machine.travel(row.due_at + timedelta(seconds=1), tick=False):
            assert send_due() == 1
            told(receiver, secret)


def test_mail_whose_address_cannot_be_read_is_told_too(
    mail_channel: NotificationChannel, mailbox: Mailbox
) -> None:
    send_test(mail_channel.pk, actor=SYSTEM)
    with override_settings(SECRET_KEY=OTHER_KEY):
        send_due()
    assert "SECRET_KEY was changed" in Delivery.objects.get().error
    assert mailbox.mails == []


def test_page_says_what_to_do_after_the_key_changed(webhook: NotificationChannel) -> None:
    client = Client()
    client.force_login(person("sir", "sir"))
    assert "Cannot be read" not in client.get(SETTINGS).content.decode()
    with override_settings(SECRET_KEY=OTHER_KEY):
        # The session is signed with the key too, so Sir has to come in again.
        client.force_login(person("sir", "sir"))
        page = client.get(SETTINGS).content.decode()
        assert "Cannot be read" in page
        assert "then ask for a new secret" in page
        assert "Enter the address anew" in client.get(f"{SETTINGS}{webhook.pk}/").content.decode()
        form = {"kind": "webhook", "name": "ci", "scope": "all", "language": "en", "address": ""}
        refused = client.post(f"{SETTINGS}{webhook.pk}/", form)
        assert refused.status_code == 422
        assert "The stored address cannot be read" in refused.content.decode()


def test_rows_from_before_are_sealed_by_the_migration_and_given_back_by_its_reverse(
    lets_out: Any,
) -> None:
    migration = import_module("orchestration.migrations.0013_sealed_channels")
    plain = {"address": "http://localhost:9/T0", "secret": "whsec_MfKQ9r8GKYqrTwjU"}
    channel, _ = add_channel(
        NewChannel(ChannelKind.WEBHOOK, "ci", "http://localhost:9/x"), user_id=None, actor=SYSTEM
    )
    NotificationChannel.objects.update(**plain)
    migration.seal_rows(apps, None)
    columns = stored(channel.pk)
    assert [is_open(one) for one in columns] == [True] * 3
    assert (open_sealed(columns[0]), open_sealed(columns[1])) == tuple(plain.values())
    assert columns[0] != plain["address"]
    assert columns[2] == ""
    migration.open_rows(apps, None)
    assert stored(channel.pk) == (*plain.values(), "")
