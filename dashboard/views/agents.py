"""The agents: who may work, when it was last here, what it holds, how it is set up."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from dashboard.agent_pages import agent_line, settings_of, work_line
from dashboard.http import DashboardRequest, page
from dashboard.places import address
from dashboard.shapes import Crumb
from orchestration.selectors.activity import newest_position
from orchestration.selectors.agents import list_agents, list_work, read_agent


@page
@require_safe
def agents(request: DashboardRequest) -> HttpResponse:
    """Every agent with its scopes, when it was last seen, and its lease."""
    context = {
        "lines": [agent_line(row) for row in list_agents()],
        "crumbs": [Crumb(_("Agents"))],
        "position": newest_position(),
    }
    return render(request, "dashboard/agents/list.html", context)


@page
@require_safe
def agent(request: DashboardRequest, name: str) -> HttpResponse:
    """One agent: what it holds and did, and the settings of its harness, ready to copy."""
    row = read_agent(name)
    context = {
        "line": agent_line(row),
        "work": [work_line(one) for one in list_work(row.agent)],
        "settings": settings_of(request.build_absolute_uri("/").rstrip("/")),
        "crumbs": [Crumb(_("Agents"), address("agents")), Crumb(row.agent.name)],
        "position": newest_position(),
    }
    return render(request, "dashboard/agents/agent.html", context)
