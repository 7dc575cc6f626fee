"""Replay: the board of a project at any past event, rebuilt from the audit trail alone."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from dashboard.audit_lines import audit_line
from dashboard.forms import read_number
from dashboard.http import DashboardRequest, is_fragment, page
from dashboard.places import address
from dashboard.replays import Moment, make_replay
from dashboard.shapes import Crumb
from orchestration.access import access_project
from orchestration.selectors.activity import newest_position
from orchestration.selectors.audit import AuditFilter, list_events
from orchestration.selectors.replay import read_past, span_of

PAGE = "dashboard/projects/replay.html"
EVENTS_SHOWN = 15


@page
@require_safe
def replay(request: DashboardRequest, slug: str) -> HttpResponse:
    """The board after one event, or only the board for a moved slider. It follows no hint."""
    project = access_project(request.user, slug)
    position = newest_position()
    span = span_of(project, read_number(request.GET, "at"))
    context: dict[str, Any] = {"project": project, "span": span}
    if span is not None:
        board = read_past(project.pk, span.at)
        page_of_events = list_events(AuditFilter(project=project.slug), before=span.at + 1)
        seals = page_of_events.seals[:EVENTS_SHOWN]
        moment = Moment(
            project, span.at, read_number(request.GET, "task"), read_number(request.GET, "phase")
        )
        context |= make_replay(board, moment, span, seals[0].event.at)
        context["events"] = [audit_line(seal) for seal in seals]
    if is_fragment(request):
        return render(request, f"{PAGE}#past", context)
    context |= {
        "crumbs": [
            Crumb(_("Projects"), address("projects")),
            Crumb(project.name, address("board", project.slug)),
            Crumb(_("Replay")),
        ],
        "project_slug": project.slug,
        "position": position,
        "changes_url": address("changes", project=project.slug),
    }
    return render(request, PAGE, context)
