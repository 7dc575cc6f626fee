"""What every page carries beside its own data: navigation and theme.

Both are lazy, so that a fragment, which shows neither, pays no query for them.
"""

from __future__ import annotations

from typing import Any, cast

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from dashboard.places import board_url
from dashboard.presenters import make_navigation
from dashboard.shapes import Navigation, ProjectLink
from orchestration.access import role_of
from orchestration.models import Project
from orchestration.selectors.board import list_project_names
from orchestration.selectors.notices import count_for
from orchestration.states import ProjectStatus

THEMES = frozenset({"light", "dark"})
IN_SIDEBAR = 12
SECTIONS = {
    "agent": "agents", "audit": "audit", "wiki": "knowledge", "experience": "knowledge",
}  # fmt: skip
"""The navigation entry of a page, by the first word of its name."""


def navigation(request: HttpRequest) -> dict[str, Any]:
    """Give the templates `nav` (shapes.Navigation or None) and `theme`."""
    theme = request.COOKIES.get("theme", "")
    return {
        "nav": SimpleLazyObject(lambda: _navigation(request)),
        "theme": theme if theme in THEMES else "",
    }


def _navigation(request: HttpRequest) -> Navigation | None:
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return None
    match = request.resolver_match
    page = (match.url_name or "") if match is not None else ""
    slug = match.kwargs.get("slug", "") if match is not None else ""
    if role_of(user) is None:
        return None
    projects = list_project_names()
    waiting, unread = count_for(user.pk)
    return make_navigation(
        inbox_count=waiting,
        unread_count=unread,
        projects=[_link(one, slug) for one in projects[:IN_SIDEBAR]],
        user_name=cast(User, user).get_short_name() or user.get_username(),
        active="" if slug else _section(page),
    )


def _section(page: str) -> str:
    """The navigation entry of a page; the pages of the inbox share one, and those of the agents."""
    if page.startswith(("inbox", "decision", "bulk")):
        return "inbox"
    noun = page.partition("_")[0]
    return SECTIONS.get(noun, page)


def _link(project: Project, active_slug: str) -> ProjectLink:
    return ProjectLink(
        slug=project.slug,
        name=project.name,
        initial=project.name[:1].upper(),
        url=board_url(project),
        state=project.status,
        is_paused=project.status in (ProjectStatus.SUSPENDED, ProjectStatus.SAFE_STOP),
        is_active=project.slug == active_slug,
    )
