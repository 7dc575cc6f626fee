"""What the method did: measures of one project or of all, each with the cases it rests on."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from dashboard.choices import project_choices
from dashboard.forms import read_slug
from dashboard.http import DashboardRequest, page
from dashboard.insight_tables import make_tables
from dashboard.places import address, board_url
from dashboard.shapes import Crumb
from orchestration.access import access_project
from orchestration.selectors.activity import newest_position
from orchestration.selectors.insights import ENOUGH, read_insights


@page
@require_safe
def insights(request: DashboardRequest) -> HttpResponse:
    """Every measure, of one project or of all."""
    slug = read_slug(request.GET, "project")
    project = access_project(request.user, slug) if slug else None
    held = read_insights(project.pk if project is not None else None)
    crumbs = [Crumb(project.name, board_url(project))] if project is not None else []
    context = {
        "tables": make_tables(held),
        "trust_is_cut": held.trust_is_cut,
        "project": project,
        "wanted": slug,
        "enough": ENOUGH,
        "projects": project_choices(address("insights"), {"project": slug}),
        "crumbs": [*crumbs, Crumb(_("Insights"))],
        "position": newest_position(),
    }
    return render(request, "dashboard/insights/page.html", context)
