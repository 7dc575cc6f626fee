"""The check of a project's state, by people; what is wrong stops the project."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from orchestration.api.base import ApiView
from orchestration.api.bodies import EmptyBody
from orchestration.api.operations import keyed_post
from orchestration.api.permissions import require_human
from orchestration.api.shapes.base import Shape
from orchestration.services.integrity import check_project


class IntegrityFaultShape(Shape):
    """One thing that is wrong. Shape: `subject` as in the audit trail."""

    kind: str
    subject: str
    detail: str


class IntegrityShape(Shape):
    """What a check found. Shape: at most 100 faults; `project_status` as it stands now."""

    intact: bool
    project_status: str
    faults: list[IntegrityFaultShape]


class IntegrityView(ApiView):
    """The integrity of a project."""

    works_in_safe_stop = True

    @keyed_post(
        "check_integrity", "projects", body=EmptyBody, answer=IntegrityShape,
        refusals=(400, 401, 403, 404, 422),
    )  # fmt: skip
    def post(self, request: Request, pid: str) -> Response:
        """Check the whole project. Anything wrong puts it in safe stop and asks Sir."""
        project = self.project(pid)
        require_human(self.caller)
        self.body(EmptyBody)
        found = check_project(project_id=project.pk, actor=self.actor, source="api")
        shape = IntegrityShape(
            intact=not found.faults,
            project_status=found.project.status,
            faults=[IntegrityFaultShape(**one.document()) for one in found.faults],
        )
        return Response(shape.document())
