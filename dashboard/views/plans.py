"""The revisions of a task's plan, side by side."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from dashboard.forms import read_number
from dashboard.http import DashboardRequest, page
from dashboard.places import board_url, task_place, task_url
from dashboard.plan_matrix import plan_matrix
from dashboard.shapes import Crumb
from orchestration.access import access_project, access_task
from orchestration.errors import NotFound
from orchestration.selectors.activity import newest_position
from orchestration.selectors.task_page import compared_revisions, planned_attempts


@page
@require_safe
def plans(request: DashboardRequest, slug: str, pk: int) -> HttpResponse:
    """The revisions of one attempt, the newest unless `attempt` names another."""
    project = access_project(request.user, slug)
    found = access_task(project, str(pk))
    attempts = planned_attempts(found)
    attempt = read_number(request.GET, "attempt") or (attempts[-1] if attempts else 1)
    if attempts and attempt not in attempts:
        raise NotFound("There is no plan of this attempt.")
    place, back = task_place(found, project), task_url(found, project)
    context = {
        "task": found,
        "place": place,
        "task_url": back,
        "attempts": attempts,
        "attempt": attempt,
        "matrix": plan_matrix(compared_revisions(found, attempt)),
        "crumbs": [Crumb(project.name, board_url(project)), Crumb(place, back), Crumb(_("Plans"))],
        "project_slug": project.slug,
        "position": newest_position(),
    }
    return render(request, "dashboard/tasks/plans.html", context)
