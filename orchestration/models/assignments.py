"""Assignments: one piece of agent work in one seat, with its lease, log and tool calls."""

from __future__ import annotations

from django.db import models

from orchestration.models.agents import Agent
from orchestration.models.fields import choices, known_state, state_field
from orchestration.models.plans import Plan
from orchestration.models.projects import Project
from orchestration.models.tasks import Task
from orchestration.states import AssignmentStatus, Seat


class Assignment(models.Model):
    """One piece of agent work. `token` fences: a result under an older token is refused.

    Shape: `corrections` is a list of texts, oldest first: what was corrected or answered when its
    executor's intent was confirmed. They hold for whoever works on it and are part of its prompt.
    """

    project = models.ForeignKey(
        Project, on_delete=models.PROTECT, related_name="assignments", db_index=False
    )
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="assignments")
    plan = models.ForeignKey(
        Plan, null=True, blank=True, on_delete=models.PROTECT, related_name="assignments"
    )
    defect = models.ForeignKey(
        "orchestration.Defect",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="assignments",
    )
    seat = models.CharField(max_length=20, choices=choices(Seat))
    backend = models.CharField(max_length=20)
    status = state_field(AssignmentStatus, AssignmentStatus.QUEUED)
    attempt = models.PositiveIntegerField(default=1)
    token = models.PositiveIntegerField(default=0)
    lease_token = models.CharField(max_length=64, blank=True, default="")
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    lease_remaining_seconds = models.FloatField(null=True, blank=True)
    is_clock_stopped = models.BooleanField(default=False)
    has_progress = models.BooleanField(default=False)
    agent = models.ForeignKey(
        Agent, null=True, blank=True, on_delete=models.SET_NULL, related_name="assignments"
    )
    worker = models.CharField(max_length=120, blank=True, default="")
    process_group = models.CharField(max_length=120, blank=True, default="")
    transient_count = models.PositiveIntegerField(default=0)
    not_before = models.DateTimeField(null=True, blank=True)
    deadline = models.DateTimeField(null=True, blank=True)
    deadline_remaining_seconds = models.FloatField(null=True, blank=True)
    input = models.JSONField(default=dict, blank=True)
    prompt = models.TextField(blank=True, default="")
    corrections = models.JSONField(default=list, blank=True)
    hints = models.JSONField(default=dict, blank=True)
    limits = models.JSONField(default=dict, blank=True)
    usage = models.JSONField(default=dict, blank=True)
    harness = models.JSONField(null=True, blank=True)
    result = models.JSONField(null=True, blank=True)
    error = models.TextField(blank=True, default="")
    queued_at = models.DateTimeField(auto_now_add=True)
    leased_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        """Constraints and the partial index that the work queue is."""

        ordering = ("pk",)
        constraints = (
            known_state(AssignmentStatus, "assignment_status_known"),
            models.UniqueConstraint(
                fields=("task",),
                condition=models.Q(seat=Seat.EXECUTOR.value)
                & models.Q(
                    status__in=[AssignmentStatus.QUEUED.value, AssignmentStatus.LEASED.value]
                ),
                name="assignment_one_live_executor",
            ),
            models.CheckConstraint(
                condition=~models.Q(status=AssignmentStatus.LEASED.value)
                | models.Q(lease_expires_at__isnull=False)
                | models.Q(is_clock_stopped=True),
                name="assignment_lease_has_end",
            ),
        )
        indexes = (
            models.Index(
                fields=("backend", "id"),
                condition=models.Q(status=AssignmentStatus.QUEUED.value),
                name="assignment_queue_idx",
            ),
            models.Index(
                fields=("lease_expires_at",),
                condition=models.Q(status=AssignmentStatus.LEASED.value),
                name="assignment_lease_idx",
            ),
            models.Index(
                fields=("project",),
                condition=models.Q(backend="external", leased_at__isnull=False),
                name="assignment_agents_idx",
            ),
            models.Index(
                fields=("project",),
                condition=models.Q(
                    backend="external", leased_at__isnull=False, usage__has_key="cost_usd"
                ),
                name="assignment_costs_idx",
            ),
        )

    def __str__(self) -> str:
        return f"{self.seat} of {self.task_id} #{self.token}"


class ToolCall(models.Model):
    """One tool call that a harness or an agent recorded. Shape: FORMATS, tool-call record."""

    assignment = models.ForeignKey(Assignment, on_delete=models.CASCADE, related_name="tool_calls")
    tool = models.CharField(max_length=120)
    command = models.TextField(blank=True, default="")
    exit_code = models.IntegerField(null=True, blank=True)
    outcome = models.CharField(
        max_length=12,
        choices=[("ok", "ok"), ("failed", "failed"), ("interrupted", "interrupted")],
    )
    output_tail = models.TextField(blank=True, default="")
    duration_ms = models.PositiveIntegerField(null=True, blank=True)
    source = models.CharField(max_length=10, choices=[("harness", "harness"), ("agent", "agent")])
    call_id = models.CharField(max_length=200, blank=True, default="", db_default="")
    input_digest = models.CharField(max_length=64, blank=True, default="", db_default="")
    at = models.DateTimeField()

    class Meta:
        """Oldest first; a call that its harness names is recorded once."""

        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(
                fields=("assignment", "call_id"),
                condition=~models.Q(call_id=""),
                name="tool_call_once",
            ),
        )

    def __str__(self) -> str:
        return f"{self.tool} {self.outcome}"


class LogChunk(models.Model):
    """A piece of an assignment's live log."""

    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, related_name="log_chunks", db_index=False
    )
    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="log_chunks")
    assignment = models.ForeignKey(
        Assignment, null=True, blank=True, on_delete=models.CASCADE, related_name="log_chunks"
    )
    source = models.CharField(max_length=120)
    text = models.TextField()
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        """Oldest first; read by project, newest page first."""

        ordering = ("pk",)
        indexes = (models.Index(fields=("project", "id"), name="log_project_idx"),)

    def __str__(self) -> str:
        return self.text[:60]
