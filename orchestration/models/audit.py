"""The audit trail: append-only events, and the seal that orders and chains them."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from orchestration.models.projects import Project
from orchestration.models.tasks import Task


class AuditEvent(models.Model):
    """Who did what to what, before and after, and why. A trigger refuses every change."""

    project = models.ForeignKey(
        Project,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="events",
        db_index=False,
    )
    task = models.ForeignKey(
        Task,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="events",
        db_index=False,
    )
    kind = models.CharField(max_length=60)
    actor = models.CharField(max_length=140)
    subject = models.CharField(max_length=80)
    before = models.JSONField(null=True, blank=True)
    after = models.JSONField(null=True, blank=True)
    why = models.TextField(blank=True, default="")
    request_id = models.CharField(max_length=64, blank=True, default="")
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        """Ids are not commit order: page over `AuditSeal.position`."""

        ordering = ("pk",)
        indexes = (
            models.Index(fields=("project", "id"), name="event_project_idx"),
            models.Index(fields=("task", "id"), name="event_task_idx"),
            # Finds the events of a rare noun; as values repeat, it stays small.
            models.Index(
                fields=("kind",), name="event_kind_idx", opclasses=["varchar_pattern_ops"]
            ),
            models.Index(
                fields=("at",),
                condition=models.Q(kind="task.pending"),
                name="event_pending_idx",
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"


class AuditSeal(models.Model):
    """The gap-free position of one committed event, and its link in the hash chain."""

    position = models.BigIntegerField(primary_key=True)
    event = models.OneToOneField(AuditEvent, on_delete=models.PROTECT, related_name="seal")
    previous_hash = models.CharField(max_length=64, unique=True)
    hash = models.CharField(max_length=64, unique=True)
    sealed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """In chain order."""

        ordering = ("position",)

    def __str__(self) -> str:
        return f"{self.position} {self.hash[:8]}"


class Canary(models.Model):
    """The round trip of the canary job; `/readyz` reads it."""

    name = models.CharField(max_length=40, primary_key=True)
    sent_at = models.DateTimeField(null=True, blank=True)
    answered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """No order."""

    def __str__(self) -> str:
        return self.name
