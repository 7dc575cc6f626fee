"""The project board and its fragments, the list of projects, pause and resume."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_POST, require_safe

from dashboard.boards import (
    make_bands,
    make_master_row,
    make_node,
    make_stages,
    make_step_lines,
    may_pause,
    work_left_words,
)
from dashboard.choices import sort_choices, status_choices
from dashboard.costs import cost_words, make_cost_panel
from dashboard.engine_texts import finding_words, who_words
from dashboard.forms import master_filter, read_number
from dashboard.http import (
    DashboardRequest,
    actor_of,
    is_fragment,
    local_path,
    may_decide,
    page,
    refusal,
    see_other,
    sir_only,
)
from dashboard.logs import log_context
from dashboard.places import address, with_query
from dashboard.presenters import project_label
from dashboard.projects_table import project_lines
from dashboard.shapes import Crumb, Progress
from dashboard.timelines import make_gantt
from orchestration.access import access_project, access_task
from orchestration.errors import CountersignError, NotFound
from orchestration.models import Project, Task
from orchestration.selectors.activity import newest_position
from orchestration.selectors.board import (
    Observation,
    estimate_work_left,
    list_observations,
    read_running,
    read_traffic,
)
from orchestration.selectors.graph import StepGraph, read_graph, read_step, read_timeline
from orchestration.selectors.master import (
    MASTER_PAGE,
    count_by_status,
    describe_roots,
    done_of,
    list_roots,
    pick_root,
)
from orchestration.selectors.overview import cost_of_project, list_projects
from orchestration.selectors.root_queue import make_queue, queue_for, running_roots
from orchestration.selectors.trees import read_trees
from orchestration.services.projects import draining_count, pause_project, resume_project

PAGE = "dashboard/projects/board.html"
VIEWS = ("steps", "phases", "table")


@page
@require_safe
def projects(request: HttpRequest) -> HttpResponse:
    """Every project with its health and progress, those that need Sir first."""
    context = {
        "crumbs": [Crumb(_("Projects"))],
        "lines": project_lines(list_projects()),
        "project_slug": "*",
        "position": newest_position(),
        "changes_url": address("changes"),
    }
    return render(request, "dashboard/projects/list.html", context)


@page
@require_safe
def board(request: DashboardRequest, slug: str) -> HttpResponse:
    """The whole board of one project."""
    position = newest_position()
    project = access_project(request.user, slug)
    root = pick_root(project, request.GET.get("task", ""))
    counts = count_by_status(project)
    context = _head_context(request, project, counts) | _pipeline_context(project)
    context |= _master_context(request, project, root, counts)
    context |= _plan_context(request, project, root) | _risks_context(root)
    context |= log_context(project, root)
    context |= {
        "crumbs": [Crumb(_("Projects"), address("projects")), Crumb(project.name)],
        "project_slug": project.slug,
        "position": position,
        "changes_url": address("changes", project=project.slug),
        "cost": cost_words(cost_of_project(project.pk)),
        "cost_url": with_query(
            request.get_full_path().partition("?")[0],
            {
                "task": root.pk if root is not None else "",
                "panel": "cost",
            },
        ),
    }
    context |= _costs_context(project)
    if request.GET.get("panel") == "cost":
        context |= {"panel": "cost", "costs": make_cost_panel(project)}
    return render(request, PAGE, context)


def _head_context(
    request: HttpRequest, project: Project, counts: Mapping[str, int] | None = None
) -> dict[str, Any]:
    done, total = done_of(count_by_status(project) if counts is None else counts)
    is_paused = not may_pause(project)
    return {
        "project": project,
        "label": project_label(project.status),
        "done": done,
        "total": total,
        "progress": Progress(done, total, f"{done}/{total}", width=120),
        "work_left": work_left_words(estimate_work_left(project)),
        "draining": draining_count(project.pk) if is_paused else 0,
        "may_pause": not is_paused and may_decide(request),
        "may_resume": project.status == "suspended" and may_decide(request),
        "may_archive": project.status != "archived" and may_decide(request),
    }


def _pipeline_context(project: Project) -> dict[str, Any]:
    stages = make_stages(read_traffic(project.pk), read_running(project.pk))
    return {"stages": stages, "project": project}


def _master_context(
    request: DashboardRequest,
    project: Project,
    root: Task | None,
    counts: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """The master list: a page of 100 and the true total. Filters and page live in the address."""
    wanted = master_filter(request.GET)
    number = max(read_number(request.GET, "page") or 1, 1)
    roots, total = list_roots(project, wanted, page=number, counts=counts)
    running = running_roots(project)
    trees = read_trees([one.pk for one in (*roots, *running)])
    tasks = describe_roots(roots, trees)
    query = {
        "status": wanted.status, "q": wanted.text, "sort": wanted.sort,
        "task": root.pk if root is not None else "",
    }  # fmt: skip
    url = address("board", project.slug)
    current = root.pk if root is not None else None
    queue = make_queue(project, running, trees)
    return {
        "rows": [make_master_row(one, project, current=current, queue=queue) for one in tasks],
        "root_total": total,
        "statuses": status_choices(url, query),
        "sorts": sort_choices(url, query),
        "wanted": wanted,
        "master_url": with_query(address("master", project.slug), query | {"page": number}),
        "master_version": max((one.task.pk for one in tasks), default=0),
        "next_url": with_query(url, query | {"page": number + 1})
        if total > number * MASTER_PAGE
        else "",
        "previous_url": with_query(url, query | {"page": number - 1}) if number > 1 else "",
    }


def _plan_context(request: DashboardRequest, project: Project, root: Task | None) -> dict[str, Any]:
    if root is None:
        return {"root": None}
    root.project = project
    view = request.GET.get("view", "")
    view = view if view in VIEWS else "steps"
    phase = read_number(request.GET, "phase")
    graph = read_graph(root, open_phase=0 if view == "phases" else phase)
    now = timezone.now()
    url = address("board", project.slug)
    return {
        "root": root,
        "root_key": f"{project.key_prefix}-{root.number}",
        "blueprint": root.blueprints.order_by("-number").defer("canonical").first(),
        "view": view,
        "view_urls": {name: with_query(url, {"task": root.pk, "view": name}) for name in VIEWS},
        "bands": make_bands(graph, project, current=None) if view != "table" else [],
        "step_lines": make_step_lines(graph, project) if view == "table" else [],
        "graph_version": graph_version(root, graph),
        "steps": [one.task.step_key for one in graph.steps][:200],
        "gantt": make_gantt(read_timeline(root, now), now),
        "phase": phase,
    }


def _risks_context(root: Task | None) -> dict[str, Any]:
    if root is None:
        return {}
    found = list_observations(root)
    return {
        "observations": [(one, _said(one), who_words(one.source)) for one in found.shown],
        "observation_total": found.total,
    }


def _said(one: Observation) -> str:
    """What an audit by rules said in the reader's language; what agents met in their own words."""
    return one.text if one.is_risk else finding_words(one.text)


