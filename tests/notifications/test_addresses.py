"""Nothing inside is spoken to: refused when it is set up, and again when it is connected to."""

from __future__ import annotations

import socket
from datetime import timedelta
from ipaddress import ip_address
from typing import Any

import pytest
import time_machine

from orchestration.contracts.notices import ChannelKind
from orchestration.errors import Invalid
from orchestration.models import Delivery, NotificationChannel
from orchestration.outbound.addresses import (
    AddressRefused,
    Reach,
    is_public,
    parse_target,
    require_allowed,
    resolve_allowed,
)
from orchestration.outbound.services import (
    SCHEMAS,
    ServiceFailed,
    read_service,
    send_to_service,
)
from orchestration.services.deliveries import deliver_notices
from orchestration.services.notification_channels import NewChannel, add_channel
from orchestration.services.work import SYSTEM
from tests.factories import new_project
from tests.notifications.conftest import Receiver
from tests.races.contest import asking_task, question_of

PRIVATE = (
    "127.0.0.1", "127.8.8.8", "0.0.0.0",  # noqa: S104  # it is refused
    "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254",
    "100.64.0.1", "192.0.0.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::",
    "::1",    "fe80::1", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1",
    "::ffff:169.254.169.254", "::127.0.0.1", "2002:7f00:1::", "2002:a9fe:a9fe::1",
    "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2001:0:4136:e378:8000:63bf:80ff:fffe", "2001:db8::1",
)  # fmt: skip
PUBLIC = ("1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::808:808")


@pytest.mark.parametrize("text", PRIVATE)
def test_address_inside_is_refused(text: str) -> None:
    assert not is_public(ip_address(text))
    with pytest.raises(AddressRefused):
        require_allowed(text, Reach())
    require_allowed(text, Reach(private=True))


@pytest.mark.parametrize("text", PUBLIC)
def test_public_address_is_allowed(text: str) -> None:
    assert is_public(ip_address(text))


@pytest.mark.parametrize(
    "host",
    ["localhost", "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "::1", "0"],
)
def test_every_spelling_of_this_machine_is_refused(host: str) -> None:
    with pytest.raises(AddressRefused):
        resolve_allowed(host, 443, Reach())


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/", "ftp://example.com/", "file:///etc/passwd", "https://", "https:///x",
        "https://user:pass@example.com/", "https://example.com:99999/", "https://example.com:0/",
        "https://example.com/\r\nX-Evil: 1", "https://exam ple.com/", "https://例子.example/",
        "gopher://example.com/", "javascript:alert(1)", "", "https://[::1",
        "https://a/" + "x" * 2000,
    ],
)  # fmt: skip
def test_what_is_no_address_of_a_webhook_is_refused(url: str) -> None:
    with pytest.raises(AddressRefused):
        parse_target(url, Reach())


@pytest.mark.django_db
@pytest.mark.parametrize(
    "url",
    [
        "https://localhost/hook",
        "https://169.254.169.254/latest/meta-data/",
        "https://[::ffff:7f00:1]/",
    ],
)
def test_webhook_inside_is_refused_when_it_is_set_up(url: str) -> None:
    new = NewChannel(ChannelKind.WEBHOOK, "in", url)
    with pytest.raises(Invalid) as refused:
        add_channel(new, user_id=None, actor=SYSTEM)
    assert refused.value.errors[0]["path"] == "address"
    assert not NotificationChannel.objects.exists()


@pytest.mark.django_db
def test_name_that_leads_inside_later_is_refused_when_it_is_connected_to(
    webhook: NotificationChannel, receiver: Receiver, settings: Any
) -> None:
    settings.COUNTERSIGN_NOTIFY_PRIVATE = False
    decision = question_of(asking_task(new_project()))
    with time_machine.travel(decision.created_at + timedelta(minutes=6), tick=False):
        deliver_notices()
    row = Delivery.objects.get()
    assert (row.result, row.attempts) == ("", 1)
    assert row.error.startswith("the address was refused")
    assert receiver.requests == []


def test_name_with_one_address_inside_is_refused_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
    both = [(*kind, ("1.1.1.1", 443)), (*kind, ("10.0.0.1", 443))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both)
    with pytest.raises(AddressRefused):
        resolve_allowed("both.example", 443, Reach())


@pytest.mark.parametrize(
    "url",
    [
        "mailto://a:b@example.com", "syslog://", "dbus://", "json://1.1.1.1/", "jsons://localhost/x",
        "jsons://127.0.0.1/x", "jsons://[::1]/x", "gotifys://10.0.0.1/Aaaaaaaaaaaaaaa", "nonsense",
        "ntfys://192.168.0.1/topic", "matrixs://u:p@169.254.169.254/#r", "smtp://x", "discord://",
        "workflows://host/a/b/?template=/etc/passwd", "slack://a/b/c/?Template=file:///etc/passwd",
        "jsons://1.1.1.1/\n",
    ],
)  # fmt: skip
def test_service_that_may_not_be_spoken_to_is_refused(url: str) -> None:
    with pytest.raises(AddressRefused):
        read_service(url, Reach())


def test_services_are_named_without_their_secrets() -> None:
    urls = {
        "ntfys://secrettopic": "ntfys://…",
        "discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js": "discord://…",
        "jsons://1.1.1.1/secret/path": "jsons://1.1.1.1",
    }
    assert {url: read_service(url, Reach()) for url in urls} == urls
    assert not SCHEMAS & {"syslog", "rsyslog", "mailto", "mailtos", "amqp", "irc", "apprise"}


def test_service_gets_the_message(receiver: Receiver) -> None:
    url = f"json://localhost:{receiver.port}/secret"
    reach = Reach(private=True, plain_http=True)
    send_to_service(url, title="One", text="Two", reach=reach)
    assert b'"One"' in receiver.requests[0].body
    assert b'"Two"' in receiver.requests[0].body


def test_service_is_held_from_inside_when_it_connects(receiver: Receiver) -> None:
    url = f"json://localhost:{receiver.port}/secret"
    with pytest.raises(ServiceFailed) as failed:
        send_to_service(url, title="One", text="Two", reach=Reach(plain_http=True))
    assert "refused" in str(failed.value)
    assert "secret" not in str(failed.value)
    assert receiver.requests == []


def test_service_follows_no_redirect(receiver: Receiver) -> None:
    receiver.statuses, receiver.location = [302], receiver.url
    url = f"json://localhost:{receiver.port}/first"
    with pytest.raises(ServiceFailed):
        send_to_service(url, title="a", text="b", reach=Reach(private=True, plain_http=True))
    assert [one.path for one in receiver.requests] == ["/first"]
