"""Tasks, their dependencies, S0/S1 assessments and comments. A step is a child task."""

from __future__ import annotations

from django.db import models

from orchestration.models.agents import Agent
from orchestration.models.fields import known_state, optional_enum, state_field
from orchestration.models.projects import Project
from orchestration.states import (
    CommentType,
    Complexity,
    RiskLevel,
    Route,
    TaskKind,
    TaskStatus,
)


class Task(models.Model):
    """The single unit of work: a root on the master list, a message, or a step of a blueprint."""

    project = models.ForeignKey(
        Project, on_delete=models.PROTECT, related_name="tasks", db_index=False
    )
    number = models.PositiveIntegerField()
    external_key = models.CharField(max_length=200, blank=True, default="")
    kind = state_field(TaskKind, TaskKind.TASK)
    title = models.CharField(max_length=300)
    description = models.TextField(blank=True, default="")
    specification = models.TextField(blank=True, default="")
    spec_id = models.CharField(max_length=200, blank=True, default="")

    parent = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="children",
        db_index=False,
    )
    root = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="descendants",
        db_index=False,
    )
    blueprint = models.ForeignKey(
        "orchestration.Blueprint",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="steps",
    )
    step_key = models.CharField(max_length=100, blank=True, default="")
    definition_hash = models.CharField(max_length=64, blank=True, default="")
    phase = models.PositiveIntegerField(default=1)
    depth = models.PositiveSmallIntegerField(default=0)
    rank = models.IntegerField(default=0)

    status = state_field(TaskStatus, TaskStatus.PENDING)
    status_detail = models.TextField(blank=True, default="")
    cancel_reason = models.CharField(max_length=60, blank=True, default="")
    asked_from = optional_enum(TaskStatus)
    is_superseded = models.BooleanField(default=False)
    last_outcome = models.CharField(max_length=300, blank=True, default="")

    route = optional_enum(Route)
    complexity = optional_enum(Complexity)
    risk_level = optional_enum(RiskLevel)
    score = models.PositiveSmallIntegerField(null=True, blank=True)
    is_assessed = models.BooleanField(default=False)
    is_planned = models.BooleanField(default=False)
    is_ending = models.BooleanField(default=False)
    is_replanning = models.BooleanField(default=False)
    is_self_initiated = models.BooleanField(default=False)
    role = models.CharField(max_length=40, blank=True, default="")

    scope = models.JSONField(default=list, blank=True)
    facts = models.JSONField(default=list, blank=True)
    constraints = models.JSONField(default=list, blank=True)
    expected_artifacts = models.JSONField(default=list, blank=True)
    verify = models.JSONField(default=list, blank=True)
    run = models.JSONField(default=list, blank=True)
    on_failure = models.JSONField(null=True, blank=True)
    writes = models.JSONField(default=list, blank=True)
    risks = models.JSONField(default=list, blank=True)
    resources = models.JSONField(default=list, blank=True)
    is_irreversible = models.BooleanField(default=False)
    is_delegated = models.BooleanField(default=True)
    estimate_minutes = models.FloatField(null=True, blank=True)

    open_phase = models.PositiveIntegerField(default=1)
    remaining_dependencies = models.PositiveIntegerField(default=0)
    is_awaiting_commands = models.BooleanField(default=False)
    attempt = models.PositiveIntegerField(default=1)
    tries = models.PositiveIntegerField(default=0)
    failure_count = models.PositiveIntegerField(default=0)
    fix_round = models.PositiveIntegerField(default=0)
    revisions_used = models.PositiveIntegerField(default=0)
    estimated_steps = models.PositiveIntegerField(null=True, blank=True)
    actual_steps = models.PositiveIntegerField(default=0)
    unexpected_blockers = models.PositiveIntegerField(default=0)
    reported_domains = models.JSONField(default=list, blank=True)
    is_uncertain = models.BooleanField(default=False)
    transient_failures = models.PositiveIntegerField(default=0)
    replan_at = models.DateTimeField(null=True, blank=True)
    awaits_verdict = models.BooleanField(default=False)
    withholds_dependents = models.BooleanField(default=False)
    blocked_by = models.ManyToManyField(
        "self", symmetrical=False, blank=True, related_name="blocks"
    )
    approved_digests = models.JSONField(default=list, blank=True)
    failure_context = models.JSONField(default=list, blank=True)
    fixes = models.ForeignKey(
        "orchestration.Defect",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="fix_tasks",
        db_index=False,
    )
    assignee = models.ForeignKey(
        Agent,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="tasks",
        db_index=False,
    )
    deadline = models.DateTimeField(null=True, blank=True)
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        """Constraints and the indexes that the engine's queries lean on."""

        ordering = ("pk",)
        constraints = (
            known_state(TaskStatus, "task_status_known"),
            models.UniqueConstraint(fields=("project", "number"), name="task_number_unique"),
            models.UniqueConstraint(
                fields=("project", "external_key"),
                condition=~models.Q(external_key="") & models.Q(parent__isnull=True),
                name="task_external_key_unique",
            ),
            models.CheckConstraint(condition=models.Q(depth__lte=3), name="task_depth_at_most_3"),
            models.CheckConstraint(
                condition=models.Q(cancel_reason="") | models.Q(status=TaskStatus.CANCELLED.value),
                name="task_cancel_reason_only_when_cancelled",
            ),
        )
        indexes = (
            models.Index(fields=("parent", "phase", "status"), name="task_phase_idx"),
            models.Index(fields=("project", "parent", "status"), name="task_list_idx"),
            models.Index(fields=("root", "status"), name="task_root_idx"),
            # What the loop starts next, of however many wait.
            models.Index(
                fields=("project", "-attempt", "rank", "id"),
                condition=models.Q(
                    parent__isnull=True,
                    status=TaskStatus.PENDING.value,
                    is_planned=True,
                ),
                name="task_next_root_idx",
            ),
            models.Index(
                fields=("project", "status", "number"),
                condition=models.Q(parent__isnull=True, kind=TaskKind.TASK.value),
                name="task_master_idx",
            ),
            models.Index(
                fields=("project", "status"),
                condition=~models.Q(status__in=["done", "cancelled"]),
                name="task_open_idx",
            ),
            # What the plans still hold is added up from here alone.
            models.Index(
                fields=("project", "kind", "status", "estimate_minutes"),
                condition=models.Q(is_planned=False, is_superseded=False)
                & ~models.Q(status__in=["done", "cancelled"]),
                name="task_left_idx",
            ),
            models.Index(
                fields=("project", "title", "number"),
                condition=models.Q(parent__isnull=True, kind=TaskKind.TASK.value),
                name="task_title_idx",
            ),
            models.Index(
                fields=("deadline",),
                condition=models.Q(deadline__isnull=False),
                name="task_deadline_idx",
            ),
            models.Index(
                fields=("replan_at",),
                condition=models.Q(replan_at__isnull=False),
                name="task_replan_idx",
            ),
            models.Index(
                fields=("project",),
                condition=models.Q(awaits_verdict=True),
                name="task_verdict_idx",
            ),
        )

    def __str__(self) -> str:
        return f"{self.project.key_prefix}-{self.number}"

    @property
    def is_root(self) -> bool:
        """Whether the task stands on the master list (or is a message) and has no parent."""
        return self.parent_id is None

    @property
    def is_spawned(self) -> bool:
        """Whether an agent made it below its own task; a step of a plan has a blueprint."""
        return self.parent_id is not None and self.blueprint_id is None

    @property
    def lineage_root_id(self) -> int:
        """The id of the root that failures and spending are counted on."""
        return self.root_id or self.pk