def graph_version(root: Task, graph: StepGraph) -> int:
    """Grows with every new blueprint and every added step; a mere change of state keeps it."""
    return root.attempt * 1_000_000 + graph.total


# --- Fragments ------------------------------------------------------------------------------------


@page
@require_GET
def board_head(request: DashboardRequest, slug: str) -> HttpResponse:
    """State, progress and what is left."""
    project = access_project(request.user, slug)
    return render(request, f"{PAGE}#head", _head_context(request, project))


@page
@require_GET
def pipeline(request: DashboardRequest, slug: str) -> HttpResponse:
    """Figures of S0 to S3."""
    project = access_project(request.user, slug)
    return render(request, f"{PAGE}#pipeline", _pipeline_context(project))


@page
@require_GET
def costs(request: DashboardRequest, slug: str) -> HttpResponse:
    """What the project cost, by seat and by root; asked for when its panel is shown."""
    project = access_project(request.user, slug)
    context = _costs_context(project) | {"costs": make_cost_panel(project)}
    return render(request, "dashboard/_parts/cost_panel.html", context)


def _costs_context(project: Project) -> dict[str, Any]:
    url = address("costs", project.slug)
    return {"costs_url": url, "costs_topic": f"project:{project.pk}"}


@page
@require_GET
def master(request: DashboardRequest, slug: str) -> HttpResponse:
    """The rows of the master list."""
    project = access_project(request.user, slug)
    root = pick_root(project, request.GET.get("task", ""))
    return render(request, f"{PAGE}#master", _master_context(request, project, root))


