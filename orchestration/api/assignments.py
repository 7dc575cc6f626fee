"""Assignments: claim by seat, and what their holders send.

Source: DESIGN section 14.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from orchestration.access import access_assignment, access_project
from orchestration.api.base import ApiView, read_body
from orchestration.api.bodies import (
    ClaimBody,
    HeartbeatBody,
    LogBody,
    NextBody,
    ReleaseBody,
    ResultEnvelope,
    ToolCallsBody,
)
from orchestration.api.idempotency import idempotent
from orchestration.api.long_poll import WAIT_HEADER
from orchestration.api.operations import keyed_post
from orchestration.api.permissions import require_agent, require_seats
from orchestration.api.requests import Caller
from orchestration.api.schema import KEYED, problems
from orchestration.api.shapes.work import (
    ClaimedShape,
    LeaseShape,
    LogShape,
    ResultShape,
    ToolCallsShape,
)
from orchestration.contracts.documents import Document, field_names, sayable
from orchestration.contracts.plan import Plan
from orchestration.contracts.results import (
    AuditorResult,
    CrossVerifierResult,
    ExecutorResult,
    FixerResult,
    IntentResult,
    QaResult,
    ScorerResult,
)
from orchestration.contracts.validation import Package
from orchestration.errors import Fault, Invalid, PlanInvalid
from orchestration.models import Assignment
from orchestration.services.agent_claims import Wish, claim_for_agent
from orchestration.services.agent_results import (
    append_log,
    heartbeat_assignment,
    release_assignment,
    submit_result,
    task_of,
)
from orchestration.services.handshake import HANDSHAKE
from orchestration.services.holds import Hold
from orchestration.services.tool_calls import record_tool_calls
from orchestration.states import Seat

RESULTS: Mapping[Seat, type[Document]] = {
    Seat.SCORER: ScorerResult,
    Seat.PLANNER: Plan,
    Seat.AUDITOR: AuditorResult,
    Seat.EXECUTOR: ExecutorResult,
    Seat.QA: QaResult,
    Seat.FIXER: FixerResult,
    Seat.CROSS_VERIFIER: CrossVerifierResult,
    Seat.VALIDATOR: Package,
}
PLAN = "plan"
HELD = (400, 401, 403, 404, 409, 422)
REFUSALS = problems(*HELD)


class ClaimView(ApiView):
    """Claim by seat."""

    @extend_schema(
        operation_id="claim_assignment",
        tags=["assignments"],
        parameters=KEYED,
        request=ClaimBody,
        responses={
            200: ClaimedShape,
            204: OpenApiResponse(None, "Nothing fits now, also after `wait` seconds."),
            **problems(400, 401, 403, 404, 422, 429),
        },
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Take the oldest work that this token, its projects and its past allow.

        With `wait` the call waits for up to 30 s before it answers 204.
        """
        body = self.body(ClaimBody)
        wish = wish_of(self.caller, body.seats, body.projects)
        agent = require_agent(self.caller)
        claimed = claim_for_agent(agent=agent, wish=wish, actor=self.actor)
        if claimed is not None:
            return Response(ClaimedShape.of_lease(claimed).document())
        headers = {WAIT_HEADER: f"{body.wait:g}"} if body.wait else None
        return Response(status=204, headers=headers)


def wish_of(caller: Caller, seats: tuple[Seat, ...], projects: tuple[str, ...]) -> Wish:
    """Read what an agent asks for.

    Errors: Forbidden for a seat its token does not open, or none at all; NotFound for a project.
    """
    require_agent(caller)
    wanted = frozenset(seats) or caller.seats
    require_seats(caller, wanted or [Seat.EXECUTOR])
    found = {access_project(caller.viewer, name).pk for name in projects}
    return Wish(seats=wanted, project_ids=found or None)


class HeldView(ApiView):
    """Base of the calls of an assignment's holder."""

    def hold(self, name: str, lease_token: str) -> Hold:
        """Name the assignment that the caller says it holds.

        Errors: NotFound, Forbidden without the seat's scope.
        """
        row = self.assignment(name)
        return Hold(row.pk, require_agent(self.caller), lease_token)

    def assignment(self, name: str) -> Assignment:
        """Find an assignment whose seat the caller's token opens. Errors: NotFound, Forbidden."""
        row = access_assignment(self.caller.viewer, name)
        require_seats(self.caller, [Seat(row.seat)])
        return row


class HeartbeatView(HeldView):
    """Keep an assignment's lease alive."""

    @keyed_post(
        "heartbeat_assignment", "assignments", body=HeartbeatBody, answer=LeaseShape, refusals=HELD
    )
    def post(self, request: Request, assignment: str) -> Response:
        """Extend the lease; `usage` says what was used so far."""
        self.assignment(assignment)
        body = self.body(HeartbeatBody)
        held = heartbeat_assignment(
            hold=self.hold(assignment, body.lease_token),
            actor=self.actor,
            usage=body.usage,
            note=body.note,
        )
        return Response(LeaseShape.of(held).document())


