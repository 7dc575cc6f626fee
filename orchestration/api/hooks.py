"""What the harnesses of agents send: Claude Code's hook events, Codex's lines.

Both keep fields that we do not know: they are the harness's documents, not requests of ours.
Source: DESIGN sections 8 and 14.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, Any

from django.conf import settings
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from orchestration.api.assignments import HeldView
from orchestration.api.base import ApiView, read_body
from orchestration.api.bodies import CodexBody
from orchestration.api.idempotency import idempotent
from orchestration.api.parsers import JsonParser
from orchestration.api.permissions import require_agent
from orchestration.api.schema import KEYED, LEASE, problems
from orchestration.api.shapes.work import CodexShape
from orchestration.contracts.harness import read_claude_event
from orchestration.errors import Fault, Invalid, TooLarge
from orchestration.services.hooks import Caller, take_claude_event, take_codex_lines

LEASE_HEADER = "X-Lease-Token"


class LinesParser(BaseParser):
    """Take JSON Lines as they are; each is read on its own, so that each fault is named."""

    media_type = "application/x-ndjson"

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the lines that hold anything. Errors: TooLarge; Invalid for other than UTF-8."""
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        data = stream.read(limit + 1)
        if len(data) > limit:
            raise TooLarge(f"The body is larger than {limit} bytes.", limit_bytes=limit)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            message = f"is not valid UTF-8 at byte {error.start}"
            raise Invalid(
                f"The body {message}.", errors=[Fault(path="", message=message)]
            ) from None
        return [line for line in text.split("\n") if line.strip()]


class ClaudeCodeView(ApiView):
    """Take hook events of Claude Code."""

    @extend_schema(
        operation_id="claude_code_hook",
        tags=["hooks"],
        parameters=[*KEYED, *LEASE],
        request=OpenApiTypes.OBJECT,
        responses={200: OpenApiTypes.OBJECT, **problems(400, 401, 403, 413, 422, 429)},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Record an event of your current assignment and answer it as Claude Code expects.

        `PreToolUse` is denied when the lease is gone or Sir is asked, `Stop` is refused once while
        output or hand-off is missing; `PostToolUse` and `PostToolUseFailure` become tool calls.
        Other events are taken and answered with nothing.
        """
        agent = require_agent(self.caller)
        caller = Caller(
            agent,
            lease_token=str(request.headers.get(LEASE_HEADER, "")),
            host=request.get_host(),
        )
        event = read_claude_event(request.data)
        return Response(take_claude_event(event=event, caller=caller, actor=self.actor))


class CodexEventsView(HeldView):
    """Take lines of `codex exec --json`."""

    parser_classes = (JsonParser, LinesParser)

    @extend_schema(
        operation_id="record_codex_events",
        tags=["hooks"],
        parameters=[*KEYED, *LEASE],
        request={"application/json": CodexBody, "application/x-ndjson": OpenApiTypes.STR},
        responses={201: CodexShape, **problems(400, 401, 403, 404, 409, 413, 415, 422)},
    )
    @idempotent
    def post(self, request: Request, assignment: str) -> Response:
        """Record the tool calls, turns and tokens that some lines tell; again they add nothing.

        Send the lines as they are, with the lease token in `X-Lease-Token`, or a JSON object.
        """
        self.assignment(assignment)
        token, lines = self._lines(request)
        done = take_codex_lines(hold=self.hold(assignment, token), lines=lines, actor=self.actor)
        shape = CodexShape(
            recorded=done.calls.recorded,
            total=done.calls.total,
            stopped=done.calls.is_stopped,
            warnings=done.calls.warnings,
            turns=done.turns,
        )
        return Response(shape.document(), status=201)

    def _lines(self, request: Request) -> tuple[str, Sequence[Any]]:
        """Read the lease token and the lines. Errors: Invalid without either."""
        header = str(request.headers.get(LEASE_HEADER, ""))
        if isinstance(request.data, list):
            if not header:
                message = "is required beside lines"
                raise Invalid(
                    f"{LEASE_HEADER} {message}.", errors=[Fault(path=LEASE_HEADER, message=message)]
                )
            return header, request.data
        body = read_body(CodexBody, request.data)
        return body.lease_token, body.events
