"""Assessments, plans, blueprints, verifications, reviews and defects as the API shows them."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from orchestration.api.shapes.base import AgentName, Id, OptionalId, OrNone, RowId, Shape

OutputId = Annotated[OptionalId, Field(validation_alias="output_id")]


class AssessmentShape(Shape):
    """One S0 or S1 record. Units: elapsed_us in microseconds."""

    id: RowId
    stage: str
    backend: str
    agent: AgentName
    outcome: str
    rule: str
    trigger: str
    signals: list[Any]
    dimensions: dict[str, Any]
    evidence: Any
    total: int | None
    rationale: str
    elapsed_us: int
    created_at: datetime


class AuditReportShape(Shape):
    """What an auditor found in a plan."""

    id: RowId
    verdict: str
    checks: list[Any]
    suggestions: list[Any]
    backend: str
    agent: AgentName
    created_at: datetime


def _all(manager: Any) -> Any:
    return list(manager.all()) if hasattr(manager, "all") else manager


class PlanShape(Shape):
    """A revision of a plan, with its audits. A light plan is an unaudited one."""

    id: RowId
    attempt: int
    revision: int
    status: str
    is_light: bool
    is_override: bool
    backend: str
    agent: AgentName
    body: dict[str, Any]
    digest: str
    faults: list[Any]
    audits: Annotated[list[AuditReportShape], BeforeValidator(_all)]
    created_at: datetime


class BlueprintShape(Shape):
    """The frozen plan that stands. `sha256` is of its canonical JSON."""

    id: RowId
    number: int
    plan: Annotated[Id, Field(validation_alias="plan_id")]
    sha256: str
    body: Annotated[
        dict[str, Any], BeforeValidator(json.loads), Field(validation_alias="canonical")
    ]
    suggestions: list[Any]
    locked_at: datetime


class DeviationShape(Shape):
    """A recorded departure from a locked blueprint."""

    id: RowId
    blueprint: Annotated[Id, Field(validation_alias="blueprint_id")]
    change: str
    step: Annotated[OrNone, Field(validation_alias="step_key")]
    new_step: dict[str, Any] | None
    reason: str
    actor: str
    created_at: datetime


class DepartedShape(DeviationShape):
    """A deviation that was just recorded, with the task that its new step became."""

    new_task: str | None = None


class VerificationShape(Shape):
    """The outcome of one layer or of one command that we ran. Units: duration in milliseconds."""

    id: RowId
    output: OutputId
    attempt: int
    fix_round: int
    layer: str
    name: str
    outcome: str
    grade: str
    command: Any
    exit_code: int | None
    output_tail: str
    duration_ms: int | None
    findings: list[Any]
    created_at: datetime


class ReviewShape(Shape):
    """A QA verdict."""

    id: RowId
    attempt: int
    fix_round: int
    verdict: str
    backend: str
    agent: AgentName
    artifact_digests: list[Any]
    low_defects: str
    created_at: datetime


class DefectShape(Shape):
    """A graded defect with the rounds of its fix."""

    id: RowId
    review: Annotated[OptionalId, Field(validation_alias="review_id")]
    artifact: Annotated[OptionalId, Field(validation_alias="artifact_id")]
    severity: str
    category: str
    status: str
    title: str
    description: str
    evidence: Any
    proposed_fix: dict[str, Any] | None
    fix_round: int
    rounds: list[Any]
    impact: list[Any]
    impact_total: int
    guidance: str
    raised_by: str
    version: int
    created_at: datetime
    updated_at: datetime
