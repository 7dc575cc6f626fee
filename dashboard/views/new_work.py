"""New work: a message for a project, with S0's answer while it is written and no model called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.assessments import filter_view, red_line_view
from dashboard.engine_texts import engine_words
from dashboard.fault_lines import fault_line
from dashboard.forms import NewWorkForm
from dashboard.http import DashboardRequest, actor_of, may_decide, page, see_other, sir_only
from dashboard.places import address, board_url, task_url
from dashboard.shapes import Crumb
from dashboard.workflow_lines import workflow_lines
from orchestration.access import access_project, visible_projects
from orchestration.errors import CountersignError, Fault, Invalid, NotFound
from orchestration.models import Project
from orchestration.policy import DEFAULT_POLICY
from orchestration.rules.prefilter import prefilter
from orchestration.selectors.activity import newest_position
from orchestration.selectors.board import list_project_names
from orchestration.services.intake import require_text
from orchestration.states import ProjectStatus
from orchestration.workflows.dispatch import COMMAND, dispatch_text, list_workflows
from orchestration.workflows.uploads import MAX_UPLOAD_BYTES, submit_upload

PAGE = "dashboard/new_work/page.html"
SHOWN_FAULTS = 100
CLOSED = frozenset({ProjectStatus.ARCHIVED.value, ProjectStatus.SAFE_STOP.value})


@page
@require_http_methods(["GET", "HEAD", "POST"])
def new_work(request: DashboardRequest) -> HttpResponseBase:
    """Show the form; a POST submits the message and leads to what it became."""
    if request.method == "POST":
        return submit(request)
    chosen = request.GET.get("project", "")
    return render(request, PAGE, _context(request, project=chosen, text=""))


def _context(
    request: DashboardRequest,
    *,
    project: str,
    text: str = "",
    error: str = "",
    upload: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    projects = [one for one in list_project_names() if one.status not in CLOSED]
    known = {one.slug for one in projects}
    chosen = project if project in known else (projects[0].slug if projects else "")
    return _preview(request, chosen, text) | {
        "projects": projects,
        "chosen": chosen,
        "text": text,
        "error": error,
        "upload": upload or {},
        "max_megabytes": MAX_UPLOAD_BYTES // (1024 * 1024),
        "may_submit": may_decide(request),
        "workflows": workflow_lines(),
        "crumbs": [Crumb(_("New work"))],
        "position": newest_position(),
        "changes_url": address("changes"),
    }


def _preview(request: DashboardRequest, slug: str, text: str) -> dict[str, Any]:
    """S0's answer for a text under a project's policy, or why there is none."""
    try:
        return _foreseen(request, slug, text)
    except CountersignError as error:
        return {"preview": None, "command": "", "error": engine_words(error.detail)}


def _foreseen(request: DashboardRequest, slug: str, text: str) -> dict[str, Any]:
    """S0's answer; nothing is stored. Errors: Invalid, TooLarge as `require_text`."""
    if not text.strip():
        return {"preview": None, "command": ""}
    found: Project | None = visible_projects(request.user).filter(slug=slug).first()
    policy = found.policy if found is not None else DEFAULT_POLICY
    text = require_text(text)
    named = COMMAND.match(text.lstrip())
    if named is not None:
        name = named[1].lower()
        is_known = name in {one.name for one in list_workflows()}
        red = red_line_view(text, policy) if is_known else None
        return {"preview": None, "command": name, "is_known_command": is_known, "red": red}
    result = prefilter(text, policy)
    signals = [{"kind": one.kind, "text": one.text, "offset": one.offset} for one in result.signals]
    view = filter_view(
        outcome=result.outcome, rule=result.rule, signals=signals, elapsed_us=result.elapsed_us
    )
    red = red_line_view(text, policy)
    return {"preview": view, "command": "", "is_message": result.is_message, "red": red}


@page
@require_POST
def new_work_preview(request: DashboardRequest) -> HttpResponse:
    """The preview alone, while the message is written."""
    text = request.POST.get("text", "")
    context = _preview(request, request.POST.get("project", ""), text)
    return render(request, f"{PAGE}#preview", context)


@sir_only
def submit(request: DashboardRequest) -> HttpResponse:
    """Take the message in through the one door for text."""
    form = NewWorkForm(request.POST)
    slug, text = request.POST.get("project", ""), request.POST.get("text", "")
    if not form.is_valid():
        error = "; ".join(str(one) for errors in form.errors.values() for one in errors)
        context = _context(request, project=slug, text=text, error=error)
        return render(request, PAGE, context, status=422)
    project = access_project(request.user, form.cleaned_data["project"])
    try:
        made = dispatch_text(
            project_id=project.pk, text=form.cleaned_data["text"], actor=actor_of(request)
        )
    except NotFound:
        raise
    except CountersignError as error:
        shown = text if error.status != 413 else ""
        context = _context(request, project=slug, text=shown, error=engine_words(error.detail))
        return render(request, PAGE, context, status=error.status)
    return see_other(task_url(made.task, project), sent_draft="new-work")


@sir_only
@require_POST
def new_work_upload(request: DashboardRequest) -> HttpResponse:
    """Take a playbook or a master task list in: all of it, or none with the line of every fault."""
    slug, sent = request.POST.get("project", ""), request.FILES.get("file")
    if sent is None:
        return _refuse_upload(request, slug, gettext("Choose a file first."), status=422)
    project = access_project(request.user, slug)
    name = str(sent.name or "")
    try:
        made = submit_upload(
            project_id=project.pk,
            name=name,
            # One byte over the limit is read, so that the service refuses it without the rest.
            data=sent.read(MAX_UPLOAD_BYTES + 1),
            actor=actor_of(request),
        )
    except NotFound:
        raise
    except CountersignError as error:
        faults = error.errors if isinstance(error, Invalid) else ()
        return _refuse_upload(
            request, slug, engine_words(error.detail), status=error.status, name=name,
            faults=faults,
        )  # fmt: skip
    if made.is_playbook or len(made.tasks) == 1:
        return see_other(task_url(made.tasks[0], project))
    return see_other(board_url(project))


def _refuse_upload(
    request: DashboardRequest,
    slug: str,
    error: str,
    *,
    status: int,
    name: str = "",
    faults: Sequence[Fault] = (),
) -> HttpResponse:
    """Show the page again with every fault by its line; nothing was taken in."""
    upload = {
        "error": error,
        "name": name,
        "faults": [fault_line(one) for one in faults[:SHOWN_FAULTS]],
        "more": max(len(faults) - SHOWN_FAULTS, 0),
    }
    return render(request, PAGE, _context(request, project=slug, upload=upload), status=status)
