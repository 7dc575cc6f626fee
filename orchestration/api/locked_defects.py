"""Report a defect of a locked artifact."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StrictStr
from rest_framework.request import Request
from rest_framework.response import Response

from orchestration.access import access_artifact
from orchestration.api.base import ApiView
from orchestration.api.bodies import Body, LongText, Name
from orchestration.api.operations import keyed_post
from orchestration.api.permissions import require_sir_or_scope
from orchestration.api.shapes.base import Shape
from orchestration.contracts.plan import ProposedFix
from orchestration.errors import NotFound
from orchestration.models import Task
from orchestration.scopes import Scope
from orchestration.services.locked_defects import report_defect
from orchestration.states import Severity


class LockedDefectBody(Body):
    """A defect of a locked artifact, graded. `low_defects` decides about a Low one."""

    severity: Severity
    title: Annotated[StrictStr, Field(min_length=1, max_length=300)]
    description: LongText = ""
    category: Literal["defect", "scope", "granularity", "assumption"] = "defect"
    evidence: Name | LongText = ""
    proposed_fix: ProposedFix | None = None
    low_defects: Literal["fix", "accept"] = "accept"


class LockedDefectShape(Shape):
    """The defect as it stands. Shape: `impact` lists who reads the artifact, directly or not, at
    most 200 of `impact_total`; `fix_task` is the task that makes the next version, once there is
    one.
    """

    id: str
    artifact: str
    task: str
    severity: str
    status: str
    title: str
    impact: list[dict[str, Any]]
    impact_total: int
    fix_task: str | None


class LockedDefectsView(ApiView):
    """Defects of a locked artifact."""

    @keyed_post(
        "report_artifact_defect", "artifacts", body=LockedDefectBody, answer=LockedDefectShape,
        status=201, refusals=(400, 401, 403, 404, 409, 422),
    )  # fmt: skip
    def post(self, request: Request, pid: str, artifact: str) -> Response:
        """Report it. The step stays done; a fix makes the next version, the old one stays."""
        project = self.project(pid)
        require_sir_or_scope(self.caller, Scope.REVIEW)
        row = access_artifact(self.caller.viewer, artifact)
        if row.project_id != project.pk:
            raise NotFound("There is no such artifact.")
        body = self.body(LockedDefectBody)
        document = {
            "severity": body.severity.value,
            "title": body.title,
            "description": body.description,
            "category": body.category,
            "evidence": {"text": body.evidence, "by": self.actor.name} if body.evidence else {},
            "proposed_fix": body.proposed_fix.to_document() if body.proposed_fix else None,
        }
        defect = report_defect(
            artifact_id=row.pk, document=document, actor=self.actor, low=body.low_defects
        )
        fix = Task.objects.filter(fixes=defect).order_by("pk").first()
        shape = LockedDefectShape(
            id=str(defect.pk),
            artifact=str(row.pk),
            task=str(defect.task_id),
            severity=defect.severity,
            status=defect.status,
            title=defect.title,
            impact=defect.impact,
            impact_total=defect.impact_total,
            fix_task=str(fix.pk) if fix is not None else None,
        )
        return Response(shape.document(), status=201)
