"""Mail, its conversations and handshakes, and shared documents as the API shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import Field

from orchestration.api.shapes.base import Id, OptionalId, OrNone, RowId, Shape, TaskId
from orchestration.models import Handshake, Mail


class ConversationShape(Shape):
    """What a mail belongs to. Shape: `round` counts the proposals of a negotiation."""

    id: RowId
    mode: str
    status: str
    complexity: str
    round: int
    accepted_by: list[str]
    outcome: OrNone


class HandshakeShape(Shape):
    """What was answered to an intent, or who has to answer it. `due_at` is when it passes on."""

    id: RowId
    task: TaskId
    assignment: Annotated[Id, Field(validation_alias="assignment_id")]
    status: str
    corrections: list[str]
    due_at: datetime | None
    answered_by: OrNone
    answered_at: datetime | None


class MailShape(Shape):
    """One mail. `sender` and `to` are `agent:NAME`, `human:NAME` or `system`.

    Shape: `details` holds the fields of its type: of an intent_confirmation `scope, approach,
    output_format, assumptions, questions`, of an intent_ack `status, corrections`, of an
    execution_start `expected_output`. `read_at` is when you, whom it is for, marked it read.
    """

    id: str
    message_id: str
    type: str
    sender: str
    to: list[str]
    project: str
    task: OptionalId
    in_reply_to: str | None
    conversation: ConversationShape
    content: str
    parts: list[dict[str, Any]]
    metadata: dict[str, Any]
    details: dict[str, Any]
    assertions: list[Any]
    complexity: str
    expects_reply: bool
    round: int
    handshake: HandshakeShape | None
    created_at: datetime
    read_at: datetime | None

    @classmethod
    def of_mail(cls, mail: Mail, reader: str = "") -> Self:
        """Shape a mail for a reader; its recipients, conversation and handshake are loaded."""
        return cls(**_fields(mail, reader))


def _fields(mail: Mail, reader: str) -> dict[str, Any]:
    answered = mail.in_reply_to
    handshake: Handshake | None = getattr(mail, "handshake", None)
    return {
        "id": str(mail.pk),
        "message_id": mail.message_id,
        "type": mail.type,
        "sender": mail.sender,
        "to": [one.name for one in mail.recipients.all()],
        "read_at": next((one.read_at for one in mail.recipients.all() if one.name == reader), None),
        "project": str(mail.project_id),
        "task": mail.task_id,
        "in_reply_to": answered.message_id if answered is not None else None,
        "conversation": ConversationShape.of(mail.conversation),
        "content": mail.text,
        "parts": mail.parts,
        "metadata": {**mail.metadata, "complexity": mail.complexity},
        "details": mail.details,
        "assertions": mail.assertions,
        "complexity": mail.complexity,
        "expects_reply": mail.expects_reply,
        "round": mail.round,
        "handshake": HandshakeShape.of(handshake) if handshake is not None else None,
        "created_at": mail.created_at,
    }


class SentShape(MailShape):
    """A mail that was sent. `repeat` marks one that was sent before; `reply` is its first answer.

    Without a reply after `wait` seconds, look into the mailbox later.
    """

    repeat: bool
    reply: MailShape | None

    @classmethod
    def of_sent(cls, mail: Mail, *, is_repeat: bool, reply: Mail | None, reader: str = "") -> Self:
        """Shape a sent mail with the reply that it got, if any."""
        answer = MailShape.of_mail(reply, reader) if reply is not None else None
        return cls(**_fields(mail, reader), repeat=is_repeat, reply=answer)


class MailPage(Shape):
    """One page of mail."""

    results: list[MailShape]
    next: str | None
    previous: str | None


class MailReadShape(Shape):
    """What a mark did: how much was unread before it, and what the mailbox still holds unread."""

    marked: int
    unread: int


class SharedDocumentShape(Shape):
    """A document that agents write together; its newest version's number."""

    id: RowId
    task: TaskId
    name: str
    version: int
    created_at: datetime
    updated_at: datetime


class SharedDocumentPage(Shape):
    """One page of shared documents."""

    results: list[SharedDocumentShape]
    next: str | None
    previous: str | None


class SharedVersionShape(Shape):
    """One version of a shared document, with who wrote it."""

    id: RowId
    document_id: Id
    version: int
    content: str
    sha256: str
    author: str
    change_note: str
    created_at: datetime


class SharedVersionPage(Shape):
    """One page of the versions of a shared document."""

    results: list[SharedVersionShape]
    next: str | None
    previous: str | None
