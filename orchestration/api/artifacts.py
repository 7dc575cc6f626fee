"""Locked artifacts: list them, read their bytes. An agent's read is recorded."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from django.http import HttpResponse, HttpResponseNotModified
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from orchestration.access import access_artifact, access_task, row_id
from orchestration.api.base import ApiView
from orchestration.api.pagination import PAGE_PARAMETERS, paged
from orchestration.api.schema import problems
from orchestration.api.shapes.work import ArtifactPage, ArtifactShape
from orchestration.errors import Conflict
from orchestration.models import Artifact
from orchestration.rules.download_names import download_name
from orchestration.services.artifact_reads import read_artifact

BYTES = "application/octet-stream"


class ArtifactsView(ApiView):
    """The locked artifacts of a project."""

    @extend_schema(
        operation_id="list_artifacts",
        tags=["artifacts"],
        parameters=[
            OpenApiParameter("task", str, description="Only those of this task."),
            OpenApiParameter("name", str, description="Only the versions of this name."),
            *PAGE_PARAMETERS,
        ],
        responses={200: ArtifactPage, **problems(401, 404, 422)},
    )
    def get(self, request: Request, pid: str) -> Response:
        """List artifacts, oldest first."""
        project = self.project(pid)
        rows = Artifact.objects.filter(project=project)
        task, name = request.query_params.get("task"), request.query_params.get("name")
        if task:
            rows = rows.filter(task=access_task(project, task))
        if name:
            rows = rows.filter(name=name)
        return Response(paged(request, rows, _page))


def _page(rows: Sequence[Artifact]) -> list[dict[str, Any]]:
    return [ArtifactShape.of(row).document() for row in rows]


class ArtifactContentView(ApiView):
    """The bytes of an artifact."""

    @extend_schema(
        operation_id="read_artifact",
        tags=["artifacts"],
        parameters=[
            OpenApiParameter(
                "assignment", str, description="What it is read for; else the newest one held."
            )
        ],
        responses={(200, BYTES): OpenApiTypes.BINARY, **problems(401, 404, 409)},
    )
    def get(self, request: Request, artifact: str) -> HttpResponseBase:
        """Download the bytes as they were locked; their sha-256 is the ETag."""
        row = access_artifact(self.caller.viewer, artifact)
        wanted = request.query_params.get("assignment")
        data = read_artifact(
            artifact_id=row.pk,
            agent=self.caller.agent,
            actor=self.actor,
            assignment_id=row_id(wanted) if wanted else None,
        )
        digest = hashlib.sha256(data).hexdigest()
        if digest != row.content_id:
            raise Conflict(
                "The stored bytes do not match the digest they were locked under.",
                code="artifact_corrupt",
            )
        etag = f'"{digest}"'
        if request.headers.get("If-None-Match") == etag:
            return HttpResponseNotModified(headers={"ETag": etag})
        name = download_name(row.name, row.type, data)
        headers = {
            "ETag": etag,
            "Content-Disposition": content_disposition_header(as_attachment=True, filename=name)
            or "attachment",
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": "default-src 'none'; sandbox",
            "Cache-Control": "private, max-age=31536000, immutable",
        }
        return HttpResponse(data, content_type=BYTES, headers=headers)
