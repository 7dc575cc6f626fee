"""The bell, the list and Sir's channels: who may, what is shown, and what never is."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from orchestration.models import AuditEvent, Delivery, Notice, NotificationChannel
from orchestration.outbound.sealing import open_sealed
from orchestration.services.decisions import mark_seen
from orchestration.services.deliveries import claim_delivery
from orchestration.services.work import SYSTEM
from tests.dashboard.conftest import Waiting

LIST, SETTINGS, BELL = "/notifications/", "/notifications/settings/", "/notifications/bell/"
SECRET_PATH = "T0-very-secret"  # a token in an address


@pytest.fixture(autouse=True)
def lets_out(settings: Any) -> None:
    """The operator allows private receivers and plain HTTP."""
    settings.COUNTERSIGN_NOTIFY_PRIVATE = True
    settings.COUNTERSIGN_NOTIFY_HTTP = True


def webhook_form(**rest: str) -> dict[str, str]:
    """Fill the form of a new webhook."""
    address = f"http://127.0.0.1:9/{SECRET_PATH}"
    form = {"kind": "webhook", "name": "ci", "address": address, "scope": "all", "language": "en"}
    return form | rest


def add_webhook(client: Client) -> tuple[NotificationChannel, str]:
    """Add one over the page and read the secret it shows."""
    answer = client.post(SETTINGS, webhook_form())
    found = re.search(r"whsec_[A-Za-z0-9+/=]+", answer.content.decode())
    assert found is not None
    return NotificationChannel.objects.get(), found.group()


def bell_count(client: Client) -> str:
    """What the bell of a page shows."""
    found = re.search(r'id="bell".*?</a>', client.get(LIST).content.decode(), re.DOTALL)
    assert found is not None
    return re.sub(r"<[^>]*>|[^0-9]", "", found.group())


def test_bell_counts_until_the_item_was_seen(
    waiting: Waiting, sir: User, sir_client: Client
) -> None:
    assert bell_count(sir_client) == "1"
    mark_seen(decision_id=waiting.decision.pk, user_id=sir.pk, actor=SYSTEM)
    assert bell_count(sir_client) == ""


def test_marking_as_read_counts_for_one_reader_and_for_what_was_shown(
    waiting: Waiting, sir_client: Client, viewer_client: Client
) -> None:
    newest = Notice.objects.get()
    assert sir_client.post("/notifications/read/", {"until": newest.pk - 1}).status_code == 303
    assert bell_count(sir_client) == "1"
    sir_client.post("/notifications/read/", {"until": newest.pk})
    assert (bell_count(sir_client), bell_count(viewer_client)) == ("", "1")
    assert waiting.decision.status == "open"


def test_list_links_to_the_card_and_reading_it_decides_nothing(
    waiting: Waiting, sir_client: Client
) -> None:
    decision = waiting.decision
    page = sir_client.get(LIST).content.decode()
    assert f'href="/inbox/{decision.pk}/"' in page
    assert sir_client.get(f"/inbox/{decision.pk}/").status_code == 200
    assert waiting.decision.status == "open"


def test_bell_carries_urgent_items_to_the_script(waiting: Waiting, sir_client: Client) -> None:
    decision = waiting.decision
    assert "data-urgent=" in sir_client.get(BELL).content.decode()
    assert f"/inbox/{decision.pk}/" not in sir_client.get(BELL).content.decode()
    decision.is_p0, decision.title = True, '"><script>alert(1)</script>'
    decision.save(update_fields=["is_p0", "title"])
    bell = sir_client.get(BELL).content.decode()
    assert f"/inbox/{decision.pk}/" in bell
    assert "<script" not in bell


def test_only_sir_sets_up_channels(viewer_client: Client, client: Client) -> None:
    assert viewer_client.get(LIST).status_code == 200
    assert viewer_client.get(SETTINGS).status_code == 403
    assert viewer_client.post(SETTINGS, webhook_form()).status_code == 403
    assert client.get(SETTINGS).status_code == 302
    assert not NotificationChannel.objects.exists()


def test_secret_is_shown_once_and_the_address_never(sir_client: Client) -> None:
    channel, secret = add_webhook(sir_client)
    assert open_sealed(channel.secret) == secret
    page = sir_client.get(SETTINGS).content.decode()
    assert "whsec_" not in page
    assert SECRET_PATH not in page
    assert "http://127.0.0.1:9/…" in page


def test_audit_and_log_hold_neither_secret_nor_address(
    sir_client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    channel, secret = add_webhook(sir_client)
    answer = sir_client.post(f"{SETTINGS}{channel.pk}/rotate/")
    assert answer.status_code == 200
    sir_client.post(f"{SETTINGS}{channel.pk}/test/")
    sir_client.post(f"{SETTINGS}{channel.pk}/remove/")
    told = " ".join(
        f"{row.before} {row.after} {row.why}" for row in AuditEvent.objects.filter(
            kind__startswith="channel."
        )
    )  # fmt: skip
    assert AuditEvent.objects.filter(kind__startswith="channel.").count() == 4
    for hidden in (secret, SECRET_PATH, "whsec_"):
        assert hidden not in told
        assert hidden not in caplog.text
    channel.refresh_from_db()
    assert (channel.address, channel.secret, channel.old_secret) == ("", "", "")


def test_refused_address_is_told_and_not_given_back(sir_client: Client, settings: Any) -> None:
    settings.COUNTERSIGN_NOTIFY_PRIVATE = False
    answer = sir_client.post(SETTINGS, webhook_form())
    assert answer.status_code == 422
    assert b"private or reserved" in answer.content
    assert SECRET_PATH.encode() not in answer.content
    assert not NotificationChannel.objects.exists()


@pytest.mark.parametrize(
    "faulty",
    [{"name": ""}, {"kind": "pigeon"}, {"time_zone": "Mars/Olympus"}, {"digest_at": "25:99"},
     {"project": "999999"}, {"language": "xx"}],
)  # fmt: skip
def test_faulty_form_is_422(sir_client: Client, faulty: dict[str, str]) -> None:
    assert sir_client.post(SETTINGS, webhook_form(**faulty)).status_code == 422
    assert not NotificationChannel.objects.exists()


def test_mail_needs_a_server(sir_client: Client, settings: Any) -> None:
    settings.EMAIL_HOST = ""
    form = webhook_form(kind="email", address="sir@example.com")
    answer = sir_client.post(SETTINGS, form)
    assert (answer.status_code, b"EMAIL_HOST" in answer.content) == (422, True)


def test_test_is_owed_and_a_channel_that_is_off_takes_none(sir_client: Client) -> None:
    channel, _ = add_webhook(sir_client)
    sir_client.post(f"{SETTINGS}{channel.pk}/test/")
    row = Delivery.objects.get()
    assert (row.kind, row.result) == ("test", "")
    sir_client.post(f"{SETTINGS}{channel.pk}/off/")
    row.refresh_from_db()
    assert row.result == "dropped"
    assert sir_client.post(f"{SETTINGS}{channel.pk}/test/").status_code == 409
    assert claim_delivery(row.pk) is None


def test_failed_delivery_is_shown_and_may_be_tried_again(sir_client: Client) -> None:
    channel, _ = add_webhook(sir_client)
    sir_client.post(f"{SETTINGS}{channel.pk}/test/")
    row = Delivery.objects.get()
    row.result, row.closed_at, row.error = "failed", row.created_at, "the receiver answered 503"
    row.save()
    page = sir_client.get(SETTINGS).content.decode()
    assert "the receiver answered 503" in page
    assert sir_client.post(f"{SETTINGS}{row.pk}/again/").status_code == 303
    row.refresh_from_db()
    assert (row.result, row.attempts) == ("", 0)


def test_unknown_things_are_404(sir_client: Client) -> None:
    assert sir_client.post(f"{SETTINGS}999/test/").status_code == 404
    assert sir_client.post(f"{SETTINGS}999/rotate/").status_code == 404
    channel, _ = add_webhook(sir_client)
    assert sir_client.post(f"{SETTINGS}{channel.pk}/nonsense/").status_code == 404


def test_getting_an_action_does_nothing(sir_client: Client) -> None:
    channel, _ = add_webhook(sir_client)
    for action in ("test", "off", "remove", "rotate"):
        assert sir_client.get(f"{SETTINGS}{channel.pk}/{action}/").status_code == 405
    channel.refresh_from_db()
    assert channel.is_enabled
    assert not Delivery.objects.exists()
