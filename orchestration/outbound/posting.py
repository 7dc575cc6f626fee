"""POST to an address that was checked: resolved once, connected to just that, nothing followed.

The name stays in Host and in the TLS handshake, so certificates are checked as ever.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from orchestration.outbound.addresses import AddressRefused, Reach, Target, resolve_allowed

STEP_SECONDS = 10.0
WHOLE_SECONDS = 20.0
"""A receiver that drips is cut off after this, so it holds no thread."""


class PostFailed(Exception):
    """No answer came. The message holds neither the address nor what was sent."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the receiver answered; its body is nobody's business here."""

    status: int


def post(target: Target, *, body: bytes, headers: Mapping[str, str], reach: Reach) -> Answer:
    """Send one POST and return the status.

    Errors: PostFailed when the address is not allowed (any more), or no answer comes in time.
    """
    try:
        address = resolve_allowed(target.host, target.port, reach)
    except AddressRefused as error:
        raise PostFailed(f"the address was refused: {error}") from None
    connection = _connection(target)
    cut = threading.Timer(WHOLE_SECONDS, _cut_off, [connection])
    cut.daemon = True
    try:
        connection.sock = _open_socket(target, address)
        cut.start()
        connection.request("POST", target.path, body=body, headers=dict(headers))
        return Answer(connection.getresponse().status)
    except ssl.SSLError as error:
        raise PostFailed(f"TLS failed: {error.reason or 'handshake'}") from None
    except (OSError, http.client.HTTPException) as error:
        raise PostFailed(f"no answer: {type(error).__name__}") from None
    finally:
        cut.cancel()
        connection.close()


def _connection(target: Target) -> http.client.HTTPConnection:
    kind = http.client.HTTPSConnection if target.scheme == "https" else http.client.HTTPConnection
    return kind(target.host, target.port, timeout=STEP_SECONDS)


def _open_socket(target: Target, address: str) -> socket.socket:
    plain = socket.create_connection((address, target.port), timeout=STEP_SECONDS)
    if target.scheme != "https":
        return plain
    try:
        return ssl.create_default_context().wrap_socket(plain, server_hostname=target.host)
    except BaseException:
        plain.close()
        raise


def _cut_off(connection: http.client.HTTPConnection) -> None:
    with contextlib.suppress(OSError, AttributeError):
        connection.sock.shutdown(socket.SHUT_RDWR)
