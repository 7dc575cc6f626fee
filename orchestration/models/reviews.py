"""QA reviews and the defects they find."""

from __future__ import annotations

from django.db import models

from orchestration.models.agents import Agent
from orchestration.models.fields import choices, known_state, state_field
from orchestration.models.tasks import Task
from orchestration.states import DefectStatus, Severity


class QAReview(models.Model):
    """One QA verdict on one version of a step's outputs."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="reviews")
    attempt = models.PositiveIntegerField(default=1)
    fix_round = models.PositiveIntegerField(default=0)
    verdict = models.CharField(max_length=4, choices=[("pass", "pass"), ("fail", "fail")])
    backend = models.CharField(max_length=20)
    agent = models.ForeignKey(
        Agent, null=True, blank=True, on_delete=models.SET_NULL, db_index=False
    )
    artifact_digests = models.JSONField(default=list, blank=True)
    low_defects = models.CharField(max_length=6, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        """Oldest first."""

        ordering = ("pk",)

    def __str__(self) -> str:
        return f"{self.verdict} on {self.task_id}"


class Defect(models.Model):
    """A graded defect; its severity decides who approves the fix."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="defects")
    review = models.ForeignKey(
        QAReview, null=True, blank=True, on_delete=models.SET_NULL, related_name="defects"
    )
    artifact = models.ForeignKey(
        "orchestration.Artifact",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="defects",
    )
    severity = models.CharField(max_length=10, choices=choices(Severity))
    category = models.CharField(max_length=12, default="defect")
    status = state_field(DefectStatus, DefectStatus.OPEN)
    title = models.CharField(max_length=300)
    description = models.TextField(blank=True, default="")
    evidence = models.JSONField(default=dict, blank=True)
    proposed_fix = models.JSONField(null=True, blank=True)
    source_key = models.CharField(max_length=64, blank=True, default="")
    fix_round = models.PositiveIntegerField(default=0)
    rounds = models.JSONField(default=list, blank=True)
    impact = models.JSONField(default=list, blank=True)
    impact_total = models.PositiveIntegerField(default=0)
    guidance = models.TextField(blank=True, default="")
    raised_by = models.CharField(max_length=140)
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        """Oldest first."""

        ordering = ("pk",)
        constraints = (known_state(DefectStatus, "defect_status_known"),)

    def __str__(self) -> str:
        return f"{self.severity}: {self.title}"
