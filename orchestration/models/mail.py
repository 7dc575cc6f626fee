"""Mail between agents and people, its conversations, handshakes and shared documents."""

from __future__ import annotations

from django.db import models

from orchestration.contracts.mail_types import ConversationMode, MailType
from orchestration.models.agents import Agent
from orchestration.models.assignments import Assignment
from orchestration.models.fields import choices, known_state, optional_enum, state_field
from orchestration.models.projects import Project
from orchestration.models.tasks import Task
from orchestration.states import (
    HANDSHAKE_OPEN,
    Complexity,
    ConversationStatus,
    HandshakeStatus,
)


class Conversation(models.Model):
    """Mail that belongs together. Its complexity holds for every mail that continues it.

    Shape: `round` counts the proposals of a negotiation, `proposal` is the newest of them and
    `accepted_by` lists the addresses that accepted it.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="conversations")
    task = models.ForeignKey(
        Task, null=True, blank=True, on_delete=models.PROTECT, related_name="conversations"
    )
    mode = state_field(ConversationMode, ConversationMode.PLAIN)
    status = state_field(ConversationStatus, ConversationStatus.OPEN)
    complexity = optional_enum(Complexity)
    round = models.PositiveSmallIntegerField(default=0)
    proposal = models.ForeignKey(
        "orchestration.Mail",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
    )
    accepted_by = models.JSONField(default=list, blank=True)
    outcome = models.TextField(blank=True, default="")
    created_at = models.DateTimeField()

    class Meta:
        """A state that the table knows, and partial indexes of what waits for Sir or for a task."""

        ordering = ("pk",)
        constraints = (known_state(ConversationStatus, "conversation_status_known"),)
        indexes = (
            models.Index(
                fields=("id",),
                condition=models.Q(status=ConversationStatus.AWAITING_SIR.value),
                name="conversation_sir_idx",
            ),
            models.Index(
                fields=("task",),
                condition=models.Q(
                    mode=ConversationMode.DELEGATION.value, status=ConversationStatus.OPEN.value
                ),
                name="conversation_delegated_idx",
            ),
        )

    def __str__(self) -> str:
        return f"{self.mode} {self.pk}"


class Mail(models.Model):
    """One mail. Its sender comes from the token; `message_id` is unique in its project.

    Shape: `details` holds the fields of its type; `digest` is of everything that was sent, so that
    a repeat is told from another mail under the same id. `sender` is an actor's name.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="mail")
    task = models.ForeignKey(
        Task, null=True, blank=True, on_delete=models.PROTECT, related_name="mail"
    )
    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="mail")
    message_id = models.CharField(max_length=200)
    digest = models.CharField(max_length=64)
    type = state_field(MailType, MailType.INFORM)
    sender = models.CharField(max_length=140)
    sender_agent = models.ForeignKey(
        Agent, null=True, blank=True, on_delete=models.SET_NULL, related_name="sent_mail"
    )
    in_reply_to = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="replies"
    )
    parts = models.JSONField(default=list, blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    details = models.JSONField(default=dict, blank=True)
    assertions = models.JSONField(default=list, blank=True)
    complexity = optional_enum(Complexity)
    expects_reply = models.BooleanField(default=False)
    round = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField()

    class Meta:
        """Oldest first. What another project holds under an id is nobody's business here."""

        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(fields=("message_id", "project"), name="mail_message_unique"),
        )

    def __str__(self) -> str:
        return f"{self.type} {self.message_id}"

    @property
    def text(self) -> str:
        """The text of its parts, in order."""
        return "\n\n".join(str(part["text"]) for part in self.parts if "text" in part)


class MailRecipient(models.Model):
    """One address that a mail is for.

    Shape: `name` is an actor's name (`agent:bob`); `read_at` is when it marked the mail read.
    """

    mail = models.ForeignKey(Mail, on_delete=models.CASCADE, related_name="recipients")
    name = models.CharField(max_length=140)
    agent = models.ForeignKey(
        Agent, null=True, blank=True, on_delete=models.SET_NULL, related_name="received_mail"
    )
    read_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """One row an address, and the partial index of what is unread."""

        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(fields=("mail", "name"), name="mail_recipient_unique"),
        )
        indexes = (
            models.Index(
                fields=("name", "mail"),
                condition=models.Q(read_at__isnull=True),
                name="mail_unread_idx",
            ),
        )

    def __str__(self) -> str:
        return self.name


class Handshake(models.Model):
    """What an executor understood, and what was answered. `token` is the lease it holds for.

    Units: `due_at` is when it passes on; `due_seconds` is what was left while clocks stand still.
    """

    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="handshakes")
    assignment = models.ForeignKey(
        Assignment, on_delete=models.PROTECT, related_name="handshakes", db_index=False
    )
    token = models.PositiveIntegerField()
    mail = models.OneToOneField(Mail, on_delete=models.PROTECT, related_name="handshake")
    status = models.CharField(max_length=30, choices=choices(HandshakeStatus))
    due_at = models.DateTimeField(null=True, blank=True)
    due_seconds = models.FloatField(null=True, blank=True)
    corrections = models.JSONField(default=list, blank=True)
    answered_by = models.CharField(max_length=140, blank=True, default="")
    answered_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        """One intent at a time waits for an answer."""

        ordering = ("pk",)
        constraints = (
            known_state(HandshakeStatus, "handshake_status_known"),
            models.UniqueConstraint(
                fields=("assignment",),
                condition=models.Q(status__in=[state.value for state in sorted(HANDSHAKE_OPEN)]),
                name="handshake_one_open",
            ),
        )
        indexes = (
            models.Index(fields=("assignment", "token"), name="handshake_lease_idx"),
            models.Index(
                fields=("id",),
                condition=models.Q(status__in=[state.value for state in sorted(HANDSHAKE_OPEN)]),
                name="handshake_open_idx",
            ),
        )

    def __str__(self) -> str:
        return f"{self.status} on {self.task_id}"


class SharedDocument(models.Model):
    """A document that several agents write together on one task; its newest version."""

    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="shared_documents")
    name = models.CharField(max_length=200)
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        """One document a name and task."""

        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(fields=("task", "name"), name="shared_document_unique"),
        )

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"


class SharedDocumentVersion(models.Model):
    """One version of a shared document, with who wrote it. Immutable by trigger."""

    document = models.ForeignKey(
        SharedDocument, on_delete=models.PROTECT, related_name="versions", db_index=False
    )
    version = models.PositiveIntegerField()
    content = models.TextField()
    sha256 = models.CharField(max_length=64)
    author = models.CharField(max_length=140)
    change_note = models.TextField(blank=True, default="")
    created_at = models.DateTimeField()

    class Meta:
        """One row a version."""

        ordering = ("version",)
        constraints = (
            models.UniqueConstraint(
                fields=("document", "version"), name="shared_document_version_unique"
            ),
        )

    def __str__(self) -> str:
        return f"{self.document_id} v{self.version}"
