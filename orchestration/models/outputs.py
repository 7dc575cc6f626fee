"""What steps hand in, and what the verification layers say about it."""

from __future__ import annotations

from django.db import models

from orchestration.models.assignments import Assignment
from orchestration.models.fields import choices, state_field
from orchestration.models.tasks import Task
from orchestration.states import LayerOutcome, OutputType


class Output(models.Model):
    """One handed-in result. Each fix makes a new version with a change note."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="outputs")
    assignment = models.ForeignKey(
        Assignment,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="outputs",
        db_index=False,
    )
    attempt = models.PositiveIntegerField(default=1)
    version = models.PositiveIntegerField(default=1)
    type = state_field(OutputType, OutputType.OTHER)
    title = models.CharField(max_length=300)
    summary = models.TextField(blank=True, default="")
    content = models.TextField(blank=True, default="")
    path = models.CharField(max_length=1000, blank=True, default="")
    sha256 = models.CharField(max_length=64, blank=True, default="")
    size_bytes = models.PositiveBigIntegerField(default=0)
    assertions = models.JSONField(default=list, blank=True)
    marks = models.JSONField(default=list, blank=True)
    change_note = models.TextField(blank=True, default="")
    is_orphan = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        """Oldest first."""

        ordering = ("pk",)

    def __str__(self) -> str:
        return f"{self.title} v{self.version}"


class Verification(models.Model):
    """The outcome of one verification layer, or of one command that we ran ourselves."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="verifications")
    output = models.ForeignKey(
        Output,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="verifications",
        db_index=False,
    )
    attempt = models.PositiveIntegerField(default=1)
    fix_round = models.PositiveIntegerField(default=0)
    layer = models.CharField(max_length=10)
    name = models.CharField(max_length=300, blank=True, default="")
    finding_key = models.CharField(max_length=64, blank=True, default="")
    outcome = models.CharField(max_length=14, choices=choices(LayerOutcome))
    grade = models.CharField(max_length=20, blank=True, default="")
    command = models.JSONField(null=True, blank=True)
    exit_code = models.IntegerField(null=True, blank=True)
    output_tail = models.TextField(blank=True, default="")
    duration_ms = models.PositiveIntegerField(null=True, blank=True)
    findings = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        """Oldest first."""

        ordering = ("pk",)

    def __str__(self) -> str:
        return f"{self.layer} {self.outcome}"