class TaskDependency(models.Model):
    """An edge of the DAG: `task` starts after `requires`."""

    task = models.ForeignKey(
        Task, on_delete=models.CASCADE, related_name="requirements", db_index=False
    )
    requires = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="dependents")

    class Meta:
        """One edge a pair, none to itself."""

        constraints = (
            models.UniqueConstraint(fields=("task", "requires"), name="dependency_unique"),
            models.CheckConstraint(
                condition=~models.Q(task=models.F("requires")), name="dependency_not_self"
            ),
        )

    def __str__(self) -> str:
        return f"{self.task_id} after {self.requires_id}"


class Assessment(models.Model):
    """One S0 or S1 record of a task, with what it was decided on.

    Shape: `traffic_of` is the project whose traffic it counts to; None for steps and re-scores.
    """

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="assessments")
    traffic_of = models.ForeignKey(
        Project,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="traffic",
        db_index=False,
    )
    stage = models.CharField(max_length=2, choices=[("S0", "S0"), ("S1", "S1")])
    backend = models.CharField(max_length=20, default="rules")
    agent = models.ForeignKey(
        Agent, null=True, blank=True, on_delete=models.SET_NULL, db_index=False
    )
    outcome = models.CharField(max_length=20)
    rule = models.CharField(max_length=80, blank=True, default="")
    trigger = models.CharField(max_length=60, blank=True, default="")
    signals = models.JSONField(default=list, blank=True)
    dimensions = models.JSONField(default=dict, blank=True)
    evidence = models.JSONField(default=dict, blank=True)
    total = models.PositiveSmallIntegerField(null=True, blank=True)
    rationale = models.TextField(blank=True, default="")
    elapsed_us = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        """Oldest first; traffic is counted from its index alone."""

        ordering = ("pk",)
        indexes = (
            models.Index(
                fields=("traffic_of", "stage", "outcome", "task"),
                condition=models.Q(traffic_of__isnull=False),
                name="assessment_traffic_idx",
            ),
            models.Index(fields=("created_at",), name="assessment_created_idx"),
        )

    def __str__(self) -> str:
        return f"{self.stage} {self.outcome}"


class Comment(models.Model):
    """A comment on a task; a hand-off is one too."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="comments")
    comment_type = state_field(CommentType, CommentType.GENERAL)
    body = models.TextField()
    author = models.CharField(max_length=120)
    agent = models.ForeignKey(
        Agent, null=True, blank=True, on_delete=models.SET_NULL, db_index=False
    )
    attempt = models.PositiveIntegerField(default=1)
    assignment = models.ForeignKey(
        "orchestration.Assignment",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        db_index=False,
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        """Oldest first; the few observations of a tree are found without its hand-offs."""

        ordering = ("pk",)
        indexes = (
            models.Index(
                fields=("task",),
                condition=models.Q(comment_type=CommentType.OBSERVATION.value),
                name="comment_observation_idx",
            ),
        )

    def __str__(self) -> str:
        return f"{self.comment_type} on {self.task_id}"
