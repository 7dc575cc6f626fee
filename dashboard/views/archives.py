"""What a project delivered, and each archive as Markdown, JSON or a zip with all of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from dashboard.forms import read_number
from dashboard.http import DashboardRequest, page
from dashboard.places import address, task_url
from dashboard.shapes import Crumb
from orchestration.access import access_project, access_task
from orchestration.api.downloads import PackedFile
from orchestration.contracts.archive import ArchiveKind
from orchestration.errors import NotFound
from orchestration.models import DeliveryArchive, Project
from orchestration.selectors.activity import newest_position
from orchestration.selectors.deliverables import list_archives
from orchestration.services.archive import archive_of
from orchestration.services.archive_zip import pack_archive

KINDS = {"md": "text/markdown; charset=utf-8", "json": "application/json", "zip": "application/zip"}


@dataclass(frozen=True, slots=True)
class ArchiveLine:
    """One archive on the list. Shape: `downloads` are kinds with their addresses."""

    key: str
    title: str
    url: str
    result: str
    number: int
    at: datetime
    downloads: list[tuple[str, str]]


@page
@require_safe
def archives(request: DashboardRequest, slug: str) -> HttpResponse:
    """The archives of a project's roots, newest first, with their downloads."""
    position = newest_position()
    project = access_project(request.user, slug)
    found, cursor = list_archives(project, before=read_number(request.GET, "before"))
    context = {
        "project": project,
        "lines": [_line(one, project) for one in found],
        "older_url": address("archives", project.slug, before=cursor) if cursor else "",
        "crumbs": [
            Crumb(_("Projects"), address("projects")),
            Crumb(project.name, address("board", project.slug)),
            Crumb(_("Archive")),
        ],
        "project_slug": project.slug,
        "position": position,
        "changes_url": address("changes", project=project.slug),
    }
    return render(request, "dashboard/projects/archives.html", context)


def _line(row: DeliveryArchive, project: Project) -> ArchiveLine:
    downloads = [(kind, address("archive", project.slug, row.task_id, kind)) for kind in KINDS]
    return ArchiveLine(
        key=f"{project.key_prefix}-{row.task.number}",
        title=row.task.title,
        url=task_url(row.task, project),
        result=_result(row),
        number=row.number,
        at=row.created_at,
        downloads=downloads,
    )


def _result(row: DeliveryArchive) -> str:
    if row.kind == ArchiveKind.WAIVER:
        return gettext("Waived by Sir")
    return gettext("Passed with exceptions") if row.has_exceptions else gettext("Passed")


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