class ReleaseView(HeldView):
    """Give an assignment back."""

    @keyed_post(
        "release_assignment", "assignments", body=ReleaseBody, answer=LeaseShape, refusals=HELD
    )
    def post(self, request: Request, assignment: str) -> Response:
        """Put it back in the queue; it counts nothing."""
        self.assignment(assignment)
        body = self.body(ReleaseBody)
        row = release_assignment(
            hold=self.hold(assignment, body.lease_token), actor=self.actor, reason=body.reason
        )
        return Response(LeaseShape.of(row).document())


class ResultView(HeldView):
    """Hand in an assignment's result."""

    @extend_schema(
        operation_id="submit_result",
        tags=["assignments"],
        parameters=KEYED,
        request=OpenApiTypes.OBJECT,
        responses={200: ResultShape, **REFUSALS, **problems(413)},
    )
    @idempotent
    def post(self, request: Request, assignment: str) -> Response:
        """Hand in the seat's result, with `lease_token` and, if you like, `usage` and `claim_next`.

        By seat: executor and fixer `output, comment, status, detail` (a fixer that was asked to
        propose: `proposed_fix`); planner a plan, bare or as `plan`; auditor `verdict, checks,
        suggestions` (asked about an intent: `status, corrections, detail`); qa `verdict, defects,
        low_defects, artifact_digests`; cross_verifier `agrees, findings`; validator a validation
        package; scorer `dimensions, rationale`. A malformed plan is refused with every fault, and
        uses up a revision all the same. The identical report again is 200 and changes nothing.
        """
        row = self.assignment(assignment)
        about_intent = HANDSHAKE in row.input
        envelope, document = read_result(
            Seat(row.seat), request.data, model=IntentResult if about_intent else None
        )
        following = envelope.claim_next
        recorded = submit_result(
            hold=self.hold(assignment, envelope.lease_token),
            document=document,
            actor=self.actor,
            usage=envelope.usage,
            wish=self._wish(following) if following is not None else None,
        )
        if recorded.faults:
            raise PlanInvalid(
                "The plan is not valid; it used up a revision.",
                errors=recorded.faults,
                assignment_status=recorded.assignment.status,
            )
        shape = ResultShape.of_result(
            recorded.assignment,
            task_of(recorded.assignment),
            is_repeat=recorded.is_repeat,
            following=recorded.following,
        )
        return Response(shape.document())

    def _wish(self, following: NextBody) -> Wish:
        return wish_of(self.caller, following.seats, following.projects)


def read_result(
    seat: Seat, data: Any, *, model: type[Document] | None = None
) -> tuple[ResultEnvelope, dict[str, Any]]:
    """Split a result into its envelope and the document of its seat, or of `model`.

    A planner's plan may be the body itself or its `plan`. Documents keep what they do not know;
    the body does not.
    Errors: Invalid listing every fault.
    """
    model = model or RESULTS[seat]
    if not isinstance(data, Mapping):
        raise Invalid(
            "The body must be a JSON object.", errors=[Fault(path="", message="must be an object")]
        )
    names = field_names(ResultEnvelope)
    document = {key: held for key, held in data.items() if key not in names}
    is_wrapped = seat is Seat.PLANNER and isinstance(document.get(PLAN), Mapping)
    known = frozenset({PLAN}) if is_wrapped else field_names(model) - {"extra"}
    unknown = _unknown(document, known)
    try:
        envelope = read_body(ResultEnvelope, {key: data[key] for key in data if key in names})
    except Invalid as error:
        error.errors[:0] = unknown
        raise
    if unknown:
        told = ", ".join(fault["path"] for fault in unknown)
        raise Invalid(f"Unknown fields: {told}.", code="unknown_fields", errors=unknown)
    if is_wrapped:
        return envelope, dict(document[PLAN])
    if seat is not Seat.PLANNER:
        # A malformed plan is the planner's result all the same, and uses up a revision.
        read_body(model, document)
    return envelope, document


def _unknown(document: Mapping[str, Any], known: frozenset[str]) -> list[Fault]:
    unknown = sorted(sayable(key) for key in document if key not in known)
    return [Fault(path=key, message="is no field of this request") for key in unknown]


class LogView(HeldView):
    """Write to the live log."""

    @keyed_post(
        "append_log", "assignments", body=LogBody, answer=LogShape, status=201, refusals=HELD
    )
    def post(self, request: Request, assignment: str) -> Response:
        """Append text; it counts as progress and extends the lease."""
        self.assignment(assignment)
        body = self.body(LogBody)
        count = append_log(
            hold=self.hold(assignment, body.lease_token), text=body.text, actor=self.actor
        )
        return Response(LogShape(characters=count).document(), status=201)


class ToolCallsView(HeldView):
    """Record tool calls."""

    @keyed_post(
        "record_tool_calls",
        "assignments",
        body=ToolCallsBody,
        answer=ToolCallsShape,
        status=201,
        refusals=HELD,
    )
    def post(self, request: Request, assignment: str) -> Response:
        """Record calls in order. Endless repetition is warned of; too many end the assignment."""
        self.assignment(assignment)
        body = self.body(ToolCallsBody)
        done = record_tool_calls(
            hold=self.hold(assignment, body.lease_token), calls=body.calls, actor=self.actor
        )
        shape = ToolCallsShape(
            recorded=done.recorded,
            total=done.total,
            stopped=done.is_stopped,
            warnings=done.warnings,
        )
        return Response(shape.document(), status=201)
