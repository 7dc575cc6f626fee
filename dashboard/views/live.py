"""What a live page asks for beside its own parts: changes since a position, and more of the log."""

from __future__ import annotations

from collections.abc import Iterator

from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from dashboard.forms import read_number
from dashboard.http import DashboardRequest, StreamedFile, page
from dashboard.logs import make_log_lines
from dashboard.richtext import spell_hidden
from orchestration.access import access_project
from orchestration.errors import Invalid
from orchestration.models import LogChunk, Project
from orchestration.selectors.activity import LOG_CHUNKS, LogCursor, changes_after, read_log


@page
@require_GET
def changes(request: DashboardRequest) -> JsonResponse:
    """The topics that changed after a position, for catching up and for polling."""
    slug = request.GET.get("project", "")
    project = access_project(request.user, slug) if slug else None
    after = read_number(request.GET, "after") or 0
    found = changes_after(after, project_id=project.pk if project is not None else None)
    response = JsonResponse(
        {"position": found.position, "reset": found.is_reset, "hints": found.hints}
    )
    response["Cache-Control"] = "no-store"
    return response


@page
@require_GET
def log(request: DashboardRequest, slug: str) -> HttpResponse:
    """The lines after a cursor, oldest first; the next cursor is in X-Log-After."""
    project = access_project(request.user, slug)
    try:
        cursor = LogCursor.parse(request.GET.get("after", ""))
    except Invalid as error:
        return HttpResponse(error.detail, status=error.status, content_type="text/plain")
    rows, following = read_log(
        project.pk, cursor, root_id=read_number(request.GET, "task")
    )  # fmt: skip
    lines = make_log_lines(rows, project, shown_root=read_number(request.GET, "shown"))
    response = render(request, "dashboard/projects/log_lines.html", {"lines": lines})
    response["X-Log-After"] = following.text()
    if len(rows) >= LOG_CHUNKS:
        response["X-Log-More"] = "1"
    response["Cache-Control"] = "no-store"
    return response


@page
@require_GET
def log_file(request: DashboardRequest, slug: str) -> StreamedFile:
    """The whole output of a project's commands as a text file."""
    project = access_project(request.user, slug)
    task = read_number(request.GET, "task")
    return StreamedFile(
        _log_text(project, task), content_type="text/plain; charset=utf-8",
        name=f"{project.slug}-log.txt",
    )  # fmt: skip


def _log_text(project: Project, task_id: int | None) -> Iterator[str]:
    rows = LogChunk.objects.filter(project=project).select_related("task").order_by("pk")
    if task_id is not None:
        rows = rows.filter(task=task_id)
    for chunk in rows.iterator(500):
        at = timezone.localtime(chunk.at).isoformat(" ", "seconds")
        for line in chunk.text.splitlines():
            # A terminal that prints the file obeys what stands in it, but for a tab.
            shown = line if line.isprintable() else "\t".join(map(spell_hidden, line.split("\t")))
            yield f"{at}\t{chunk.task.step_key}\t{chunk.source}\t{shown}\n"
