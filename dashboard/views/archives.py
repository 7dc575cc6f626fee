"""Download the delivery archive of a task: Markdown, JSON or a zip with all it delivered."""

from __future__ import annotations

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from dashboard.http import DashboardRequest, page
from orchestration.access import access_project, access_task
from orchestration.api.downloads import PackedFile
from orchestration.errors import NotFound
from orchestration.services.archive import archive_of
from orchestration.services.archive_zip import pack_archive

KINDS = {"md": "text/markdown; charset=utf-8", "json": "application/json", "zip": "application/zip"}


@page
@require_safe
def archive(request: DashboardRequest, slug: str, pk: int, kind: str) -> HttpResponseBase:
    """One form of the newest archive, exactly as it was locked, always as a download."""
    project = access_project(request.user, slug)
    found = access_task(project, str(pk))
    if kind not in KINDS:
        raise NotFound("An archive is read as md, json or zip.")
    row = archive_of(found)
    name = f"{found}-archive-v{row.number}.{kind}"
    headers = {"X-Content-Type-Options": "nosniff"}
    if kind == "zip":
        packed = pack_archive(row)
        return PackedFile(packed, name=name, content_type=KINDS[kind], headers=headers)
    locked = row.markdown if kind == "md" else row.document
    headers["Content-Disposition"] = f'attachment; filename="{name}"'
    data = bytes(locked.content.data)
    return HttpResponse(data, content_type=KINDS[kind], headers=headers)
