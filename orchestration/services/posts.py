"""A mail as it arrives: what was sent, who sends it, and what it is about.

Source: DESIGN section 12 ("Mail envelope").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from orchestration.contracts.mail import MailInput
from orchestration.contracts.mail_types import ConversationMode
from orchestration.errors import Fault, Invalid
from orchestration.models import Agent, Mail, Project, Task
from orchestration.rules.dag import canonical_digest
from orchestration.services.mail import Address, Letter
from orchestration.services.work import Actor


@dataclass(frozen=True, slots=True)
class Post:
    """A mail with who sends it and what it is about, as the token and the address allow."""

    document: MailInput
    actor: Actor
    agent: Agent | None
    project: Project
    task: Task | None = None
    answered: Mail | None = None
    lease_token: str = ""

    @property
    def digest(self) -> str:
        """Digest everything that was sent; how long the caller waits is not part of it."""
        sent = self.document.model_dump(mode="json", exclude_defaults=True, exclude={"wait"})
        return canonical_digest(sent)


def letter_of(post: Post, to: Sequence[Address], **rest: Any) -> Letter:
    """Write a letter of what was sent."""
    document = post.document
    return Letter(
        project=post.project,
        task=post.task,
        type=document.type,
        sender=post.actor.name,
        sender_agent=post.agent,
        to=to,
        message_id=document.message_id,
        digest=post.digest,
        parts=document.stored_parts,
        metadata=document.metadata,
        assertions=[one.to_document() for one in document.assertions],
        in_reply_to=post.answered,
        mode=document.mode or ConversationMode.PLAIN,
        complexity=document.hint,
        **rest,
    )


def missing(*faults: tuple[str, str]) -> Invalid:
    """Name what a mail lacks. Shape: (field, what about it)."""
    return Invalid(
        "The mail is not complete.",
        errors=[Fault(path=path, message=message) for path, message in faults],
    )
