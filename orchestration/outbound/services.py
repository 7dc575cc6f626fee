"""Notification services of the `apprise` library, run in a child process that cannot look around.

The library opens connections of its own and resolves names again; in the child every connection is
checked when it is made, redirects are not followed, and the environment is empty.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from orchestration.outbound.addresses import (
    MAX_URL,
    AddressRefused,
    Reach,
    resolve_allowed,
)

CHILD_SECONDS = 45.0
CHILD = "orchestration.outbound.service_child"
ROOT = Path(__file__).resolve().parents[2]
# Services that speak HTTP to a host on the network. What runs programs, reads files or devices,
# speaks to the local desktop, or sends mail past the operator's server is not among them.
SCHEMAS = frozenset(
    {
        "bark", "barks", "dingtalk", "discord", "feishu", "flock", "gchat", "gotify", "gotifys",
        "groupme", "guilded", "ifttt", "join", "json", "jsons", "kook", "lark", "line", "mastodon",
        "mastodons", "matrix", "matrixs", "misskey", "misskeys", "mmost", "mmosts", "nctalk",
        "nctalks", "notica", "noticas", "ntfy", "ntfys", "onesignal", "opsgenie", "pagerduty",
        "pbul", "pover", "prowl", "pushdeer", "pushdeers", "pushplus", "revolt", "rocket",
        "rockets", "schan", "signal", "signals", "slack", "spush", "squadcast", "synology",
        "synologys", "tgram", "threema", "toot", "toots", "twilio", "twist", "victorops", "webex",
        "wecom", "wecombot", "workflow", "workflows", "wpush", "wxpusher", "wxteams", "zulip",
    }
)  # fmt: skip

FILE_PARAMETERS = frozenset({"template", "keyfile", "path", "attach"})
"""Parameters by which a service would read a file of ours, and send it."""


class ServiceFailed(Exception):
    """A service did not take the message. The message holds no part of the address."""


def read_service(url: str, reach: Reach) -> str:
    """Check the address of a service and return a name for it that holds no secret.

    Errors: AddressRefused for an unknown or forbidden service, a faulty address, one without TLS
    or one on a private network, unless allowed.
    """
    scheme = url.partition("://")[0].lower()
    if len(url) > MAX_URL or not url.isprintable():
        raise AddressRefused("the address holds characters that none may hold")
    if scheme not in SCHEMAS:
        raise AddressRefused("this service is not among those allowed")
    if FILE_PARAMETERS & _parameters(url):
        raise AddressRefused("the address names a file of this machine")
    said = _ask_child({"check": url}, reach)
    if said is None:
        raise AddressRefused("the service does not understand this address")
    if scheme not in said["secure"] and not reach.plain_http:
        raise AddressRefused("only services over TLS are allowed here (often the same with an s)")
    host = str(said["host"])
    if host and _is_reached(host, int(said["port"]) or 443, reach):
        return f"{scheme}://{host}"
    return f"{scheme}://…"


def _parameters(url: str) -> set[str]:
    try:
        return {name.lower() for name, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True)}
    except ValueError:
        raise AddressRefused("this is not an address") from None


def _is_reached(host: str, port: int, reach: Reach) -> bool:
    """Whether a message goes to that host itself. A bare word that no resolver knows is a topic.

    Errors: AddressRefused when it may not be spoken to, or does not resolve although it is a host.
    """
    try:
        resolve_allowed(host, port, reach)
    except AddressRefused as error:
        if error.is_unknown and "." not in host and ":" not in host:
            return False
        raise
    return True


def send_to_service(url: str, *, title: str, text: str, reach: Reach) -> None:
    """Hand a message to a service.

    Errors: ServiceFailed when it was not taken, or not in time.
    """
    said = _ask_child({"send": url, "title": title, "text": text}, reach)
    if said is None:
        raise ServiceFailed("no answer in time, or a faulty one")
    if said["refused"]:
        raise ServiceFailed("the address was refused: it leads to a private or reserved address")
    if not said["took"]:
        raise ServiceFailed("the service did not take the message")


def _ask_child(asked: Mapping[str, object], reach: Reach) -> dict[str, Any] | None:
    """Run the library in its child and return what it says; None when it says nothing.

    Nothing secret is on the command line, and nothing of our environment gets in.
    """
    environment = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    try:
        done = subprocess.run(  # noqa: S603  # our own module
            [sys.executable, "-s", "-m", CHILD],
            input=json.dumps({**asked, "private": reach.private}),
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=environment,
            timeout=CHILD_SECONDS,
            check=False,
        )
        said: dict[str, Any] | None = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        return None
    return said
