"""Run the `apprise` library in a process that only speaks to addresses it may.

Reads one JSON object from standard input and writes one to standard output:
`{"check": url}` → `{"host", "port", "secure"}` or null when no service understands the address;
`{"send": url, "title", "text"}` → `{"took", "refused"}`.
"""

from __future__ import annotations

import json
import logging
import socket
import sys
from collections.abc import Iterator
from typing import Any

import apprise
import requests

from orchestration.outbound.addresses import AddressRefused, Reach, require_allowed

refused: list[str] = []


def guard_connections(reach: Reach) -> None:
    """Check every address at the moment it is connected to, whatever resolved it."""
    connect = socket.socket.connect

    def checked(self: socket.socket, address: Any) -> None:
        if self.family not in (socket.AF_INET, socket.AF_INET6):
            refused.append("not an address of the network")
            raise OSError("refused")
        try:
            require_allowed(str(address[0]), reach)
        except AddressRefused as error:
            refused.append(str(error))
            raise OSError("refused") from None
        connect(self, address)

    socket.socket.connect = checked  # type: ignore[method-assign, assignment]


def follow_nothing() -> None:
    """Let a redirect be an answer like any other: it leads nowhere."""

    def nothing(*_arguments: Any, **_options: Any) -> Iterator[requests.Response]:
        return iter(())

    requests.Session.resolve_redirects = nothing  # type: ignore[method-assign, assignment]


def check(url: str) -> dict[str, Any] | None:
    """Say where an address leads: its own host, if the service has addresses that name one."""
    made = apprise.Apprise.instantiate(url, suppress_exceptions=True)
    if made is None:
        return None
    host = (getattr(made, "host", "") or "").strip("[]")
    secure: Any = made.secure_protocol
    names = [secure] if isinstance(secure, str) else list(secure or ())
    is_own = "{host}" in "".join(made.templates)
    return {"host": host if is_own else "", "port": made.port or 0, "secure": names}


def send(url: str, title: str, text: str) -> dict[str, bool]:
    """Send one message and say whether the service took it."""
    service = apprise.Apprise()
    took = service.add(url) and service.notify(
        title=title, body=text, body_format=apprise.NotifyFormat.TEXT
    )
    return {"took": bool(took), "refused": bool(refused)}


def main() -> None:
    """Do what standard input asks for."""
    asked = json.load(sys.stdin)
    logging.disable(logging.CRITICAL)
    guard_connections(Reach(private=bool(asked["private"])))
    follow_nothing()
    if "check" in asked:
        said: object = check(asked["check"])
    else:
        said = send(asked["send"], asked["title"], asked["text"])
    json.dump(said, sys.stdout)


if __name__ == "__main__":
    main()
