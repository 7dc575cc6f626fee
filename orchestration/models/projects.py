"""A project: a workspace with one master task list and one policy."""

from __future__ import annotations

from django.db import models

from orchestration.models.fields import known_state, state_field
from orchestration.policy import Policy, load_policy
from orchestration.states import ProjectStatus


class Project(models.Model):
    """A workspace with one master task list, one policy and optionally one directory."""

    slug = models.SlugField(max_length=60, unique=True)
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True, default="")
    status = state_field(ProjectStatus, ProjectStatus.ACTIVE)
    status_reason = models.CharField(max_length=200, blank=True, default="")
    is_paused_by_sir = models.BooleanField(default=False)
    key_prefix = models.CharField(max_length=12)
    task_sequence = models.PositiveIntegerField(default=0)
    policy_json = models.TextField(default="{}")
    policy_version = models.PositiveIntegerField(default=1)
    workspace = models.CharField(max_length=1000, blank=True, default="")
    language = models.CharField(max_length=10, default="en")
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        """Constraints of a project."""

        ordering = ("pk",)
        constraints = (known_state(ProjectStatus, "project_status_known"),)

    def __str__(self) -> str:
        return self.slug

    @property
    def policy(self) -> Policy:
        """The whole policy: the defaults with this project's overrides on top."""
        return load_policy(self.policy_json)
