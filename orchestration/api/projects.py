"""Projects: list, create, read, change, pause, resume."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import Count
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from orchestration.access import access_project, visible_projects
from orchestration.api.base import ApiView
from orchestration.api.bodies import ProjectCreateBody, ProjectPatchBody, ReasonBody
from orchestration.api.idempotency import idempotent
from orchestration.api.operations import SirView, keyed_post
from orchestration.api.pagination import PAGE_PARAMETERS, paged
from orchestration.api.permissions import require_decider, require_sir
from orchestration.api.schema import IF_MATCH, KEYED, problems
from orchestration.api.shapes.projects import ProjectDetail, ProjectPage, ProjectShape
from orchestration.models import Assignment, Decision, Project, Task
from orchestration.services.projects import (
    ProjectChange,
    archive_project,
    create_project,
    pause_project,
    resume_project,
    update_project,
)
from orchestration.states import AssignmentStatus, DecisionStatus, ProjectStatus, TaskKind


def project_document(project: Project) -> dict[str, Any]:
    """Shape one project with its policy."""
    counts = _counts([project])[project.pk]
    return ProjectDetail.of_counts(project, **counts, policy=project.policy.document()).document()


def _page(rows: Sequence[Project]) -> list[dict[str, Any]]:
    counts = _counts(rows)
    return [ProjectShape.of_counts(row, **counts[row.pk]).document() for row in rows]


def _counts(rows: Sequence[Project]) -> dict[int, dict[str, Any]]:
    """Count roots by state, open decisions and live leases, in three queries."""
    ids = [row.pk for row in rows]
    counts: dict[int, dict[str, Any]] = {
        pk: {"draining": 0, "task_counts": {}, "open_decisions": 0} for pk in ids
    }
    roots = Task.objects.filter(project__in=ids, parent__isnull=True, kind=TaskKind.TASK.value)
    for pk, status, count in (
        roots.order_by().values_list("project", "status").annotate(Count("pk"))
    ):
        counts[pk]["task_counts"][status] = count
    waiting = Decision.objects.filter(project__in=ids, status=DecisionStatus.OPEN.value)
    for pk, count in waiting.order_by().values_list("project").annotate(Count("pk")):
        counts[pk]["open_decisions"] = count
    stopped = [row.pk for row in rows if row.status != ProjectStatus.ACTIVE]
    leased = Assignment.objects.filter(project__in=stopped, status=AssignmentStatus.LEASED.value)
    for pk, count in leased.order_by().values_list("project").annotate(Count("pk")):
        counts[pk]["draining"] = count
    return counts


class ProjectsView(ApiView):
    """All projects the caller may see."""

    @extend_schema(
        operation_id="list_projects",
        tags=["projects"],
        parameters=PAGE_PARAMETERS,
        responses={200: ProjectPage, **problems(401, 422)},
    )
    def get(self, request: Request) -> Response:
        """List projects."""
        return Response(paged(request, visible_projects(self.caller.viewer), _page))

    @extend_schema(
        operation_id="create_project",
        tags=["projects"],
        parameters=KEYED,
        request=ProjectCreateBody,
        responses={201: ProjectDetail, **problems(400, 401, 403, 409, 422)},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Create a project. Only Sir does this."""
        require_sir(self.caller)
        body = self.body(ProjectCreateBody)
        if body.policy:
            require_decider(self.caller)
        project = create_project(
            slug=body.slug,
            name=body.name,
            description=body.description,
            workspace=body.workspace,
            policy=body.policy,
            language=body.language,
            actor=self.actor,
        )
        return Response(project_document(project), status=201)


class ProjectView(ApiView):
    """One project, by id or slug."""

    @extend_schema(
        operation_id="read_project",
        tags=["projects"],
        responses={200: ProjectDetail, **problems(401, 404)},
    )
    def get(self, request: Request, pid: str) -> Response:
        """Read a project with its whole policy."""
        return project_answer(self.project(pid))

    @extend_schema(
        operation_id="change_project",
        tags=["projects"],
        parameters=IF_MATCH,
        request=ProjectPatchBody,
        responses={200: ProjectDetail, **problems(400, 401, 403, 404, 412, 422)},
    )
    def patch(self, request: Request, pid: str) -> Response:
        """Change a project. The policy decides what Sir is asked, so changing it is deciding."""
        project = self.project(pid)
        require_sir(self.caller)
        body = self.body(ProjectPatchBody)
        if body.policy is not None:
            require_decider(self.caller)
        changed = update_project(
            project_id=project.pk,
            change=ProjectChange(body.name, body.description, body.language, body.policy),
            actor=self.actor,
            seen_version=self.seen_version(body.version),
        )
        return project_answer(changed)


class PauseView(SirView):
    """Suspend a project."""

    @keyed_post(
        "pause_project", "projects", body=ReasonBody, answer=ProjectDetail, parameters=IF_MATCH
    )
    def post(self, request: Request, pid: str) -> Response:
        """Suspend it: leased work may finish, nothing new starts, all clocks stand still."""
        return project_answer(self.as_sir(pause_project, project_id=self.project(pid).pk))


class ResumeView(SirView):
    """Let a suspended project go on."""

    @keyed_post(
        "resume_project", "projects", body=ReasonBody, answer=ProjectDetail, parameters=IF_MATCH
    )
    def post(self, request: Request, pid: str) -> Response:
        """Make it active again; what waited starts."""
        return project_answer(self.as_sir(resume_project, project_id=self.project(pid).pk))


class ArchiveProjectView(SirView):
    """Put a project away."""

    @keyed_post(
        "archive_project", "projects", body=ReasonBody, answer=ProjectDetail, parameters=IF_MATCH
    )
    def post(self, request: Request, pid: str) -> Response:
        """Archive it, from any state: what has not ended is cancelled, and it takes no more.

        Its questions are withdrawn. In safe stop its tasks stay as they were found.
        """
        found = access_project(self.caller.viewer, pid)
        return project_answer(self.as_sir(archive_project, project_id=found.pk))


def project_answer(project: Project) -> Response:
    """Answer with a project as it is after the call."""
    return Response(project_document(project), headers=etag(project.version))


def etag(version: int) -> dict[str, str]:
    """Give the header that `If-Match` sends back."""
    return {"ETag": f'"{version}"'}
