"""Which addresses may be spoken to from here: public ones, unless the operator allows others.

Standard library only: the child process that runs notification services uses it too.
Source: DESIGN section 16 ("no SSRF through webhooks").
"""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
MAX_URL = 2_000


class AddressRefused(Exception):
    """An address may not be spoken to, or is none. The message holds no secret of it."""

    def __init__(self, problem: str, *, is_unknown: bool = False) -> None:
        super().__init__(problem)
        self.is_unknown = is_unknown


@dataclass(frozen=True, slots=True)
class Reach:
    """What the operator allows beside public addresses over TLS."""

    private: bool = False
    plain_http: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes. Shape: `path` holds the query; `host` is a name or a bare address."""

    scheme: str
    host: str
    port: int
    path: str


def is_public(address: IPAddress) -> bool:
    """Say whether an address is a public one: also what it carries inside must be.

    Loopback, private, link-local (so cloud metadata), shared, multicast, reserved and unspecified
    ones are not, nor an IPv6 address that leads to one of those.
    """
    inner = _carried(address)
    if inner is not None:
        return is_public(inner)
    if address.is_multicast or address.is_reserved or address.is_unspecified:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.is_site_local:
        return False
    return address.is_global


def _carried(address: IPAddress) -> ipaddress.IPv4Address | None:
    """The IPv4 address inside an IPv6 one: mapped, compatible, 6to4, Teredo or NAT64."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    number = int(address)
    if address in NAT64 or (number >> 32 == 0 and number > 1):
        return ipaddress.IPv4Address(number & 0xFFFFFFFF)
    return None


def require_allowed(text: str, reach: Reach) -> None:
    """Raise AddressRefused unless an IP address, as text, may be connected to."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        raise AddressRefused("this is not an IP address") from None
    if not (reach.private or is_public(address)):
        raise AddressRefused("it leads to a private or reserved address")


def resolve_allowed(host: str, port: int, reach: Reach) -> str:
    """Resolve a name once and return the address to connect to.

    Errors: AddressRefused when it does not resolve, or when any of its addresses is not allowed:
    one that answers both ways is an attempt to get in.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise AddressRefused("its name does not resolve", is_unknown=True) from None
    addresses = [str(row[4][0]) for row in found]
    if not addresses:
        raise AddressRefused("its name does not resolve", is_unknown=True)
    for one in addresses:
        require_allowed(one, reach)
    return addresses[0]


def parse_target(url: str, reach: Reach) -> Target:
    """Read the address of a webhook.

    Errors: AddressRefused for another scheme, a name and password in it, or characters that would
    break a request apart.
    """
    if len(url) > MAX_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise AddressRefused("the address holds characters that none may hold")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise AddressRefused("this is not an address") from None
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise AddressRefused("expected https://host/path")
    if parts.scheme == "http" and not reach.plain_http:
        raise AddressRefused("only https is allowed here")
    if parts.username is not None or parts.password is not None:
        raise AddressRefused("a name and password do not belong into the address")
    path = parts.path or "/"
    if parts.query:
        path = f"{path}?{parts.query}"
    if port == 0:
        raise AddressRefused("this is not an address")
    default = 443 if parts.scheme == "https" else 80
    return Target(parts.scheme, parts.hostname, port or default, path)
