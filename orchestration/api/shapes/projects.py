"""Projects as the API shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Self

from orchestration.api.shapes.base import Shape
from orchestration.models import Project


class ProjectShape(Shape):
    """A project. `draining` counts the leases that still live while it is not active."""

    id: str
    slug: str
    name: str
    description: str
    status: str
    status_reason: str
    draining: int
    key_prefix: str
    workspace: str
    language: str
    policy_version: int
    task_counts: dict[str, int]
    open_decisions: int
    version: int
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of_counts(
        cls,
        project: Project,
        *,
        draining: int,
        task_counts: dict[str, int],
        open_decisions: int,
        **more: Any,
    ) -> Self:
        """Shape a project with its counts."""
        return cls(
            id=str(project.pk),
            slug=project.slug,
            name=project.name,
            description=project.description,
            status=project.status,
            status_reason=project.status_reason,
            draining=draining,
            key_prefix=project.key_prefix,
            workspace=project.workspace,
            language=project.language,
            policy_version=project.policy_version,
            task_counts=task_counts,
            open_decisions=open_decisions,
            version=project.version,
            created_at=project.created_at,
            updated_at=project.updated_at,
            **more,
        )


class ProjectDetail(ProjectShape):
    """A project with its whole policy: the defaults with its own values on top."""

    policy: dict[str, Any]


class ProjectPage(Shape):
    """One page of projects."""

    results: list[ProjectShape]
    next: str | None
    previous: str | None
