"""The delivery archive of a task: as JSON, as Markdown, or as a zip with all it delivered."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request

from orchestration.api.base import ApiView
from orchestration.api.downloads import PackedFile
from orchestration.api.prompts import MARKDOWN, MarkdownRenderer
from orchestration.api.schema import problems
from orchestration.contracts.archive import ArchiveDocument
from orchestration.services.archive import archive_of
from orchestration.services.archive_zip import pack_archive

ZIP = "application/zip"


class ShortMarkdownRenderer(MarkdownRenderer):
    """Markdown, asked for as `md`."""

    format = "md"


class ZipRenderer(BaseRenderer):
    """A zip; a problem stays the JSON document that it is."""

    media_type = ZIP
    format = "zip"
    render_style = "binary"

    def render(self, data: Any, *_: Any, **__: Any) -> bytes:
        """Encode the problem; the zip itself is never rendered."""
        return json.dumps(data, ensure_ascii=False).encode("utf-8")


class ArchiveView(ApiView):
    """The archive of a task."""

    renderer_classes = (JSONRenderer, ShortMarkdownRenderer, ZipRenderer)

    @extend_schema(
        operation_id="read_archive",
        tags=["tasks"],
        parameters=[
            OpenApiParameter("format", str, enum=["json", "md", "zip"], description="Or `Accept`.")
        ],
        responses={
            (200, "application/json"): ArchiveDocument,
            (200, MARKDOWN): OpenApiTypes.STR,
            (200, ZIP): OpenApiTypes.BINARY,
            **problems(401, 404, 406, 409, 422),
        },
    )
    def get(self, request: Request, pid: str, task: str) -> HttpResponseBase:
        """Read what was delivered, or why it was waived, exactly as it was locked."""
        found = self.task(pid, task)
        archive = archive_of(found)
        name = f"{found}-archive-v{archive.number}"
        wanted = request.accepted_renderer.format
        if wanted == ZipRenderer.format:
            packed = pack_archive(archive)
            return PackedFile(packed, name=f"{name}.zip", content_type=ZIP, headers=_HEADERS)
        is_text = wanted == ShortMarkdownRenderer.format
        locked = archive.markdown if is_text else archive.document
        kind = f"{MARKDOWN}; charset=utf-8" if is_text else "application/json"
        headers = {
            **_HEADERS,
            "ETag": f'"{locked.content_id}"',
            "Content-Disposition": f'attachment; filename="{name}.{wanted}"',
        }
        return HttpResponse(bytes(locked.content.data), content_type=kind, headers=headers)


_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cache-Control": "private, no-cache",
}
