"""Keep the secrets of channels unreadable in the database and in copies of it.

Source: docs/decisions/0010-channel-secrets.md.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

PURPOSE = b"countersign notification channels, version 1"
KEY_BYTES = 32


class SealBroken(Exception):
    """A stored secret was sealed under a SECRET_KEY that is no longer known."""


def seal(text: str) -> str:
    """Encrypt a text under the present SECRET_KEY; an empty one stays empty."""
    return _cipher().encrypt(text.encode()).decode("ascii") if text else ""


def open_sealed(stored: str) -> str:
    """Return what was sealed. Errors: SealBroken, also for a text that was never sealed."""
    if not stored:
        return ""
    try:
        return _cipher().decrypt(stored).decode()
    except InvalidToken:
        raise SealBroken("sealed under another SECRET_KEY") from None


def is_open(stored: str) -> bool:
    """Whether a stored secret can be read with the keys at hand."""
    try:
        open_sealed(stored)
    except SealBroken:
        return False
    return True


def _cipher() -> MultiFernet:
    return _cipher_of((settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS))


@lru_cache(maxsize=8)
def _cipher_of(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(_derived(key)) for key in keys])


def _derived(key: str) -> bytes:
    # A key of its own: what leaks from here opens no session, and the other way round.
    kdf = HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=PURPOSE)
    return urlsafe_b64encode(kdf.derive(key.encode()))