@page
@require_GET
def master_row(request: DashboardRequest, slug: str, pk: int) -> HttpResponse:
    """One row of the master list."""
    project = access_project(request.user, slug)
    task = access_task(project, str(pk))
    if task.parent_id is not None:
        raise NotFound("There is no such root.")
    row = make_master_row(describe_roots([task])[0], project, queue=queue_for(project, [task]))
    return render(request, "dashboard/_parts/master_row.html", {"row": row})


@page
@require_GET
def graph(request: DashboardRequest, slug: str, pk: int) -> HttpResponse:
    """The phase graph, when its layout has changed; 304 when only states have."""
    project = access_project(request.user, slug)
    root = access_task(project, str(pk))
    context = _plan_context(request, project, root)
    if str(context["graph_version"]) == request.GET.get("version"):
        return HttpResponse(status=HTTPStatus.NOT_MODIFIED)
    return render(request, f"{PAGE}#graph", context | {"project": project})


@page
@require_GET
def band(request: DashboardRequest, slug: str, pk: int, phase: int) -> HttpResponse:
    """The head of one phase, or the whole of it where it is folded."""
    project = access_project(request.user, slug)
    root = access_task(project, str(pk))
    bands = make_bands(read_graph(root, open_phase=0), project, current=None)
    found = next((one for one in bands if one.phase == phase), None)
    if found is None:
        raise NotFound("There is no such phase.")
    part = "band" if found.is_collapsed else "band_head"
    return render(request, f"dashboard/_parts/{part}.html", {"band": found})


@page
@require_GET
def node(request: DashboardRequest, slug: str, pk: int) -> HttpResponse:
    """One step of the graph."""
    project = access_project(request.user, slug)
    step = read_step(access_task(project, str(pk)).pk)
    found = make_node(step, project, x=0, y=0)
    return render(request, "dashboard/_parts/phase_node.html", {"node": found})


@page
@require_GET
def timeline(request: DashboardRequest, slug: str, pk: int) -> HttpResponse:
    """The timeline of one root."""
    project = access_project(request.user, slug)
    root = access_task(project, str(pk))
    now = timezone.now()
    context = {"gantt": make_gantt(read_timeline(root, now), now), "project": project, "root": root}
    return render(request, f"{PAGE}#timeline", context)


@page
@require_GET
def risks(request: DashboardRequest, slug: str, pk: int) -> HttpResponse:
    """The risks and observations of one root."""
    project = access_project(request.user, slug)
    root = access_task(project, str(pk))
    context = _risks_context(root) | {"project": project, "root": root}
    return render(request, f"{PAGE}#risks", context)


# --- Pause and resume -----------------------------------------------------------------------------


@sir_only
@require_POST
def pause(request: DashboardRequest, slug: str) -> HttpResponse:
    """Suspend a project: leased work may finish, nothing new starts."""
    project = access_project(request.user, slug)
    back = local_path(request, request.POST.get("next", "")) or address("board", project.slug)
    try:
        pause_project(project_id=project.pk, actor=actor_of(request))
    except CountersignError as error:
        return refusal(request, error, back_url=back)
    return _after_move(request, project, back)


@sir_only
@require_POST
def resume(request: DashboardRequest, slug: str) -> HttpResponse:
    """Let a suspended project go on."""
    project = access_project(request.user, slug)
    back = local_path(request, request.POST.get("next", "")) or address("board", project.slug)
    try:
        resume_project(project_id=project.pk, actor=actor_of(request))
    except CountersignError as error:
        return refusal(request, error, back_url=back)
    return _after_move(request, project, back)


def _after_move(request: DashboardRequest, project: Project, back: str) -> HttpResponse:
    if is_fragment(request):
        project.refresh_from_db()
        return render(request, f"{PAGE}#head", _head_context(request, project))
    return see_other(back)
