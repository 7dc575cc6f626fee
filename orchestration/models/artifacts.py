"""Locked artifacts: content-addressed, versioned, immutable, with the record of who read them."""

from __future__ import annotations

from django.db import models

from orchestration.models.assignments import Assignment
from orchestration.models.outputs import Output
from orchestration.models.projects import Project
from orchestration.models.tasks import Task


class ArtifactContent(models.Model):
    """The bytes of artifacts, stored once per digest. A trigger refuses every change."""

    sha256 = models.CharField(max_length=64, primary_key=True)
    size_bytes = models.PositiveBigIntegerField()
    data = models.BinaryField()

    class Meta:
        """No order."""

    def __str__(self) -> str:
        return self.sha256


class Artifact(models.Model):
    """One locked version of one named artifact. A trigger refuses every change to the row."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="artifacts")
    task = models.ForeignKey(
        Task, on_delete=models.PROTECT, related_name="artifacts", db_index=False
    )
    output = models.ForeignKey(
        Output,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="artifacts",
        db_index=False,
    )
    name = models.CharField(max_length=1000)
    type = models.CharField(max_length=20, default="other")
    version = models.PositiveIntegerField(default=1)
    content = models.ForeignKey(ArtifactContent, on_delete=models.PROTECT, related_name="+")
    size_bytes = models.PositiveBigIntegerField()
    exception_note = models.TextField(blank=True, default="")
    locked_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        """One row a version of a name in a task."""

        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(
                fields=("task", "name", "version"), name="artifact_version_unique"
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"


class ArtifactRead(models.Model):
    """A step read a locked artifact; impact follows these rows."""

    artifact = models.ForeignKey(
        Artifact, on_delete=models.PROTECT, related_name="reads", db_index=False
    )
    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="artifact_reads")
    assignment = models.ForeignKey(
        Assignment, null=True, blank=True, on_delete=models.SET_NULL, db_index=False
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        """One row a reader and artifact."""

        constraints = (
            models.UniqueConstraint(fields=("artifact", "task"), name="artifact_read_unique"),
        )

    def __str__(self) -> str:
        return f"{self.task_id} read {self.artifact_id}"
