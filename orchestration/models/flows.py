"""Runs of the workflows, and which locked artifact stands for each of their documents now."""

from __future__ import annotations

from django.db import models

from orchestration.models.artifacts import Artifact
from orchestration.models.projects import Project
from orchestration.models.tasks import Task


class WorkflowRun(models.Model):
    """One change that a workflow makes. Shape: `task` is the root that carries it now.

    A change that is resumed after its root ended gets a new root; id and documents stay.
    """

    project = models.ForeignKey(
        Project, on_delete=models.PROTECT, related_name="workflow_runs", db_index=False
    )
    task = models.OneToOneField(Task, on_delete=models.PROTECT, related_name="workflow_run")
    name = models.CharField(max_length=40)
    change_id = models.CharField(max_length=80)
    directory = models.CharField(max_length=200)
    text = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        """A change id is unique in its project. Newest last."""

        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(fields=("project", "change_id"), name="change_id_unique"),
        )

    def __str__(self) -> str:
        return f"/{self.name} {self.change_id}"


class WorkflowDocument(models.Model):
    """A document of a run. Shape: `artifact` is the newest locked version."""

    run = models.ForeignKey(
        WorkflowRun, on_delete=models.CASCADE, related_name="documents", db_index=False
    )
    path = models.CharField(max_length=300)
    artifact = models.ForeignKey(Artifact, on_delete=models.PROTECT, related_name="+")
    updated_at = models.DateTimeField()

    class Meta:
        """One row a path."""

        ordering = ("path",)
        constraints = (
            models.UniqueConstraint(fields=("run", "path"), name="workflow_document_unique"),
        )

    def __str__(self) -> str:
        return self.path
