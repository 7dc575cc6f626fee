"""Workflows and their runs as the API shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from orchestration.api.shapes.base import Shape
from orchestration.models import WorkflowRun


class WorkflowShape(Shape):
    """A slash command. Shape: `agent` is the seat or profile that takes the text first."""

    name: str
    description: str
    agent: str


class WorkflowList(Shape):
    """The slash commands that exist."""

    results: list[WorkflowShape]


class FlowDocumentShape(Shape):
    """A document of a change, as it is locked now."""

    path: str
    artifact: str
    version: int
    sha256: str
    content_url: str


class WorkflowRunShape(Shape):
    """One change. Shape: `task` is the root that carries it now, with its key and status."""

    change_id: str
    workflow: str
    directory: str
    text: str
    task: str
    key: str
    status: str
    documents: list[FlowDocumentShape]
    created_at: datetime

    @classmethod
    def of_run(cls, run: WorkflowRun) -> Self:
        """Shape a run whose task and documents are loaded."""
        return cls(
            change_id=run.change_id,
            workflow=run.name,
            directory=run.directory,
            text=run.text,
            task=str(run.task_id),
            key=str(run.task),
            status=run.task.status,
            created_at=run.created_at,
            documents=[
                FlowDocumentShape(
                    path=one.path,
                    artifact=str(one.artifact_id),
                    version=one.artifact.version,
                    sha256=one.artifact.content_id,
                    content_url=f"/api/artifacts/{one.artifact_id}/content",
                )
                for one in run.documents.all()
            ],
        )


class WorkflowRunList(Shape):
    """The changes of a project."""

    results: list[WorkflowRunShape]


class AskedShape(Shape):
    """A round of questions that waits for Sir."""

    decision: str
    round: int
    question: str
