"""A task's page and its live parts, one assignment, one artifact, and steering."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.http import content_disposition_header
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import (
    require_GET,
    require_http_methods,
    require_POST,
    require_safe,
)

from dashboard.assessments import (
    backend_word,
    filter_view,
    route_words,
    score_view,
    scorer_words,
    upgrade_lines,
)
from dashboard.boards import make_step_lines, seat_word, step_label
from dashboard.defect_lines import defects_part
from dashboard.engine_texts import engine_words
from dashboard.forms import CommentForm, ReasonForm
from dashboard.http import (
    DashboardRequest,
    actor_of,
    may_decide,
    page,
    refusal,
    see_other,
    sir_only,
)
from dashboard.loop_lines import loop_part
from dashboard.mesh_lines import mail_part
from dashboard.not_ready import reason_words
from dashboard.places import address, board_url, task_key, task_place, task_url
from dashboard.presenters import assignment_label, task_label
from dashboard.related_tasks import artifacts_part, child_lines
from dashboard.shapes import Crumb, Progress
from dashboard.task_attempts import assignments_part, outputs_part, plan_part
from dashboard.task_pages import phase_lines
from dashboard.vocabulary import WAITING, Label
from dashboard.work_lines import (
    assignment_lines,
    call_lines,
    comment_views,
    setting_lines,
    waiting_facts,
)
from orchestration.access import access_artifact, access_assignment, access_project, access_task
from orchestration.contracts.results import CommentInput
from orchestration.errors import CountersignError, NotFound
from orchestration.models import Project, Task
from orchestration.rules.download_names import download_name
from orchestration.selectors.activity import newest_position
from orchestration.selectors.graph import StepGraph, read_graph, read_step
from orchestration.selectors.task_page import (
    asking_decisions_of,
    list_children,
    list_comments,
    read_assessments,
    waiting_for_agent,
)
from orchestration.services.tasks import add_task_comment, cancel_task, replan_task
from orchestration.states import Route, TaskStatus

PAGE = "dashboard/tasks/page.html"
ENDED = frozenset({TaskStatus.DONE, TaskStatus.CANCELLED})


@page
@require_safe
def task(request: DashboardRequest, slug: str, pk: int) -> HttpResponse:
    """The whole page of one task."""
    position = newest_position()
    project, found = _find(request, slug, pk)
    context = _base_context(request, project, found)
    for make in PARTS.values():
        context |= make(request, project, found)
    context |= {
        "crumbs": _crumbs(project, found),
        "project_slug": project.slug,
        "position": position,
        "changes_url": address("changes", project=project.slug),
    }
    return render(request, PAGE, context)


def _find(request: DashboardRequest, slug: str, pk: int) -> tuple[Project, Task]:
    """Find a task with its ancestors; 404 when it is not of this project."""
    project = access_project(request.user, slug)
    found = access_task(project, str(pk))
    rows = Task.objects.select_related("root", "parent__parent", "assignee", "blueprint")
    full = rows.get(pk=found.pk)
    for one in (full, full.root, full.parent):
        if one is not None:
            one.project = project
    return project, full


def _crumbs(project: Project, found: Task) -> list[Crumb]:
    crumbs = [Crumb(project.name, board_url(project)), Crumb(_("Board"), board_url(project))]
    if found.parent is not None:
        root = found.root or found.parent
        crumbs.append(Crumb(task_key(found, project), task_url(root, project)))
        if found.parent_id != root.pk:
            crumbs.append(Crumb(found.parent.step_key, task_url(found.parent, project)))
        return [*crumbs, Crumb(found.step_key or str(found))]
    return [*crumbs, Crumb(task_key(found, project))]


def _base_context(request: DashboardRequest, project: Project, found: Task) -> dict[str, Any]:
    """What every part of the page takes."""
    is_root = found.parent_id is None
    may_replan = is_root and found.route in (Route.THREE_STEP, Route.WORKFLOW)
    is_sir = may_decide(request)
    return {
        "project": project,
        "task": found,
        "place": task_place(found, project),
        "task_key": task_key(found, project),
        "topic": f"project:{project.pk}" if found.is_planned else f"task:{found.pk}",
        "may_decide": is_sir,
        "may_replan": is_sir and may_replan and found.status in ("working", "failed"),
        "may_cancel": is_sir and found.status not in ENDED,
    }


# --- Parts ----------------------------------------------------------------------------------------

MakeContext = Callable[[DashboardRequest, Project, Task], dict[str, Any]]


def _state(request: DashboardRequest, project: Project, found: Task) -> dict[str, Any]:
    decisions = asking_decisions_of(found)
    return {
        "label": _label(found),
        "decisions": decisions,
        "waiting_steps": len({one.task_id for one in decisions}),
        "waiting_label": WAITING,
        "waiting_url": address("decision", decisions[0].pk) if len(decisions) == 1
        else address("inbox", project=project.slug),
        "detail": engine_words(found.status_detail), "not_ready": reason_words(found),
        "route": route_words(found.route, found.complexity, found.risk_level),
        "max_attempts": project.policy.thresholds.max_retries
        if found.parent_id is None else project.policy.thresholds.step_attempts,
    }  # fmt: skip


def _label(found: Task) -> Label:
    if found.parent_id is None:
        return task_label(found.status, found.cancel_reason)
    label = step_label(read_step(found.pk))
    return label if label != WAITING else task_label(found.status, found.cancel_reason)


def _waiting(request: DashboardRequest, project: Project, found: Task) -> dict[str, Any]:
    return waiting_facts(waiting_for_agent(found))


def _assessment(request: DashboardRequest, project: Project, found: Task) -> dict[str, Any]:
    first, scores = read_assessments(found)
    return {
        "first": filter_view(
            outcome=first.outcome, rule=first.rule, signals=first.signals,
            elapsed_us=first.elapsed_us,
        ) if first is not None else None,
        "score": score_view(scores[0], project.policy.thresholds) if scores else None,
        "score_by": scorer_words(scores[0]) if scores else "",
        "upgrades": upgrade_lines(scores),
    }  # fmt: skip


def _steer(request: DashboardRequest, project: Project, found: Task) -> dict[str, Any]:
    return {}  # whether it can still be steered, every part knows


def _steps(request: DashboardRequest, project: Project, found: Task) -> dict[str, Any]:
    if not found.is_planned:
        children = child_lines(list_children(found), project)
        return {"graph": None, "step_lines": [], "phases": [], "children": children}
    graph: StepGraph = read_graph(found, open_phase=found.open_phase)
    words = f"{graph.finished}/{graph.total}"
    return {
        "graph": graph,
        "step_lines": make_step_lines(graph, project),
        "phases": phase_lines(graph),
        "progress": Progress(graph.finished, graph.total, words, width=124),
    }


def _comments(request: DashboardRequest, project: Project, found: Task) -> dict[str, Any]:
    views = comment_views(list_comments(found))
    return {"comments": views, "handoff": next((one for one in views if one.is_handoff), None)}


PARTS: dict[str, MakeContext] = {
    "state": _state,
    "waiting": _waiting,
    "assessment": _assessment,
    "steer": _steer,
    "plan": plan_part,
    "steps": _steps,
    "outputs": outputs_part,
    "defects": defects_part,
    "artifacts": artifacts_part,
    "loop": loop_part,
    "comments": _comments,
    "mail": mail_part,
    "assignments": assignments_part,
}
RAIL_PARTS = {
    "packages": "loop",
    "progress": "steps",
    "children": "steps",
    "locked": "artifacts",
    "handoff": "comments",
}


@page
@require_GET
def task_part(request: DashboardRequest, slug: str, pk: int, name: str) -> HttpResponse:
    """One live part of the page."""
    project, found = _find(request, slug, pk)
    make = PARTS.get(RAIL_PARTS.get(name, name))
    if make is None:
        raise NotFound("There is no such part.")
    context = _base_context(request, project, found) | make(request, project, found)
    return render(request, f"{PAGE}#{name}", context)


# --- Assignment and artifact ----------------------------------------------------------------------


@page
@require_safe
def assignment(request: DashboardRequest, slug: str, pk: int) -> HttpResponse:
    """One assignment: what it was asked, the prompt as sent, its tool calls, log and result."""
    project = access_project(request.user, slug)
    row = access_assignment(request.user, str(pk))
    if row.project_id != project.pk:
        raise NotFound("There is no such assignment.")
    _project, found = _find(request, slug, row.task_id)
    calls = list(row.tool_calls.order_by("-pk")[:200])[::-1]
    chunks = row.log_chunks.order_by("pk")
    context = {
        "project": project,
        "row": row,
        "task": found,
        "place": task_place(found, project),
        "label": assignment_label(row.status, has_filler=row.backend != "external"),
        "seat": seat_word(row.seat),
        "line": assignment_lines([row], project)[0],
        "backend": backend_word(row.backend),
        "input": json.dumps(row.input, ensure_ascii=False, indent=2),
        "result": json.dumps(row.result, ensure_ascii=False, indent=2) if row.result else "",
        "hints": setting_lines(row.hints),
        "limits": setting_lines(row.limits),
        "calls": call_lines(calls),
        "log_text": "".join(chunk.text for chunk in chunks[:500]),
        "crumbs": [*_crumbs(project, found)[:-1], Crumb(task_place(found, project),
                   task_url(found, project)), Crumb(seat_word(row.seat))],
        "project_slug": project.slug,
        "position": newest_position(),
        "changes_url": address("changes", project=project.slug),
    }  # fmt: skip
    return render(request, "dashboard/tasks/assignment.html", context)


@page
@require_safe
def artifact(request: DashboardRequest, slug: str, pk: int) -> HttpResponse:
    """The bytes of a locked artifact, always as a download of plain data."""
    project = access_project(request.user, slug)
    found = access_artifact(request.user, str(pk))
    if found.project_id != project.pk:
        raise NotFound("There is no such artifact.")
    data = bytes(found.content.data)
    name = download_name(found.name, found.type, data)
    response = HttpResponse(data, content_type="application/octet-stream")
    disposition = content_disposition_header(as_attachment=True, filename=name[-150:])
    response["Content-Disposition"] = disposition or "attachment"
    response["X-Content-Type-Options"] = "nosniff"
    return response


# --- Steering -------------------------------------------------------------------------------------


@sir_only
@require_POST
def replan(request: DashboardRequest, slug: str, pk: int) -> HttpResponse:
    """Plan a root again with a reason."""
    project, found = _find(request, slug, pk)
    back = task_url(found, project)
    form = ReasonForm(request.POST)
    reason = form.cleaned_data["reason"] if form.is_valid() else ""
    try:
        replan_task(task_id=found.pk, actor=actor_of(request), reason=reason)
    except CountersignError as error:
        return refusal(request, error, back_url=back)
    return see_other(back)


@sir_only
@require_POST
def comment(request: DashboardRequest, slug: str, pk: int) -> HttpResponse:
    """Comment on a task; the agents that work on it read it."""
    project, found = _find(request, slug, pk)
    back = task_url(found, project)
    form = CommentForm(request.POST)
    if not form.is_valid():
        return render(
            request, "dashboard/refusal.html",
            {"title": _("Comment"), "detail": form.errors["body"][0], "back_url": back}, status=422,
        )  # fmt: skip
    try:
        add_task_comment(
            task_id=found.pk, document=CommentInput(body=form.cleaned_data["body"]), agent=None,
            actor=actor_of(request),
        )  # fmt: skip
    except CountersignError as error:
        return refusal(request, error, back_url=back)
    return see_other(f"{back}#comments", sent_draft=f"comment-{found.pk}")


@sir_only
@require_http_methods(["GET", "HEAD", "POST"])
def cancel(request: DashboardRequest, slug: str, pk: int) -> HttpResponse:
    """Ask once more on a page of its own, then cancel a task and its steps."""
    project, found = _find(request, slug, pk)
    back = task_url(found, project)
    form = ReasonForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            cancel_task(
                task_id=found.pk, actor=actor_of(request), reason=form.cleaned_data["reason"]
            )
        except CountersignError as error:
            return refusal(request, error, back_url=back)
        return see_other(back)
    context = {
        "task": found,
        "project": project,
        "place": task_place(found, project),
        "form": form,
        "back_url": back,
        "crumbs": [*_crumbs(project, found)[:-1], Crumb(_("Cancel"))],
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "dashboard/tasks/cancel.html", context, status=status)
