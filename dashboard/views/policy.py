"""The policy of a project: every setting with its default, tried on messages before it is saved.

Saving takes two steps, so that nobody changes what they did not read: the first shows what would
change and where recent messages would go instead, the second saves it under the version shown.
Source: UI.md section 5.8, DESIGN sections 14 and 15.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe

from dashboard.assessments import filter_view, red_line_view
from dashboard.engine_texts import engine_words
from dashboard.forms import read_number
from dashboard.http import (
    DashboardRequest,
    actor_of,
    may_decide,
    page,
    refusal,
    see_other,
    sir_only,
)
from dashboard.places import address, board_url
from dashboard.policy_changes import change_lines, patch_of, rerouted_lines
from dashboard.policy_fields import make_sections, read_section, section_names
from dashboard.policy_words import SECTION_WORDS, goes_word
from dashboard.shapes import Crumb
from orchestration.access import access_project
from orchestration.contracts.documents import require_json
from orchestration.errors import Conflict, CountersignError, Fault, Invalid, PolicyInvalid, Stale
from orchestration.models import Project
from orchestration.policy import Policy
from orchestration.rules.foresight import foresee
from orchestration.selectors.activity import newest_position
from orchestration.selectors.board import list_project_names
from orchestration.selectors.policy import flat, last_changes, try_policy
from orchestration.services.intake import require_text
from orchestration.services.projects import ProjectChange, update_project

PAGE = "dashboard/policy/page.html"
REVIEW = "dashboard/policy/review.html"
TRIED_SECTIONS = frozenset({"thresholds", "triggers", "limits"})
"""Sections that decide where a message goes."""


@page
@require_safe
def policies(request: DashboardRequest) -> HttpResponse:
    """Every project with how many of its settings differ from the defaults."""
    standard = flat(Policy().document())
    lines = [
        (
            one,
            sum(value != standard.get(path) for path, value in flat(one.policy.document()).items()),
        )
        for one in list_project_names()
    ]
    context = {
        "lines": lines,
        "crumbs": [Crumb(_("Policy"))],
        "position": newest_position(),
    }
    return render(request, "dashboard/policy/list.html", context)


@page
@require_safe
def project_policy(request: DashboardRequest, slug: str) -> HttpResponse:
    """The policy of one project; a viewer reads it."""
    project = access_project(request.user, slug)
    return _page(request, project, project.policy.document())


def _page(
    request: DashboardRequest,
    project: Project,
    document: Mapping[str, Any],
    *,
    faults: Sequence[Fault] = (),
    error: str = "",
    open_section: str = "",
    status: int = 200,
) -> HttpResponse:
    context = _base(request, project) | {
        "sections": make_sections(document, last_changes(project), faults=faults),
        "error": error,
        "open_section": open_section or request.GET.get("section", "thresholds"),
        "saved": request.GET.get("saved", "") if request.method == "GET" else "",
    }
    return render(request, PAGE, context, status=status)


def _base(request: DashboardRequest, project: Project) -> dict[str, Any]:
    return {
        "project": project,
        "may_change": may_decide(request),
        "crumbs": [Crumb(project.name, board_url(project)), Crumb(_("Policy"))],
        "position": newest_position(),
    }


@page
@require_POST
def policy_try(request: DashboardRequest, slug: str) -> HttpResponse:
    """Say where a typed message would go; nothing is stored and no model is called."""
    project = access_project(request.user, slug)
    text = request.POST.get("text", "")
    context: dict[str, Any] = {"project": project, "text": text}
    if text.strip():
        try:
            cleaned = require_text(text)
            seen = foresee(cleaned, project.policy)
        except CountersignError as error:
            context["try_error"] = engine_words(error.detail)
        else:
            signals = [one.as_json() for one in seen.filtered.signals]
            context |= {
                "goes": goes_word(seen.goes),
                "red": red_line_view(cleaned, project.policy),
                "total": seen.score.total if seen.score is not None else None,
                "filtered": filter_view(
                    outcome=seen.filtered.outcome,
                    rule=seen.filtered.rule,
                    signals=signals,
                    elapsed_us=seen.filtered.elapsed_us,
                ),
            }
    if request.headers.get("HX-Request"):
        return render(request, f"{PAGE}#tried", context)
    sections = make_sections(project.policy.document(), last_changes(project))
    context |= _base(request, project) | {"sections": sections, "open_section": "thresholds"}
    return render(request, PAGE, context)


@sir_only
@require_POST
def policy_review(request: DashboardRequest, slug: str, section: str) -> HttpResponse:
    """Show what one form would change, and where recent messages would go instead."""
    project = access_project(request.user, slug)
    _require_section(section)
    sent = read_section(section, request.POST)
    standing = project.policy.document()
    proposed = {**standing, section: sent}
    if read_number(request.POST, "version") != project.version:
        return _stale(request, project, proposed, section)
    try:
        require_json({section: sent}, detail="The policy is not valid.", error=PolicyInvalid)
        wanted = Policy.parse(proposed)
    except PolicyInvalid as error:
        return _refused(request, project, proposed, section, error)
    return _review(request, project, section, wanted)


def _require_section(section: str) -> None:
    if section not in section_names():
        raise Http404(section)


def _review(
    request: DashboardRequest, project: Project, section: str, wanted: Policy
) -> HttpResponse:
    patch = patch_of(project.policy, wanted, section)
    if not patch:
        return see_other(address("project_policy", project.slug, section=section, saved="same"))
    trial = try_policy(project, wanted) if section in TRIED_SECTIONS else None
    context = _base(request, project) | {
        "section": section,
        "section_word": SECTION_WORDS.get(section, (section, ""))[0],
        "lines": change_lines(project.policy, wanted, section),
        "patch": json.dumps(patch, ensure_ascii=False),
        "trial": trial,
        "rerouted": rerouted_lines(trial, project) if trial is not None else (),
        "back_url": address("project_policy", project.slug, section=section),
        "crumbs": [
            Crumb(project.name, board_url(project)),
            Crumb(_("Policy"), address("project_policy", project.slug)),
            Crumb(_("Changes")),
        ],
    }
    return render(request, REVIEW, context)


@sir_only
@require_POST
def policy_save(request: DashboardRequest, slug: str, section: str) -> HttpResponse:
    """Save what was shown, under the version it was shown for."""
    project = access_project(request.user, slug)
    _require_section(section)
    try:
        patch = _read_patch(request.POST.get("patch", ""))
    except Invalid as error:
        return refusal(request, error, back_url=address("project_policy", project.slug))
    proposed = project.policy.document()
    proposed[section] = {**proposed[section], **patch}
    version = read_number(request.POST, "version")
    if version is None:
        return _stale(request, project, proposed, section)
    try:
        update_project(
            project_id=project.pk,
            change=ProjectChange(policy={section: patch}),
            actor=actor_of(request),
            seen_version=version,
        )
    except Stale:
        return _stale(request, project, proposed, section)
    except PolicyInvalid as error:
        return _refused(request, project, proposed, section, error)
    except Conflict as error:
        return refusal(request, error, back_url=address("project_policy", project.slug))
    return see_other(address("project_policy", project.slug, section=section, saved="yes"))


def _read_patch(text: str) -> dict[str, Any]:
    """Read what the review page carried along.

    Errors: Invalid for anything but an object, and for text that no database stores.
    """
    try:
        patch = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid("the form does not say what is signed") from error
    if not isinstance(patch, dict):
        raise Invalid("the form does not say what is signed")
    require_json(patch, detail="the form does not say what is signed")
    return patch


def _stale(
    request: DashboardRequest, project: Project, proposed: Mapping[str, Any], section: str
) -> HttpResponse:
    """Say that the policy changed meanwhile, and keep what was written."""
    said = gettext(
        "Nothing was saved: the policy changed while you edited it. What you wrote is kept below;"
        " look at it against the new values and review it again."
    )
    return _page(request, project, proposed, error=said, open_section=section, status=412)


def _refused(
    request: DashboardRequest,
    project: Project,
    proposed: Mapping[str, Any],
    section: str,
    error: PolicyInvalid,
) -> HttpResponse:
    return _page(
        request,
        project,
        proposed,
        faults=error.errors,
        error=gettext("Nothing was saved. Each fault stands beside its field."),
        open_section=section,
        status=error.status,
    )
