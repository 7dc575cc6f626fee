"""Delivery archives, changelog entries, and who built on an artifact version that was replaced."""

from __future__ import annotations

from django.db import models

from orchestration.contracts.archive import ArchiveKind, StaleState
from orchestration.models.artifacts import Artifact
from orchestration.models.fields import choices
from orchestration.models.projects import Project
from orchestration.models.tasks import Task


class DeliveryArchive(models.Model):
    """What was delivered with one root, or why it was waived. A trigger refuses every change.

    The documents themselves are locked artifacts of the root.
    """

    project = models.ForeignKey(
        Project, on_delete=models.PROTECT, related_name="delivery_archives", db_index=False
    )
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="delivery_archives")
    number = models.PositiveIntegerField(default=1)
    kind = models.CharField(max_length=10, choices=choices(ArchiveKind))
    has_exceptions = models.BooleanField(default=False)
    markdown = models.ForeignKey(
        Artifact, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    document = models.ForeignKey(
        Artifact, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    created_at = models.DateTimeField()

    class Meta:
        """One row a version of a root's archive."""

        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(fields=("task", "number"), name="archive_number_unique"),
        )
        indexes = (models.Index(fields=("project", "id"), name="archive_project_idx"),)

    def __str__(self) -> str:
        return f"{self.kind} {self.task_id} v{self.number}"


class ChangelogEntry(models.Model):
    """One entry of a project's CHANGELOG.md. Shape: `written_at` is None until the file has it."""

    project = models.ForeignKey(
        Project, on_delete=models.PROTECT, related_name="changelog_entries", db_index=False
    )
    archive = models.OneToOneField(
        DeliveryArchive, on_delete=models.PROTECT, related_name="changelog_entry"
    )
    title = models.CharField(max_length=300)
    body = models.TextField()
    created_at = models.DateTimeField()
    written_at = models.DateTimeField(null=True, blank=True)
    tries = models.PositiveSmallIntegerField(default=0)
    problem = models.CharField(max_length=300, blank=True, default="")

    class Meta:
        """Oldest first."""

        ordering = ("pk",)
        indexes = (
            models.Index(
                fields=("project", "id"),
                condition=models.Q(written_at__isnull=True),
                name="changelog_unwritten_idx",
            ),
        )

    def __str__(self) -> str:
        return self.title


class StaleConsumer(models.Model):
    """A step that built on a version of an artifact which another one replaced since."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="stale_reads")
    replaced = models.ForeignKey(
        Artifact, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    artifact = models.ForeignKey(Artifact, on_delete=models.PROTECT, related_name="stale_consumers")
    check_task = models.OneToOneField(
        Task, null=True, blank=True, on_delete=models.SET_NULL, related_name="rechecks"
    )
    state = models.CharField(max_length=10, choices=choices(StaleState))
    note = models.CharField(max_length=300, blank=True, default="")
    created_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """One row a consumer and new version."""

        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(fields=("artifact", "task"), name="stale_consumer_unique"),
        )

    def __str__(self) -> str:
        return f"{self.task_id} {self.state}"
