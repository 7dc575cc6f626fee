"""The measures of a project: what the method did, each with the cases it rests on."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from orchestration.api.base import ApiView
from orchestration.api.schema import problems
from orchestration.api.shapes.insights import InsightsShape
from orchestration.selectors.insights import ENOUGH, read_insights


class InsightsView(ApiView):
    """The measures of one project."""

    @extend_schema(
        operation_id="read_insights",
        tags=["projects"],
        responses={200: InsightsShape, **problems(401, 404)},
    )
    def get(self, request: Request, pid: str) -> Response:
        """Read every measure with its count; a figure is null below ten cases."""
        held = read_insights(self.project(pid).pk)
        return Response(InsightsShape.of_insights(held, enough=ENOUGH).document())
