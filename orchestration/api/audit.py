"""The audit trail over REST: the feed by position, pages newest first, and the proof of the chain.

Source: DESIGN section 13.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from orchestration.access import access_project, access_task
from orchestration.api.base import ApiView
from orchestration.api.bodies import EmptyBody
from orchestration.api.idempotency import idempotent
from orchestration.api.pagination import MAX_PAGE_SIZE, PAGE_PARAMETERS, paged, read_count
from orchestration.api.permissions import require_human
from orchestration.api.schema import KEYED, problems
from orchestration.api.shapes.audit import ChainFaultShape, EventFeed, EventPage, VerifyShape
from orchestration.models import AuditSeal, Project
from orchestration.selectors.audit import count_unsealed
from orchestration.services.audit import describe_event, verify_chain

FEED_SIZE = 100
LAST_POSITION = 10**18


def sealed_events(project: Project) -> QuerySet[AuditSeal]:
    """List the sealed events of a project."""
    return AuditSeal.objects.select_related("event").filter(event__project=project)


class EventsView(ApiView):
    """The feed of a project's events."""

    @extend_schema(
        operation_id="read_events",
        tags=["audit"],
        parameters=[
            OpenApiParameter("after", int, description="The last `position` that was read."),
            OpenApiParameter("page_size", int, description=f"1 to {MAX_PAGE_SIZE}."),
        ],
        responses={200: EventFeed, **problems(401, 404, 422)},
    )
    def get(self, request: Request, pid: str) -> Response:
        """Read events after a position, in order. Nothing is ever skipped or repeated."""
        project = self.project(pid)
        after = read_count(request, "after", default=0, low=0, high=LAST_POSITION)
        size = read_count(request, "page_size", default=FEED_SIZE, low=1, high=MAX_PAGE_SIZE)
        rows = sealed_events(project).filter(position__gt=after).order_by("position")
        found = list(rows[: size + 1])
        page = found[:size]
        position = page[-1].position if page else after
        following = None
        if len(found) > size:
            following = replace_query_param(request.build_absolute_uri(), "after", str(position))
        body = {
            "results": [describe_event(seal) for seal in page],
            "next": following,
            "previous": None,
            "position": position,
        }
        return Response(body)


class AuditView(ApiView):
    """The trail of a project, newest first."""

    @extend_schema(
        operation_id="list_audit",
        tags=["audit"],
        parameters=[
            OpenApiParameter("kind", str, description="A kind, or its noun: `task`, `task.done`."),
            OpenApiParameter("actor", str),
            OpenApiParameter("task", str, description="Only events about this task."),
            *PAGE_PARAMETERS,
        ],
        responses={200: EventPage, **problems(401, 404, 422)},
    )
    def get(self, request: Request, pid: str) -> Response:
        """List sealed events, newest first."""
        project = self.project(pid)
        rows = sealed_events(project)
        query = request.query_params
        kind, actor, task = query.get("kind"), query.get("actor"), query.get("task")
        if kind:
            by = {"event__kind": kind} if "." in kind else {"event__kind__startswith": f"{kind}."}
            rows = rows.filter(**by)
        if actor:
            rows = rows.filter(event__actor=actor)
        if task:
            rows = rows.filter(event__task=access_task(project, task))
        return Response(paged(request, rows, _page, newest_first=True, field="position"))


def _page(rows: Sequence[AuditSeal]) -> list[dict[str, Any]]:
    return [dict(describe_event(seal)) for seal in rows]


class VerifyView(ApiView):
    """The proof of the whole chain."""

    @extend_schema(
        operation_id="verify_audit",
        tags=["audit"],
        parameters=KEYED,
        request=EmptyBody,
        responses={200: VerifyShape, **problems(401, 403, 404, 422)},
    )
    @idempotent
    def post(self, request: Request, pid: str) -> Response:
        """Recompute the chain of all projects and name the first broken event, if any."""
        access_project(self.caller.viewer, pid)
        require_human(self.caller)
        self.body(EmptyBody)
        checked, fault = verify_chain()
        shape = VerifyShape(
            valid=fault is None,
            checked=checked,
            unsealed=count_unsealed(),
            fault=ChainFaultShape(
                position=fault.position,
                event=str(fault.event_id) if fault.event_id is not None else None,
                problem=fault.problem,
            )
            if fault is not None
            else None,
        )
        return Response(shape.document())
