"""Sir's inbox over REST. Humans only: an agent's token gets 403 everywhere here.

Source: DESIGN sections 9 and 14.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from orchestration.access import (
    access_decision,
    access_decision_id,
    access_project,
    visible_decisions,
)
from orchestration.api.base import ApiView
from orchestration.api.bodies import BulkBody, BulkItem, DecideBody, DraftBody, EmptyBody
from orchestration.api.errors import problem_of
from orchestration.api.idempotency import idempotent
from orchestration.api.pagination import PAGE_PARAMETERS, paged
from orchestration.api.permissions import require_decider, require_human
from orchestration.api.schema import IF_MATCH, KEYED, problems
from orchestration.api.shapes.decisions import (
    BulkItemShape,
    BulkShape,
    DecidedShape,
    DecisionPage,
    DecisionShape,
    DecisionViewShape,
    ImpactShape,
)
from orchestration.errors import CountersignError, Fault, Invalid
from orchestration.models import Decision, DecisionView
from orchestration.selectors.blocked import WaitingWork, locked_readers
from orchestration.selectors.inbox import count_blocked, waiting_behind
from orchestration.services.decisions import (
    Outcome,
    Verdict,
    decide_decision,
    is_overdue,
    mark_seen,
    save_draft,
    settle_overdue,
)
from orchestration.states import DecisionKind, DecisionStatus

NEVER_IN_BULK = frozenset({DecisionKind.MAX_RETRIES, DecisionKind.SAFE_STOP})


class HumanView(ApiView):
    """Base of the inbox's views: agents are refused before anything is looked up."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse agents and people without a role. Errors: Forbidden."""
        super().initial(request, *args, **kwargs)
        require_human(self.caller)

    def decision(self, name: str) -> Decision:
        """Find a decision. Errors: NotFound."""
        return access_decision(self.caller.viewer, name)


def shape_decision(row: Decision) -> DecisionShape:
    """Shape one decision with its impact."""
    waiting = waiting_behind([row])
    blocked = count_blocked([row], waiting)[row.pk]
    return DecisionShape.of_decision(row, blocked_tasks=blocked, impact=impact_of(row, waiting))


def impact_of(row: Decision, waiting: WaitingWork) -> list[ImpactShape]:
    """List what stands behind a decision: finished readers to verify again, tasks it frees."""
    if row.task is None or row.kind == DecisionKind.HIGH_NOTICE:
        return []
    readers = [
        ImpactShape(
            task=str(one.pk),
            step_key=one.step_key,
            title=one.title,
            status=one.status,
            effect="to_reverify",
        )
        for one in locked_readers(row.task.pk)
    ]
    freed = [
        ImpactShape(
            task=str(one.id),
            step_key=one.step_key,
            title=one.title,
            status=one.status,
            effect="freed",
        )
        for one in waiting.behind(row.task.pk)
    ]
    return [*readers, *freed]


def _page(rows: Sequence[Decision]) -> list[dict[str, Any]]:
    blocked = count_blocked(rows, waiting_behind(rows))
    return [
        DecisionShape.of_decision(row, blocked_tasks=blocked[row.pk]).document() for row in rows
    ]


class DecisionsView(HumanView):
    """The rows of the inbox."""

    @extend_schema(
        operation_id="list_decisions",
        tags=["decisions"],
        parameters=[
            OpenApiParameter("status", str, enum=list(DecisionStatus)),
            OpenApiParameter("kind", str, enum=list(DecisionKind)),
            OpenApiParameter("project", str, description="An id or a slug."),
            OpenApiParameter("task", str, description="A task's id."),
            *PAGE_PARAMETERS,
        ],
        responses={200: DecisionPage, **problems(401, 403, 404, 422)},
    )
    def get(self, request: Request) -> Response:
        """List decisions, newest first. `impact` is filled when one is read by itself."""
        rows = visible_decisions(self.caller.viewer)
        rows = _filtered(self, rows, request).select_related("project", "task__root", "decided_by")
        return Response(paged(request, rows, _page, newest_first=True))


def _filtered(view: ApiView, rows: QuerySet[Decision], request: Request) -> QuerySet[Decision]:
    """Narrow the inbox by the query. Errors: Invalid for a value that means nothing."""
    query = request.query_params
    for name, known in (("status", tuple(DecisionStatus)), ("kind", tuple(DecisionKind))):
        value = query.get(name)
        if value and value not in known:
            message = f"must be one of {', '.join(known)}"
            raise Invalid(f"{name} {message}.", errors=[Fault(path=name, message=message)])
        if value:
            rows = rows.filter(**{name: value})
    project = query.get("project")
    if project:
        rows = rows.filter(project=access_project(view.caller.viewer, project))
    task = query.get("task")
    if task:
        is_id = task.isascii() and task.isdigit() and len(task) <= 18
        rows = rows.filter(task=int(task)) if is_id else rows.none()
    return rows


class DecisionDetailView(HumanView):
    """One row of the inbox."""

    @extend_schema(
        operation_id="read_decision",
        tags=["decisions"],
        responses={200: DecisionShape, **problems(401, 403, 404)},
    )
    def get(self, request: Request, decision: str) -> Response:
        """Read a decision. Reading decides nothing, and does not mark it as seen."""
        row = self.decision(decision)
        if is_overdue(row) and settle_overdue(row.pk):
            row = self.decision(decision)
        return Response(shape_decision(row).document(), headers={"ETag": f'"{row.version}"'})


