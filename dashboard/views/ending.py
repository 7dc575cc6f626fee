"""Put a project away for good, after a second question on a page of its own."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from dashboard.forms import ReasonForm
from dashboard.http import DashboardRequest, actor_of, refusal, see_other, sir_only
from dashboard.places import address
from dashboard.shapes import Crumb
from orchestration.access import access_project
from orchestration.errors import CountersignError
from orchestration.selectors.overview import count_unfinished
from orchestration.services.projects import archive_project


@sir_only
@require_http_methods(["GET", "HEAD", "POST"])
def project_archive(request: DashboardRequest, slug: str) -> HttpResponse:
    """Ask once more what ends with a project, then archive it."""
    project = access_project(request.user, slug)
    back = address("board", project.slug)
    form = ReasonForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            archive_project(
                project_id=project.pk,
                actor=actor_of(request),
                reason=form.cleaned_data["reason"],
            )
        except CountersignError as error:
            return refusal(request, error, back_url=back)
        return see_other(back)
    tasks, questions = count_unfinished(project)
    context = {
        "project": project,
        "tasks": tasks,
        "questions": questions,
        "is_stopped": project.status == "safe_stop",
        "form": form,
        "back_url": back,
        "crumbs": [
            Crumb(_("Projects"), address("projects")),
            Crumb(project.name, back),
            Crumb(_("Archive project")),
        ],
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "dashboard/projects/end.html", context, status=status)
