"""The agents: who may work, when it was last here, what it holds, how it is set up.

A token is shown by the answer to the very form that made it, once, and kept by no cache: going
back or loading the page again never shows it a second time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils.cache import add_never_cache_headers
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.agent_pages import agent_line, scope_choices, settings_of, work_line
from dashboard.engine_texts import engine_words
from dashboard.http import (
    DashboardRequest,
    actor_of,
    may_decide,
    page,
    refusal,
    see_other,
    sir_only,
)
from dashboard.places import address
from dashboard.shapes import Crumb
from orchestration.errors import CountersignError, NotFound
from orchestration.models import Agent, Project
from orchestration.scopes import DEFAULT_SCOPES
from orchestration.selectors.activity import newest_position
from orchestration.selectors.agents import AgentRow, list_agents, list_work, read_agent
from orchestration.selectors.board import list_project_names
from orchestration.services.agents import (
    change_agent,
    create_agent,
    revoke_agent,
    rotate_agent_token,
)

FORM = "dashboard/agents/form.html"


@page
@require_safe
def agents(request: DashboardRequest) -> HttpResponse:
    """Every agent with its scopes, when it was last seen, and its lease."""
    context = {
        "lines": [agent_line(row) for row in list_agents()],
        "may_change": may_decide(request),
        "crumbs": [Crumb(_("Agents"))],
        "position": newest_position(),
    }
    return render(request, "dashboard/agents/list.html", context)


@page
@require_safe
def agent(request: DashboardRequest, name: str) -> HttpResponse:
    """One agent: what it holds and did, and the settings of its harness, ready to copy."""
    return render(request, "dashboard/agents/agent.html", _agent_context(request, read_agent(name)))


def _agent_context(request: DashboardRequest, row: AgentRow) -> dict[str, Any]:
    return {
        "line": agent_line(row),
        "work": [work_line(one) for one in list_work(row.agent)],
        "settings": settings_of(request.build_absolute_uri("/").rstrip("/")),
        "may_change": may_decide(request),
        "crumbs": [Crumb(_("Agents"), address("agents")), Crumb(row.agent.name)],
        "position": newest_position(),
    }


@sir_only
@require_http_methods(["GET", "HEAD", "POST"])
def agent_new(request: DashboardRequest) -> HttpResponseBase:
    """The form of a new agent; a POST makes it and shows its token once."""
    if request.method != "POST":
        return render(request, FORM, _form_context(scopes=DEFAULT_SCOPES))
    name, scopes = request.POST.get("name", "").strip(), request.POST.getlist("scopes")
    chosen = request.POST.getlist("projects")
    try:
        made, token = create_agent(
            name=name, scopes=scopes, projects=_projects(chosen), actor=actor_of(request)
        )
    except CountersignError as error:
        context = _form_context(name=name, scopes=scopes, chosen=chosen, error=error)
        return render(request, FORM, context, status=error.status)
    return _show_token(request, made, token)


@sir_only
@require_http_methods(["GET", "HEAD", "POST"])
def agent_change(request: DashboardRequest, name: str) -> HttpResponseBase:
    """What an agent may do and which projects it sees."""
    row = read_agent(name).agent
    scopes, chosen = list(row.scopes), [one.slug for one in row.projects.all()]
    if request.method == "POST":
        scopes, chosen = request.POST.getlist("scopes"), request.POST.getlist("projects")
        try:
            change_agent(
                agent_id=row.pk, scopes=scopes, projects=_projects(chosen), actor=actor_of(request)
            )
        except CountersignError as error:
            context = _form_context(agent=row, scopes=scopes, chosen=chosen, error=error)
            return render(request, FORM, context, status=error.status)
        return see_other(address("agent", row.name))
    return render(request, FORM, _form_context(agent=row, scopes=scopes, chosen=chosen))


def _projects(slugs: Sequence[str]) -> list[Project]:
    """The projects that were ticked. Errors: NotFound for one that is none."""
    found = list(Project.objects.filter(slug__in=slugs)) if slugs else []
    if len(found) != len(set(slugs)):
        raise NotFound("There is no such project.")
    return found


def _form_context(
    *,
    agent: Agent | None = None,
    name: str = "",
    scopes: Sequence[str] = (),
    chosen: Sequence[str] = (),
    error: CountersignError | None = None,
) -> dict[str, Any]:
    here = Crumb(agent.name, address("agent", agent.name)) if agent is not None else None
    last = Crumb(_("Scopes and projects")) if agent is not None else Crumb(_("New agent"))
    return {
        "agent": agent,
        "name": name,
        "scopes": scope_choices(scopes),
        "projects": [(one, one.slug in chosen) for one in list_project_names()],
        "error": engine_words(error.detail) if error is not None else "",
        "crumbs": [Crumb(_("Agents"), address("agents")), *([here] if here else []), last],
        "position": newest_position(),
    }


@sir_only
@require_POST
def agent_rotate(request: DashboardRequest, name: str) -> HttpResponse:
    """Give an agent a new token and show it once; the old one ends at once."""
    row = read_agent(name).agent
    try:
        made, token = rotate_agent_token(
            agent_id=row.pk, actor=actor_of(request), seen_hint=request.POST.get("hint", "")
        )
    except CountersignError as error:
        return refusal(request, error, back_url=address("agent", row.name))
    return _show_token(request, made, token)


def _show_token(request: DashboardRequest, made: Agent, token: str) -> HttpResponse:
    """Answer with the token: in this answer only, and in no cache."""
    base_url = request.build_absolute_uri("/").rstrip("/")
    context = _agent_context(request, read_agent(made.name)) | {
        "token": token,
        "settings": settings_of(base_url, token),
    }
    response = render(request, "dashboard/agents/token.html", context)
    add_never_cache_headers(response)
    response["Cache-Control"] = "no-store, private"
    response["Referrer-Policy"] = "no-referrer"
    return response


@sir_only
@require_http_methods(["GET", "HEAD", "POST"])
def agent_revoke(request: DashboardRequest, name: str) -> HttpResponseBase:
    """Ask once more, then end an agent's token."""
    row = read_agent(name)
    if request.method == "POST":
        revoke_agent(agent_id=row.agent.pk, actor=actor_of(request))
        return see_other(address("agent", row.agent.name))
    return render(request, "dashboard/agents/revoke.html", _agent_context(request, row))
