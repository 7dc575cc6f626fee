"""Plans, their audits, the locked blueprint and deviations from it."""

from __future__ import annotations

from django.db import models

from orchestration.models.agents import Agent
from orchestration.models.fields import choices, known_state, state_field
from orchestration.models.tasks import Task
from orchestration.states import AuditVerdict, PlanStatus


class Plan(models.Model):
    """One revision of a task's plan. A light plan is an unaudited one."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="plans")
    attempt = models.PositiveIntegerField(default=1)
    revision = models.PositiveIntegerField(default=1)
    status = state_field(PlanStatus, PlanStatus.DRAFT)
    is_light = models.BooleanField(default=False)
    is_override = models.BooleanField(default=False)
    is_trusted = models.BooleanField(default=False)
    backend = models.CharField(max_length=20)
    agent = models.ForeignKey(Agent, null=True, blank=True, on_delete=models.SET_NULL)
    body = models.JSONField(default=dict)
    digest = models.CharField(max_length=64, blank=True, default="")
    faults = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        """One row a revision."""

        ordering = ("pk",)
        constraints = (
            known_state(PlanStatus, "plan_status_known"),
            models.UniqueConstraint(
                fields=("task", "attempt", "revision"), name="plan_revision_unique"
            ),
        )

    def __str__(self) -> str:
        return f"plan {self.task_id} r{self.revision}"


class AuditReport(models.Model):
    """What an auditor found in one plan revision."""

    plan = models.ForeignKey(Plan, on_delete=models.CASCADE, related_name="audits")
    verdict = models.CharField(max_length=30, choices=choices(AuditVerdict))
    checks = models.JSONField(default=list)
    suggestions = models.JSONField(default=list, blank=True)
    backend = models.CharField(max_length=20)
    agent = models.ForeignKey(Agent, null=True, blank=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        """Oldest first."""

        ordering = ("pk",)

    def __str__(self) -> str:
        return f"{self.verdict} of plan {self.plan_id}"


class Blueprint(models.Model):
    """A frozen plan. A trigger refuses every change to the row."""

    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="blueprints")
    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, related_name="blueprints")
    number = models.PositiveIntegerField()
    canonical = models.TextField()
    sha256 = models.CharField(max_length=64)
    suggestions = models.JSONField(default=list, blank=True)
    locked_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        """One row a version."""

        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(fields=("task", "number"), name="blueprint_number_unique"),
        )

    def __str__(self) -> str:
        return f"blueprint {self.task_id} v{self.number}"


class Deviation(models.Model):
    """A recorded departure from a locked blueprint."""

    blueprint = models.ForeignKey(Blueprint, on_delete=models.PROTECT, related_name="deviations")
    change = models.CharField(
        max_length=10,
        choices=[("added", "added"), ("skipped", "skipped"), ("changed", "changed")],
    )
    step_key = models.CharField(max_length=100, blank=True, default="")
    new_step = models.JSONField(null=True, blank=True)
    reason = models.TextField()
    actor = models.CharField(max_length=140)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        """Oldest first."""

        ordering = ("pk",)

    def __str__(self) -> str:
        return f"{self.change} {self.step_key}"
