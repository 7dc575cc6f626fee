"""Sir's inbox: decisions, and what each human has seen and drafted."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from orchestration.models.fields import choices, known_state, state_field
from orchestration.models.plans import Plan
from orchestration.models.projects import Project
from orchestration.models.reviews import Defect
from orchestration.models.tasks import Task
from orchestration.states import DecisionKind, DecisionStatus


class Decision(models.Model):
    """One row of the inbox. The digest covers question, content and verdict codes."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="decisions")
    task = models.ForeignKey(
        Task, null=True, blank=True, on_delete=models.PROTECT, related_name="decisions"
    )
    defect = models.ForeignKey(
        Defect, null=True, blank=True, on_delete=models.PROTECT, related_name="decisions"
    )
    plan = models.ForeignKey(
        Plan, null=True, blank=True, on_delete=models.PROTECT, related_name="decisions"
    )
    kind = models.CharField(max_length=20, choices=choices(DecisionKind))
    priority = models.PositiveSmallIntegerField()
    is_p0 = models.BooleanField(default=False)
    status = state_field(DecisionStatus, DecisionStatus.OPEN)
    version = models.PositiveIntegerField(default=1)
    digest = models.CharField(max_length=64)
    title = models.CharField(max_length=300)
    question = models.TextField()
    content = models.JSONField(default=dict)
    options = models.JSONField(default=list)
    evidence = models.JSONField(default=list, blank=True)
    deadline = models.DateTimeField(null=True, blank=True)
    on_expiry = models.JSONField(null=True, blank=True)
    remind_at = models.DateTimeField(null=True, blank=True)
    reminded = models.PositiveIntegerField(default=0)
    is_deadline_told = models.BooleanField(default=False)
    verdict = models.CharField(max_length=30, blank=True, default="")
    reason = models.TextField(blank=True, default="")
    payload = models.JSONField(default=dict, blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="decisions",
    )
    decided_by_policy = models.CharField(max_length=80, blank=True, default="")
    decided_at = models.DateTimeField(null=True, blank=True)
    closed_reason = models.CharField(max_length=80, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        """What must never be true of an inbox row, said to the database."""

        ordering = ("pk",)
        constraints = (
            known_state(DecisionStatus, "decision_status_known"),
            models.CheckConstraint(
                condition=models.Q(status=DecisionStatus.OPEN.value, decided_at__isnull=True)
                | ~models.Q(status=DecisionStatus.OPEN.value) & models.Q(decided_at__isnull=False),
                name="decision_closed_has_time",
            ),
            models.CheckConstraint(
                condition=~models.Q(status=DecisionStatus.DECIDED.value)
                | models.Q(decided_by__isnull=False)
                | ~models.Q(decided_by_policy=""),
                name="decision_decided_has_actor",
            ),
            models.UniqueConstraint(
                fields=("defect", "kind"),
                condition=models.Q(status=DecisionStatus.OPEN.value, defect__isnull=False),
                name="decision_one_open_per_defect",
            ),
            models.UniqueConstraint(
                fields=("task", "kind"),
                condition=models.Q(status=DecisionStatus.OPEN.value, defect__isnull=True),
                name="decision_one_open_per_task",
            ),
        )
        indexes = (
            models.Index(
                fields=("project", "priority"),
                condition=models.Q(status=DecisionStatus.OPEN.value),
                name="decision_open_idx",
            ),
            models.Index(
                fields=("remind_at",),
                condition=models.Q(status=DecisionStatus.OPEN.value),
                name="decision_remind_idx",
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"


class DecisionView(models.Model):
    """What one human has seen of one decision, and the text not yet sent."""

    decision = models.ForeignKey(Decision, on_delete=models.CASCADE, related_name="views")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    seen_at = models.DateTimeField(null=True, blank=True)
    draft = models.TextField(blank=True, default="")
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        """One row a human and item."""

        constraints = (
            models.UniqueConstraint(fields=("decision", "user"), name="decision_view_unique"),
        )

    def __str__(self) -> str:
        return f"{self.user_id} on {self.decision_id}"
