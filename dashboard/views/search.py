"""Search and jump: a key leads to its task, a name to its project, other words to a list."""

from __future__ import annotations

from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from dashboard.http import DashboardRequest, page
from dashboard.places import address, board_url, task_place, task_url
from dashboard.presenters import task_label
from dashboard.shapes import Crumb
from orchestration.access import visible_projects
from orchestration.selectors.activity import newest_position
from orchestration.selectors.finding import find_by_key, find_tasks, is_key

MAX_CHARACTERS = 200


@page
@require_safe
def search(request: DashboardRequest) -> HttpResponse:
    """Go straight to a task's key; else list what the words are found in."""
    text = request.GET.get("q", "").replace("\x00", "").strip()[:MAX_CHARACTERS]
    if is_key(text):
        found = find_by_key(request.user, text)
        if found is not None:
            return HttpResponseRedirect(task_url(found, found.project))
    projects = visible_projects(request.user).filter(name__icontains=text)[:10] if text else []
    named = [one for one in projects if one.name == text or one.slug == text]
    if len(named) == 1:
        return HttpResponseRedirect(board_url(named[0]))
    tasks = find_tasks(request.user, text) if text else []
    context = {
        "text": text,
        "projects": [(one, board_url(one)) for one in projects],
        "tasks": [
            (one, task_url(one, one.project), task_place(one, one.project),
             task_label(one.status, one.cancel_reason))
            for one in tasks
        ],
        "crumbs": [Crumb(_("Search"))],
        "position": newest_position(),
        "changes_url": address("changes"),
    }  # fmt: skip
    return render(request, "dashboard/search/page.html", context)
