"""What people are owed to be told: notices, the channels out, and each delivery over one.

A notice is written in the transaction that causes it, so a lost message loses nothing.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from orchestration.contracts.notices import (
    ChannelKind,
    DeliveryKind,
    DeliveryResult,
    NoticeEvent,
)
from orchestration.models.decisions import Decision
from orchestration.models.fields import choices
from orchestration.models.projects import Project


class Notice(models.Model):
    """One thing that happened to a decision. `spread_at` is set once its deliveries are written."""

    decision = models.ForeignKey(Decision, on_delete=models.CASCADE, related_name="notices")
    event = models.CharField(max_length=20, choices=choices(NoticeEvent))
    round = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    spread_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """Each happening once a decision; those not spread yet are found at once."""

        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(fields=("decision", "event", "round"), name="notice_once"),
        )
        indexes = (
            models.Index(
                fields=("id",), condition=models.Q(spread_at__isnull=True), name="notice_owed_idx"
            ),
            models.Index(fields=("event", "created_at"), name="notice_event_idx"),
        )

    def __str__(self) -> str:
        return f"{self.event} of {self.decision_id}"


class NoticeRead(models.Model):
    """One person has read one notice."""

    notice = models.ForeignKey(Notice, on_delete=models.CASCADE, related_name="reads")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    read_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """One row a person and notice."""

        constraints = (
            models.UniqueConstraint(fields=("notice", "user"), name="notice_read_unique"),
        )

    def __str__(self) -> str:
        return f"{self.user_id} read {self.notice_id}"


class NotificationChannel(models.Model):
    """A way out of the building.

    Shape: `address`, `secret` and `old_secret` are sealed (`outbound/sealing.py`), never shown or
    logged.
    """

    kind = models.CharField(max_length=20, choices=choices(ChannelKind))
    name = models.CharField(max_length=80)
    project = models.ForeignKey(
        Project, null=True, blank=True, on_delete=models.PROTECT, related_name="channels"
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    address = models.TextField()
    address_hint = models.CharField(max_length=200)
    secret = models.TextField(blank=True, default="")
    old_secret = models.TextField(blank=True, default="")
    old_secret_until = models.DateTimeField(null=True, blank=True)
    is_p0_only = models.BooleanField(default=False)
    has_digest = models.BooleanField(default=False)
    digest_at = models.TimeField(null=True, blank=True)
    time_zone = models.CharField(max_length=64, blank=True, default="")
    language = models.CharField(max_length=10, default="en")
    digested_on = models.DateField(null=True, blank=True)
    is_enabled = models.BooleanField(default=True)
    disabled_reason = models.CharField(max_length=200, blank=True, default="")
    removed_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """In the order they were made."""

        ordering = ("pk",)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Delivery(models.Model):
    """One message owed over one channel.

    Shape: `claim` names who sends it until `claimed_until`; `message_id` is the same on every try.
    """

    channel = models.ForeignKey(
        NotificationChannel, on_delete=models.PROTECT, related_name="deliveries"
    )
    kind = models.CharField(max_length=20, choices=choices(DeliveryKind))
    notice = models.ForeignKey(
        Notice, null=True, blank=True, on_delete=models.CASCADE, related_name="deliveries"
    )
    key = models.CharField(max_length=120, unique=True)
    message_id = models.CharField(max_length=64)
    due_at = models.DateTimeField()
    attempts = models.PositiveIntegerField(default=0)
    claim = models.CharField(max_length=40, blank=True, default="")
    claimed_until = models.DateTimeField(null=True, blank=True)
    result = models.CharField(
        max_length=20, choices=choices(DeliveryResult), blank=True, default=""
    )
    error = models.CharField(max_length=300, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """What is owed is found by when it is due."""

        ordering = ("pk",)
        constraints = (
            models.CheckConstraint(
                condition=models.Q(result="", closed_at__isnull=True)
                | ~models.Q(result="") & models.Q(closed_at__isnull=False),
                name="delivery_closed_has_time",
            ),
        )
        indexes = (
            models.Index(
                fields=("due_at",), condition=models.Q(result=""), name="delivery_owed_idx"
            ),
            models.Index(
                fields=("closed_at",),
                condition=models.Q(result="failed"),
                name="delivery_failed_idx",
            ),
        )

    def __str__(self) -> str:
        return self.key