class DecideView(HumanView):
    """Give a verdict."""

    @extend_schema(
        operation_id="decide",
        tags=["decisions"],
        parameters=[*KEYED, *IF_MATCH],
        request=DecideBody,
        responses={200: DecidedShape, **problems(400, 401, 403, 404, 409, 412, 422)},
    )
    @idempotent
    def post(self, request: Request, decision: str) -> Response:
        """Decide on exactly what was shown. The identical repeat is 200 and marked as such."""
        user_id = require_decider(self.caller)
        decision_id = access_decision_id(self.caller.viewer, decision)
        body = self.body(DecideBody)
        verdict = Verdict(
            verdict=body.verdict,
            seen_version=self.seen_version(body.version) or body.version,
            seen_digest=body.digest,
            reason=body.reason,
            payload=body.payload,
        )
        outcome = decide_decision(
            decision_id=decision_id, verdict=verdict, actor=self.actor, user_id=user_id
        )
        return Response(decided_document(outcome))


def decided_document(outcome: Outcome) -> dict[str, Any]:
    """Shape a decision after its verdict: nothing waits behind it any more."""
    shape = DecidedShape.of_decision(outcome.decision, blocked_tasks=0, repeat=outcome.is_repeat)
    return shape.document()


class BulkView(HumanView):
    """One verdict for several items."""

    @extend_schema(
        operation_id="decide_bulk",
        tags=["decisions"],
        parameters=KEYED,
        request=BulkBody,
        responses={200: BulkShape, **problems(400, 401, 403, 409, 422)},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Decide items of one kind, each with the version and digest it was shown with.

        There is a result for each; what is stale or decided does not keep the others back.
        """
        user_id = require_decider(self.caller)
        body = self.body(BulkBody)
        self._require_one_kind(body)
        results = [self._decide(body, item, user_id) for item in body.items]
        return Response(BulkShape(results=results).document())

    def _require_one_kind(self, body: BulkBody) -> None:
        names = [item.id for item in body.items]
        if len(set(names)) != len(names):
            raise _bad_items("names an item twice")
        ids = [int(name) for name in names if name.isascii() and name.isdigit() and len(name) < 19]
        rows = visible_decisions(self.caller.viewer).filter(pk__in=ids)
        kinds = set(rows.values_list("kind", flat=True))
        if len(kinds) > 1:
            raise _bad_items(f"must be of one kind, not {', '.join(sorted(kinds))}")
        if kinds & NEVER_IN_BULK:
            raise _bad_items(f"{kinds.pop()} is decided one by one")

    def _decide(self, body: BulkBody, item: BulkItem, user_id: int) -> BulkItemShape:
        verdict = Verdict(
            verdict=body.verdict,
            seen_version=item.version,
            seen_digest=item.digest,
            reason=item.reason if item.reason is not None else body.reason,
        )
        try:
            outcome = decide_decision(
                decision_id=access_decision_id(self.caller.viewer, item.id),
                verdict=verdict,
                actor=self.actor,
                user_id=user_id,
            )
        except CountersignError as error:
            problem, _ = problem_of(error)
            return BulkItemShape(
                id=item.id, status=problem["status"], decision=None, problem=problem
            )
        document = decided_document(outcome)
        return BulkItemShape(
            id=item.id, status=200, decision=DecidedShape(**document), problem=None
        )


def _bad_items(message: str) -> Invalid:
    return Invalid(f"The list {message}.", errors=[Fault(path="items", message=message)])


class SeenView(HumanView):
    """Note that an item was seen."""

    @extend_schema(
        operation_id="mark_decision_seen",
        tags=["decisions"],
        parameters=KEYED,
        request=EmptyBody,
        responses={200: DecisionViewShape, **problems(401, 403, 404, 422)},
    )
    @idempotent
    def post(self, request: Request, decision: str) -> Response:
        """Note that the caller has seen the item. It decides nothing."""
        row = self.decision(decision)
        self.body(EmptyBody)
        seen = mark_seen(decision_id=row.pk, user_id=self.caller.user_id or 0, actor=self.actor)
        return Response(view_document(seen))


class DraftView(HumanView):
    """Keep words that are not sent yet."""

    @extend_schema(
        operation_id="save_decision_draft",
        tags=["decisions"],
        request=DraftBody,
        responses={200: DecisionViewShape, **problems(400, 401, 403, 404, 422)},
    )
    def put(self, request: Request, decision: str) -> Response:
        """Keep the caller's draft on the item."""
        user_id = require_decider(self.caller)
        row = self.decision(decision)
        body = self.body(DraftBody)
        kept = save_draft(decision_id=row.pk, user_id=user_id, text=body.text, actor=self.actor)
        return Response(view_document(kept))


def view_document(row: DecisionView) -> dict[str, Any]:
    """Shape what a person has seen and drafted."""
    shape = DecisionViewShape(decision=str(row.decision_id), seen_at=row.seen_at, draft=row.draft)
    return shape.document()
