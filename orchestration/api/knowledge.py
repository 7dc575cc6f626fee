"""Experiences and wiki pages: read, search in Chinese and English, write, review."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from django.db.models import Model
from drf_spectacular.utils import OpenApiParameter, extend_schema
from pydantic import Field, StrictStr
from rest_framework.request import Request
from rest_framework.response import Response

from orchestration.access import access_experience, access_page, access_task
from orchestration.api.base import ApiView
from orchestration.api.bodies import Body, LongText, Name, Reason, RowName, Version
from orchestration.api.operations import keyed_post
from orchestration.api.pagination import PAGE_PARAMETERS, paged, read_page_size
from orchestration.api.permissions import require_commenter, require_sir_or_scope
from orchestration.api.projects import etag
from orchestration.api.schema import IF_MATCH, problems
from orchestration.api.shapes.base import Shape
from orchestration.api.shapes.knowledge import (
    ExperiencePage,
    ExperienceShape,
    WikiList,
    WikiPageShape,
    WikiVersions,
    WikiVersionShape,
)
from orchestration.errors import Conflict, Fault, Invalid
from orchestration.models import Experience, Project, WikiPage
from orchestration.scopes import Scope
from orchestration.selectors.knowledge import search_experiences, search_pages
from orchestration.services.knowledge import (
    PageText,
    review_experience,
    review_page,
    write_experience,
    write_page,
)
from orchestration.states import KnowledgeStatus

READ = problems(401, 404, 422)
WRITE = problems(400, 401, 403, 404, 409, 412, 422)
Title = Annotated[StrictStr, Field(min_length=1, max_length=300, pattern=r"\S")]
PageName = Annotated[StrictStr, Field(pattern=r"^[\w.@-]{1,200}$")]
SEARCH = [
    OpenApiParameter("q", str, description="Words in Chinese or English; the best come first."),
    OpenApiParameter(
        "status",
        str,
        enum=[status.value for status in KnowledgeStatus],
        description="Only these; without it, all that were not rejected.",
    ),
    *PAGE_PARAMETERS,
]


class ExperienceBody(Body):
    """An experience, where it helps with the task it comes from."""

    title: Title
    body: LongText = ""
    task: RowName | None = None


class PageBody(Body):
    """A new wiki page. Its name is its address: letters of any script, digits, `.@-_`."""

    name: PageName
    title: Name = ""
    summary: LongText = ""
    body: LongText


class PageEditBody(Body):
    """A new version of a page; an empty title or summary stays as it stands."""

    title: Name = ""
    summary: LongText = ""
    body: LongText
    version: Version | None = None


class ReviewBody(Body):
    """What a reviewer says of a text, in the version that was seen."""

    verdict: Literal["accept", "reject"]
    reason: Reason = ""
    version: Version | None = None

    @property
    def status(self) -> KnowledgeStatus:
        """The status that the verdict gives. Errors: Invalid for a rejection without a reason."""
        if self.verdict == "accept":
            return KnowledgeStatus.ACCEPTED
        if not self.reason.strip():
            raise Invalid(
                "A rejection needs a reason.", errors=[Fault(path="reason", message="is required")]
            )
        return KnowledgeStatus.REJECTED


class KnowledgeView(ApiView):
    """Base: lists and searches of one kind."""

    def listed(
        self, request: Request, rows: Any, shape: type[Shape], found: Sequence[Model] | None
    ) -> Response:
        """Answer a page of a list, or what a search found, of one status where it is asked for."""
        status = request.query_params.get("status")
        if status:
            self._require_known(status)
        if found is not None:
            kept = [row for row in found if not status or getattr(row, "status", "") == status]
            results = [shape.of(row).document() for row in kept[: read_page_size(request)]]
            return Response({"results": results, "next": None, "previous": None})
        rejected = KnowledgeStatus.REJECTED.value
        rows = rows.filter(status=status) if status else rows.exclude(status=rejected)
        page = paged(
            request, rows, lambda some: [shape.of(row).document() for row in some],
            newest_first=True,
        )  # fmt: skip
        return Response(page)

    def written(
        self, project: Project, name: str, body: PageBody | PageEditBody, seen_version: int | None
    ) -> WikiPage:
        """Write a version of a page as the caller."""
        return write_page(
            project=project,
            name=name,
            text=PageText(body.body, title=body.title, summary=body.summary),
            seen_version=seen_version,
            agent=self.caller.agent,
            actor=self.actor,
        )

    def _require_known(self, status: str) -> None:
        known = [one.value for one in KnowledgeStatus]
        if status not in known:
            message = f"must be one of {', '.join(known)}"
            raise Invalid(f"The status {message}.", errors=[Fault(path="status", message=message)])


def words_of(request: Request) -> str:
    """The words that are searched for; empty without any."""
    return str(request.query_params.get("q", "")).strip()


class ExperiencesView(KnowledgeView):
    """The experiences of a project."""

    @extend_schema(
        operation_id="list_experiences",
        tags=["knowledge"],
        parameters=SEARCH,
        responses={200: ExperiencePage, **READ},
    )
    def get(self, request: Request, pid: str) -> Response:
        """List experiences, the newest first; or search them."""
        project = self.project(pid)
        words = words_of(request)
        found = search_experiences(project, words) if words else None
        rows = Experience.objects.filter(project=project)
        return self.listed(request, rows, ExperienceShape, found)

    @keyed_post(
        "write_experience", "knowledge", body=ExperienceBody, answer=ExperienceShape, status=201
    )
    def post(self, request: Request, pid: str) -> Response:
        """Write down an experience. An agent's is unreviewed until somebody accepts it."""
        project = self.project(pid)
        require_commenter(self.caller)
        body = self.body(ExperienceBody)
        row = write_experience(
            project=project,
            title=body.title,
            body=body.body,
            task=access_task(project, body.task) if body.task else None,
            agent=self.caller.agent,
            actor=self.actor,
        )
        return Response(ExperienceShape.of(row).document(), status=201)


