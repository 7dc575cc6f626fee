"""Receivers of what is sent: a real HTTP server and a real mail server on this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from pytest_django import Settings

from orchestration.contracts.notices import ChannelKind
from orchestration.models import NotificationChannel
from orchestration.services.notification_channels import NewChannel, add_channel
from orchestration.services.work import SYSTEM
from tests.services_up import free_port

WAIT_SECONDS = 10


@dataclass
class Received:
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """A server that takes POSTs. `statuses` are answered in order, then 204 for ever."""

    port: int = 0
    requests: list[Received] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    location: str = ""
    is_held: bool = False
    arrived: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        """Its address by name, so that it is resolved."""
        return f"http://localhost:{self.port}/hook"


def handler_of(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    """Make the handler that writes into a receiver."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.requests.append(Received(self.path, headers, self.rfile.read(length)))
            receiver.arrived.set()
            if receiver.is_held:
                receiver.go_on.wait(WAIT_SECONDS)
            self.send_response(receiver.statuses.pop(0) if receiver.statuses else 204)
            if receiver.location:
                self.send_header("Location", receiver.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *_arguments: Any) -> None:
            """Say nothing."""

    return Handler


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A running receiver on a free port of this machine."""
    made = Receiver()
    with ThreadingHTTPServer(("localhost", 0), handler_of(made)) as server:
        made.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.go_on.set()
        server.shutdown()
        thread.join(WAIT_SECONDS)


@pytest.fixture
def lets_out(settings: Settings) -> Settings:
    """The operator allows this machine and plain HTTP."""
    settings.COUNTERSIGN_NOTIFY_PRIVATE = True
    settings.COUNTERSIGN_NOTIFY_HTTP = True
    settings.COUNTERSIGN_URL = "https://sign.example"
    return settings


class Mailbox:
    """Keeps what the mail server takes; `refusals` are answered first."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.refusals: list[str] = []

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:
        """Take one mail, or refuse it as told."""
        if self.refusals:
            return self.refusals.pop(0)
        mail = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.mails.append(mail)
        return "250 OK"


@pytest.fixture
def mailbox(settings: Settings) -> Iterator[Mailbox]:
    """A running mail server, which the settings name."""
    made = Mailbox()
    port = free_port()
    controller = Controller(made, hostname="127.0.0.1", port=port)
    controller.start()
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST = "127.0.0.1"
    settings.EMAIL_PORT = port
    settings.COUNTERSIGN_URL = "https://sign.example"
    yield made
    controller.stop()


@pytest.fixture
def webhook(db: None, receiver: Receiver, lets_out: Settings) -> NotificationChannel:
    """A webhook to the receiver."""
    channel, _ = add_channel(
        NewChannel(ChannelKind.WEBHOOK, "ci", receiver.url), user_id=None, actor=SYSTEM
    )
    return channel


@pytest.fixture
def mail_channel(db: None, mailbox: Mailbox) -> NotificationChannel:
    """Sir's mail, with the digest at eight in Shanghai."""
    new = NewChannel(
        ChannelKind.EMAIL, "Sir", "sir@example.com", is_p0_only=True, has_digest=True,
        time_zone="Asia/Shanghai",
    )  # fmt: skip
    channel, _ = add_channel(new, user_id=None, actor=SYSTEM)
    return channel
