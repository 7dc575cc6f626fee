"""What kinds of mail there are, and in which modes agents talk.

Source: DESIGN section 12 ("Mail", "Modes").
"""

from __future__ import annotations

from enum import StrEnum


class ConversationMode(StrEnum):
    """How agents talk: plain mail, or one of the four modes of the mesh."""

    PLAIN = "plain"
    QUERY = "query"
    DELEGATION = "delegation"
    NEGOTIATION = "negotiation"
    CO_CREATION = "co_creation"


class MailType(StrEnum):
    """What a mail is. The last four are the semantic handshake."""

    INFORM = "inform"
    REQUEST = "request"
    REPLY = "reply"
    TASK_REQUEST = "task_request"
    INTENT_CONFIRMATION = "intent_confirmation"
    INTENT_ACK = "intent_ack"
    EXECUTION_START = "execution_start"
