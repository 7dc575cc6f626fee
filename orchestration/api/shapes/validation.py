"""Validation packages and control commands as the API shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import Field

from orchestration.api.shapes.base import AgentName, OrNone, RowId, Shape, TaskId
from orchestration.models import ControlCommand, ValidationPackage
from orchestration.services.packages import evidence_link
from orchestration.services.validation import Judged


class PackageShape(Shape):
    """One verdict on one attempt of a root. `claimed` is a GO that the rules overruled."""

    id: RowId
    task: TaskId
    attempt: int
    verdict: str
    claimed: OrNone
    failure_class: OrNone
    root_cause: str
    evidence_link: str
    backend: str
    agent: AgentName
    posted_by: OrNone
    is_authoritative: bool
    package: Annotated[dict[str, Any], Field(validation_alias="body")]
    concluded_at: datetime | None
    created_at: datetime

    @classmethod
    def of_package(cls, row: ValidationPackage) -> Self:
        """Shape a package with its link."""
        held = {name: getattr(row, name) for name in _PLAIN}
        return cls.model_validate(
            {**held, "pk": row.pk, "task_id": row.task_id, "body": row.body,
             "agent": row.agent, "evidence_link": evidence_link(row)}
        )  # fmt: skip


_PLAIN = (
    "attempt", "verdict", "claimed", "failure_class", "root_cause", "backend", "posted_by",
    "is_authoritative", "concluded_at", "created_at",
)  # fmt: skip


class FailureContext(Shape):
    """What the next attempt is told about the one that failed."""

    failed_task: str
    root_cause: str
    evidence_link: str


class StepTwoContext(Shape):
    """What step 2, planning, starts from."""

    original_spec_id: str
    task_to_process: str
    failure_context: FailureContext | None


class CommandShape(Shape):
    """A control command. `is_list_partial`: the list holds only what the verdict touched."""

    id: RowId
    task: TaskId
    package: Annotated[str | None, Field(default=None)]
    next_action: str
    context_for_step_2: StepTwoContext | None
    final_report: str | None
    master_list_after: dict[str, Any]
    is_list_partial: bool
    created_at: datetime

    @classmethod
    def of_command(cls, row: ControlCommand) -> Self:
        """Shape a stored command."""
        names = ("next_action", "context_for_step_2", "final_report", "master_list_after",
                 "is_list_partial", "created_at")  # fmt: skip
        held = {name: getattr(row, name) for name in names}
        package = str(row.package_id) if row.package_id is not None else None
        return cls.model_validate(
            {**held, "pk": row.pk, "task_id": row.task_id, "package": package}
        )


class JudgedShape(Shape):
    """The command that a package led to, bare.

    All its fields are null for a direct task, and while a GO waits (`validation.concluded_at`).
    """

    next_action: str | None
    context_for_step_2: StepTwoContext | None
    final_report: str | None
    master_list_after: dict[str, Any] | None
    verdict: str
    validation: PackageShape

    @classmethod
    def of_judged(cls, judged: Judged) -> Self:
        """Shape what became of a package."""
        row = judged.command
        return cls.model_validate(
            {
                "next_action": row.next_action if row else None,
                "context_for_step_2": row.context_for_step_2 if row else None,
                "final_report": row.final_report if row else None,
                "master_list_after": row.master_list_after if row else None,
                "verdict": judged.package.verdict,
                "validation": PackageShape.of_package(judged.package),
            }
        )


class PackageList(Shape):
    """A page of packages."""

    results: list[PackageShape]
    next: str | None
    previous: str | None


class CommandList(Shape):
    """A page of control commands."""

    results: list[CommandShape]
    next: str | None
    previous: str | None
