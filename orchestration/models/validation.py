"""The master loop's rows: validation packages of roots and the control commands they led to."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from orchestration.contracts.loop import FailureClass, NextAction, Verdict
from orchestration.models.agents import Agent
from orchestration.models.fields import choices, known_state, optional_enum
from orchestration.models.projects import Project
from orchestration.models.tasks import Task


class ValidationPackage(models.Model):
    """One verdict on one attempt of a root, with its evidence.

    Shape: `body` is the package as FORMATS writes it; `claimed` the verdict that was posted where
    the rules overruled it; `concluded_at` is empty while the loop waits to act on it.
    """

    project = models.ForeignKey(
        Project, on_delete=models.PROTECT, related_name="validation_packages", db_index=False
    )
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="validation_packages")
    attempt = models.PositiveIntegerField(default=1)
    verdict = models.CharField(max_length=20, choices=choices(Verdict))
    claimed = optional_enum(Verdict)
    failure_class = optional_enum(FailureClass)
    root_cause = models.TextField(blank=True, default="")
    body = models.JSONField(default=dict)
    attachments = models.JSONField(default=dict, blank=True)
    backend = models.CharField(max_length=20)
    agent = models.ForeignKey(
        Agent, null=True, blank=True, on_delete=models.SET_NULL, db_index=False
    )
    posted_by = models.CharField(max_length=140, blank=True, default="")
    is_authoritative = models.BooleanField(default=False)
    concluded_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """Oldest first."""

        ordering = ("pk",)
        constraints = (known_state(Verdict, "package_verdict_known", "verdict"),)

    def __str__(self) -> str:
        return f"{self.verdict} on {self.task_id}"


class ControlCommand(models.Model):
    """What the loop decided after one verdict. A trigger refuses every change to the row.

    Shape: `context_for_step_2` and `master_list_after` as DESIGN section 10 writes them; of a long
    list only the entries that this verdict touched (`is_list_partial`).
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="control_commands")
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="control_commands")
    package = models.ForeignKey(
        ValidationPackage, null=True, blank=True, on_delete=models.PROTECT, db_index=False
    )
    next_action = models.CharField(max_length=24, choices=choices(NextAction))
    context_for_step_2 = models.JSONField(null=True, blank=True)
    final_report = models.TextField(null=True, blank=True)  # noqa: DJ001  # null is "not given"
    master_list_after = models.JSONField(default=dict)
    is_list_partial = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """Oldest first."""

        ordering = ("pk",)
        constraints = (known_state(NextAction, "command_action_known", "next_action"),)

    def __str__(self) -> str:
        return f"{self.next_action} after {self.task_id}"
