"""The revisions of a task's plan: side by side, and two of them as text."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from dashboard.forms import read_number
from dashboard.http import DashboardRequest, page
from dashboard.places import address, board_url, task_place, task_url
from dashboard.plan_diffs import plan_diff, plan_word
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


@page
@require_safe
def plan_text(request: DashboardRequest, slug: str, pk: int, old: int, new: int) -> HttpResponse:
    """What one plan of a task changed of another, as text."""
    project = access_project(request.user, slug)
    found = access_task(project, str(pk))
    plans_of = found.plans.in_bulk([old, new])
    if old not in plans_of or new not in plans_of:
        raise NotFound("There is no such plan of this task.")
    before, after = plans_of[old], plans_of[new]
    place, back = task_place(found, project), task_url(found, project)
    context = {
        "task": found,
        "place": place,
        "task_url": back,
        "before": plan_word(before),
        "after": plan_word(after),
        "told": plan_diff(before, after),
        "crumbs": [
            Crumb(project.name, board_url(project)),
            Crumb(place, back),
            Crumb(_("Plans"), address("plans", project.slug, found.pk)),
            Crumb(_("Text")),
        ],
        "project_slug": project.slug,
        "position": newest_position(),
    }
    return render(request, "dashboard/tasks/plan_text.html", context)
