"""The bootstrap prompt of a task: everything a seat is told, as JSON or as Markdown."""

from __future__ import annotations

import json
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from orchestration.api.base import ApiView
from orchestration.api.schema import problems
from orchestration.api.shapes.prompts import BootstrapShape
from orchestration.errors import Fault, Invalid
from orchestration.models import Assignment, Task
from orchestration.services.prompts import asked_of, build_prompt, held_by, send_prompt
from orchestration.states import Seat

MARKDOWN = "text/markdown"


class MarkdownRenderer(BaseRenderer):
    """Answers text as it is; a problem stays the JSON document that it is."""

    media_type = MARKDOWN
    format = "markdown"
    charset = "utf-8"

    def render(self, data: Any, *_: Any, **__: Any) -> bytes:
        """Encode the prompt, or the problem."""
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        return text.encode("utf-8")


class BootstrapView(ApiView):
    """The prompt of a seat."""

    renderer_classes = (JSONRenderer, MarkdownRenderer)

    @extend_schema(
        operation_id="read_bootstrap",
        tags=["blackboard"],
        parameters=[
            OpenApiParameter(
                "role",
                str,
                enum=[seat.value for seat in Seat],
                description="The seat; else the one the caller holds, else the task's next.",
            ),
            OpenApiParameter("format", str, enum=["json", "markdown"], description="Or `Accept`."),
        ],
        responses={
            (200, "application/json"): BootstrapShape,
            (200, MARKDOWN): OpenApiTypes.STR,
            **problems(401, 404, 406, 409, 422),
        },
    )
    def get(self, request: Request, pid: str, task: str) -> Response:
        """Read what whoever fills a seat is told. To its holder it is sent, and stored as sent."""
        found = self.task(pid, task)
        seat = read_role(request.query_params.get("role"))
        base_url = request.build_absolute_uri("/").rstrip("/")
        agent = self.caller.agent
        held = held_by(found, agent, seat) if agent is not None else None
        if held is not None:
            prompt = send_prompt(task=found, assignment=held, base_url=base_url, actor=self.actor)
        else:
            seat = seat or next_seat(found)
            asked = asked_of(found, seat)
            prompt = build_prompt(
                task=found, seat=seat, assignment=asked, base_url=base_url, agent=agent
            )
        if request.accepted_renderer.format == MarkdownRenderer.format:
            return Response(prompt.text, headers=_HEADERS)
        shape = BootstrapShape.of_prompt(prompt, found, sent_for=held)
        return Response(shape.document(), headers=_HEADERS)


_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def read_role(text: str | None) -> Seat | None:
    """Read `role`; None when it is not given. Errors: Invalid for what is no seat."""
    if not text:
        return None
    known = [seat.value for seat in Seat]
    if text not in known:
        message = f"must be one of {', '.join(known)}"
        raise Invalid(f"The role {message}.", errors=[Fault(path="role", message=message)])
    return Seat(text)


def next_seat(task: Task) -> Seat:
    """The seat that a task asks for next: a live assignment's, else by what the task is."""
    live = Assignment.objects.filter(task=task, status__in=("queued", "leased")).order_by("pk")
    seat = live.values_list("seat", flat=True).last()
    if seat is not None:
        return Seat(seat)
    return Seat.PLANNER if task.is_planned else Seat.EXECUTOR
