"""Refuse writes to a project in safe stop, and hold the results that come in: none is applied.

Source: DESIGN section 4 rule 8 ("results are held and applied after resume").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestration.errors import Conflict
from orchestration.models import Assignment, HeldResult, Project
from orchestration.rules.dag import canonical_digest
from orchestration.services.clocks import stop_clock
from orchestration.services.lookups import lock_project
from orchestration.services.work import Work
from orchestration.states import ProjectStatus

CLOSED = frozenset({ProjectStatus.SAFE_STOP, ProjectStatus.ARCHIVED})
REPORT = "report"
"""Key in `Assignment.result`: the digest of the report that ended the lease."""


def is_stopped(project: Project) -> bool:
    """Whether a project is in safe stop."""
    return project.status == ProjectStatus.SAFE_STOP


def require_not_stopped(project: Project) -> None:
    """Refuse a write to a project in safe stop. Errors: Conflict."""
    if is_stopped(project):
        raise Conflict("the project is safe_stop", code="project_safe_stop")


def lock_writable_project(project_id: int) -> Project:
    """Lock a project that takes what people and agents write.

    Errors: Conflict for one that is archived or in safe stop.
    """
    project = lock_project(project_id)
    if project.status in CLOSED:
        raise Conflict(f"the project is {project.status}", code=f"project_{project.status}")
    return project


def hold_result(
    work: Work, row: Assignment, document: Mapping[str, Any], *, is_workers: bool = False
) -> bool:
    """Keep a result for later. Return whether the same one is held already.

    Errors: Conflict for another result than the one that is held.
    Locks: expects the assignment locked, and its lease checked.
    """
    digest = canonical_digest(document)
    held = HeldResult.objects.filter(assignment=row).first()
    if held is not None:
        if held.digest == digest:
            return True
        raise Conflict("another result of this assignment is held", code="already_reported")
    stop_clock(work, row)
    HeldResult.objects.create(
        project_id=row.project_id,
        assignment=row,
        token=row.token,
        actor=work.actor.name,
        is_workers=is_workers,
        document=dict(document),
        digest=digest,
        created_at=work.now,
    )
    work.record(
        "result.held",
        subject=f"assignment:{row.pk}",
        project_id=row.project_id,
        task_id=row.task_id,
        after={"seat": row.seat, "digest": digest},
        why="the project is in safe stop",
    )
    return False