class ExperienceView(KnowledgeView):
    """One experience."""

    @extend_schema(
        operation_id="read_experience",
        tags=["knowledge"],
        responses={200: ExperienceShape, **READ},
    )
    def get(self, request: Request, pid: str, experience: str) -> Response:
        """Read an experience."""
        row = access_experience(self.project(pid), experience)
        return Response(ExperienceShape.of(row).document(), headers=etag(row.version))


class ExperienceReviewView(KnowledgeView):
    """Review an experience."""

    @keyed_post(
        "review_experience",
        "knowledge",
        body=ReviewBody,
        answer=ExperienceShape,
        parameters=IF_MATCH,
    )
    def post(self, request: Request, pid: str, experience: str) -> Response:
        """Accept or reject it: Sir, or a reviewer who did not write it."""
        row = access_experience(self.project(pid), experience)
        require_sir_or_scope(self.caller, Scope.REVIEW)
        body = self.body(ReviewBody)
        row = review_experience(
            experience_id=row.pk,
            verdict=body.status,
            reason=body.reason,
            seen_version=self.seen_version(body.version),
            actor=self.actor,
        )
        return Response(ExperienceShape.of(row).document())


class WikiView(KnowledgeView):
    """The wiki of a project."""

    @extend_schema(
        operation_id="list_wiki",
        tags=["knowledge"],
        parameters=SEARCH,
        responses={200: WikiList, **READ},
    )
    def get(self, request: Request, pid: str) -> Response:
        """List pages, the newest first; or search them."""
        project = self.project(pid)
        words = words_of(request)
        found = search_pages(project, words) if words else None
        rows = WikiPage.objects.filter(project=project)
        return self.listed(request, rows, WikiPageShape, found)

    @keyed_post("create_wiki_page", "knowledge", body=PageBody, answer=WikiPageShape, status=201)
    def post(self, request: Request, pid: str) -> Response:
        """Write a new page. An agent's is unreviewed until somebody accepts it."""
        project = self.project(pid)
        require_commenter(self.caller)
        body = self.body(PageBody)
        if WikiPage.objects.filter(project=project, name=body.name).exists():
            raise Conflict(f"There is a page {body.name!r} already.", code="page_taken")
        row = self.written(project, body.name, body, seen_version=0)
        return Response(WikiPageShape.of(row).document(), status=201, headers=etag(row.version))


class PageView(KnowledgeView):
    """One wiki page, by name or id."""

    @extend_schema(
        operation_id="read_wiki_page",
        tags=["knowledge"],
        responses={200: WikiPageShape, **READ},
    )
    def get(self, request: Request, pid: str, page: str) -> Response:
        """Read the newest version of a page."""
        row = access_page(self.project(pid), page)
        return Response(WikiPageShape.of(row).document(), headers=etag(row.version))

    @extend_schema(
        operation_id="edit_wiki_page",
        tags=["knowledge"],
        parameters=IF_MATCH,
        request=PageEditBody,
        responses={200: WikiPageShape, **WRITE},
    )
    def put(self, request: Request, pid: str, page: str) -> Response:
        """Write a new version; every version stays, with its author."""
        project = self.project(pid)
        row = access_page(project, page)
        require_commenter(self.caller)
        body = self.body(PageEditBody)
        row = self.written(project, row.name, body, self.seen_version(body.version))
        return Response(WikiPageShape.of(row).document(), headers=etag(row.version))


class VersionsView(KnowledgeView):
    """Every version of a page."""

    @extend_schema(
        operation_id="list_wiki_versions",
        tags=["knowledge"],
        parameters=PAGE_PARAMETERS,
        responses={200: WikiVersions, **READ},
    )
    def get(self, request: Request, pid: str, page: str) -> Response:
        """List the versions, oldest first."""
        rows = access_page(self.project(pid), page).versions.all()
        found = paged(
            request, rows, lambda some: [WikiVersionShape.of(row).document() for row in some]
        )
        return Response(found)


class PageReviewView(KnowledgeView):
    """Review a wiki page."""

    @keyed_post(
        "review_wiki_page", "knowledge", body=ReviewBody, answer=WikiPageShape, parameters=IF_MATCH
    )
    def post(self, request: Request, pid: str, page: str) -> Response:
        """Accept or reject its newest version: Sir, or a reviewer who did not write it."""
        row = access_page(self.project(pid), page)
        require_sir_or_scope(self.caller, Scope.REVIEW)
        body = self.body(ReviewBody)
        row = review_page(
            page_id=row.pk,
            verdict=body.status,
            reason=body.reason,
            seen_version=self.seen_version(body.version),
            actor=self.actor,
        )
        return Response(WikiPageShape.of(row).document())
