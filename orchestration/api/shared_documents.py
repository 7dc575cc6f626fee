"""Shared documents of a task: written together, version by version.

Source: DESIGN section 12 ("Modes": co-creation).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from orchestration.api.base import ApiView
from orchestration.api.pagination import PAGE_PARAMETERS, paged, read_count
from orchestration.api.permissions import require_commenter
from orchestration.api.projects import etag
from orchestration.api.schema import IF_MATCH, problems
from orchestration.api.shapes.mail import (
    SharedDocumentPage,
    SharedDocumentShape,
    SharedVersionPage,
    SharedVersionShape,
)
from orchestration.contracts.mail import SharedDocumentInput
from orchestration.models import SharedDocument, SharedDocumentVersion
from orchestration.services.shared_documents import read_version, write_shared_document


class SharedDocumentsView(ApiView):
    """The shared documents of a task."""

    @extend_schema(
        operation_id="list_shared_documents",
        tags=["mail"],
        parameters=PAGE_PARAMETERS,
        responses={200: SharedDocumentPage, **problems(401, 404, 422)},
    )
    def get(self, request: Request, pid: str, task: str) -> Response:
        """List them, oldest first, without their content."""
        rows = SharedDocument.objects.filter(task=self.task(pid, task))
        return Response(paged(request, rows, _shape_documents))


def _shape_documents(rows: Sequence[SharedDocument]) -> list[dict[str, Any]]:
    return [SharedDocumentShape.of(row).document() for row in rows]


class SharedDocumentView(ApiView):
    """One shared document."""

    @extend_schema(
        operation_id="read_shared_document",
        tags=["mail"],
        parameters=[OpenApiParameter("version", int, description="An earlier version.")],
        responses={200: SharedVersionShape, **problems(401, 404, 422)},
    )
    def get(self, request: Request, pid: str, task: str, name: str) -> Response:
        """Read the newest version; `ETag` is what `If-Match` has to say to write the next one."""
        found = self.task(pid, task)
        asked = read_count(request, "version", default=0, low=0, high=10**9)
        version = read_version(found, name, asked or None)
        return Response(SharedVersionShape.of(version).document(), headers=etag(version.version))

    @extend_schema(
        operation_id="write_shared_document",
        tags=["mail"],
        parameters=IF_MATCH,
        request=SharedDocumentInput,
        responses={
            200: SharedVersionShape,
            201: SharedVersionShape,
            **problems(400, 401, 403, 404, 409, 412, 413, 422),
        },
    )
    def put(self, request: Request, pid: str, task: str, name: str) -> Response:
        """Write the next version of what was read: `If-Match`, or `version`, says which that was.

        Without either the document must not be there yet. A version that somebody else wrote
        meanwhile is 412 with the stored version: read, merge, write again.
        """
        found = self.task(pid, task)
        require_commenter(self.caller)
        body = self.body(SharedDocumentInput)
        version, is_new = write_shared_document(
            task_id=found.pk,
            name=name,
            document=body,
            seen_version=self.seen_version(body.version),
            actor=self.actor,
        )
        status = 201 if is_new and version.version == 1 else 200
        shape = SharedVersionShape.of(version).document()
        return Response(shape, status=status, headers=etag(version.version))


class SharedVersionsView(ApiView):
    """The versions of a shared document."""

    @extend_schema(
        operation_id="list_shared_versions",
        tags=["mail"],
        parameters=PAGE_PARAMETERS,
        responses={200: SharedVersionPage, **problems(401, 404, 422)},
    )
    def get(self, request: Request, pid: str, task: str, name: str) -> Response:
        """List every version with who wrote it, oldest first."""
        newest = read_version(self.task(pid, task), name)
        rows = SharedDocumentVersion.objects.select_related("document").filter(
            document=newest.document
        )
        return Response(paged(request, rows, _shape_versions))


def _shape_versions(rows: Sequence[SharedDocumentVersion]) -> list[dict[str, Any]]:
    return [SharedVersionShape.of(row).document() for row in rows]
