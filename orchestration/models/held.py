"""Results that came in while their project was in safe stop, kept until Sir resumes it."""

from __future__ import annotations

from django.db import models

from orchestration.models.assignments import Assignment
from orchestration.models.projects import Project


class HeldResult(models.Model):
    """One result as it was handed in. Shape: `token` is the lease's; a repeat replaces nothing."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="held_results")
    assignment = models.OneToOneField(
        Assignment, on_delete=models.CASCADE, related_name="held_result"
    )
    token = models.PositiveIntegerField()
    actor = models.CharField(max_length=140)
    is_workers = models.BooleanField(default=False)
    document = models.JSONField(default=dict)
    digest = models.CharField(max_length=64, blank=True, default="")
    created_at = models.DateTimeField()

    class Meta:
        """In the order they came."""

        ordering = ("pk",)

    def __str__(self) -> str:
        return f"held {self.assignment_id}"
