"""What Sir is told of, over which channels, and what became of a delivery.

Source: DESIGN section 9 ("Silence is never consent"), section 16.
"""

from __future__ import annotations

from enum import StrEnum


class NoticeEvent(StrEnum):
    """What happened to a decision that people are told of."""

    OPENED = "opened"
    REMINDER = "reminder"
    DEADLINE = "deadline"
    DECIDED = "decided"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


ASKING = frozenset({NoticeEvent.OPENED, NoticeEvent.REMINDER, NoticeEvent.DEADLINE})
"""Events that ask for a verdict; the others tell what became of the item."""


class ChannelKind(StrEnum):
    """Ways out of the building; the page itself needs none."""

    EMAIL = "email"
    APPRISE = "apprise"
    WEBHOOK = "webhook"


class DeliveryKind(StrEnum):
    """What is delivered: one notice, the day's digest, or a test that a person asked for."""

    NOTICE = "notice"
    DIGEST = "digest"
    TEST = "test"


class DeliveryResult(StrEnum):
    """What became of a delivery; the empty string is one still owed."""

    OWED = ""
    SENT = "sent"
    FAILED = "failed"
    DROPPED = "dropped"
