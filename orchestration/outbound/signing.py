"""Sign webhooks as Standard Webhooks asks: HMAC-SHA256 over id, time and body.

Source: https://www.standardwebhooks.com/ (specification, version 1).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence

PREFIX = "whsec_"
SECRET_BYTES = 32


def new_secret() -> str:
    """Make a signing secret. It is shown once."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def sign(secret: str, *, message_id: str, timestamp: int, body: bytes) -> str:
    """Return one signature: `v1,` and base64."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def signed_headers(
    secrets_: Sequence[str], *, message_id: str, timestamp: int, body: bytes
) -> Mapping[str, str]:
    """Return the headers of a webhook. While a secret is rotated both sign."""
    signatures = [
        sign(secret, message_id=message_id, timestamp=timestamp, body=body)
        for secret in secrets_
        if secret
    ]
    return {
        "content-type": "application/json",
        "user-agent": "Countersign-Webhooks/1",
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signatures),
    }
