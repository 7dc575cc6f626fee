"""Mail between agents and people: send it, wait for a reply, read the mailbox.

Source: DESIGN sections 12 and 14.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from orchestration.access import (
    access_any_task,
    access_mail,
    access_project,
    access_task,
    row_id,
    visible_mail,
    visible_projects,
)
from orchestration.api.base import ApiView
from orchestration.api.idempotency import idempotent
from orchestration.api.long_poll import MAX_BODY_BYTES, WAIT_HEADER
from orchestration.api.operations import keyed_post
from orchestration.api.pagination import PAGE_PARAMETERS, paged
from orchestration.api.permissions import require_commenter
from orchestration.api.schema import KEYED, LEASE, problems
from orchestration.api.shapes.mail import (
    MailPage,
    MailReadShape,
    MailShape,
    SentShape,
)
from orchestration.api.throttles import WAIT_ROUND
from orchestration.contracts.mail import MailInput, MailReadInput
from orchestration.contracts.mail_types import MailType
from orchestration.errors import Fault, Invalid, NotFound
from orchestration.models import Mail, MailRecipient, Project, Task
from orchestration.selectors.mail import first_reply, read_mail, unanswered, unread_of, with_parts
from orchestration.services.mailbox import mark_mail_read
from orchestration.services.mesh import send_mail
from orchestration.services.posts import Post

BOXES = ("in", "out", "all")
MAIL_FILTERS = [
    OpenApiParameter("box", str, enum=list(BOXES), description="Received, sent, or all (default)."),
    OpenApiParameter("type", str, enum=[str(one) for one in MailType]),
    OpenApiParameter("project", str),
    OpenApiParameter("task", str, description="A task's id or key."),
    OpenApiParameter("conversation", str),
    OpenApiParameter("in_reply_to", str, description="The message_id that it answers."),
    OpenApiParameter("unanswered", bool, description="Only what waits for an answer."),
    OpenApiParameter("unread", bool, description="Only what you received and did not mark read."),
    *PAGE_PARAMETERS,
]


class MailView(ApiView):
    """The mailbox."""

    @extend_schema(
        operation_id="list_mail",
        tags=["mail"],
        parameters=MAIL_FILTERS,
        responses={200: MailPage, **problems(401, 404, 422)},
    )
    def get(self, request: Request) -> Response:
        """List mail, oldest first: an agent its own, people all of it. Keep `next` to go on."""
        rows = _in_box(self, visible_mail(self.caller.viewer))
        reader = self.caller.name
        return Response(
            paged(request, with_parts(_narrowed(self, rows)), partial(_shape, reader=reader))
        )

    @extend_schema(
        operation_id="send_mail",
        tags=["mail"],
        parameters=[*KEYED, *LEASE],
        request=MailInput,
        responses={
            200: SentShape,
            201: SentShape,
            **problems(400, 401, 403, 404, 409, 413, 422),
        },
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Send a mail. The same `message_id` and body again is 200 and sends nothing twice.

        An inform expects no reply. A request, a task_request and an intent_confirmation do: with
        `wait` the call waits for up to 30 s for it. `mode` opens a conversation: `query` (one
        request, one reply), `negotiation` (at most five rounds, each a reply to the last proposal,
        `accept` from both ends it), `delegation`, `co_creation`.
        """
        require_commenter(self.caller)
        document = self.body(MailInput)
        sent = send_mail(self._post(document))
        mail = read_mail(sent.mail.pk)
        reply = first_reply(mail)
        is_first = bool(self._round) or not sent.is_repeat
        shape = SentShape.of_sent(
            mail, is_repeat=not is_first, reply=reply, reader=self.caller.name
        )
        headers = {}
        if document.wait and mail.expects_reply and reply is None and self._may_wait:
            headers[WAIT_HEADER] = f"{document.wait:g}"
        return Response(shape.document(), status=201 if is_first else 200, headers=headers)

    @property
    def _round(self) -> int:
        """How often a waiting call was asked again."""
        scope: dict[str, Any] = getattr(self.request._request, "scope", {})
        return int(scope.get(WAIT_ROUND, 0))

    @property
    def _may_wait(self) -> bool:
        """Whether the body is small enough to be kept while the call waits."""
        length = self.request.META.get("CONTENT_LENGTH") or "0"
        return str(length).isdigit() and int(length) <= MAX_BODY_BYTES

    def _post(self, document: MailInput) -> Post:
        """Find what a mail is about. Errors: Invalid naming what does not exist for the caller."""
        task = self._task(document)
        answered = self._answered(document, task)
        if task is None and answered is not None:
            task = answered.task
        project = self._project(document, task, answered)
        if answered is not None and answered.project_id != project.pk:
            raise _unknown("in_reply_to", "is of another project")
        if task is not None:
            task.project = project
        return Post(
            document=document,
            actor=self.actor,
            agent=self.caller.agent,
            project=project,
            task=task,
            answered=answered,
            lease_token=str(self.request.headers.get("X-Lease-Token", "")),
        )

    def _answered(self, document: MailInput, task: Task | None) -> Mail | None:
        if document.in_reply_to is None:
            return None
        home = task.project if task is not None else None
        if document.project is not None:
            home = self._project(document, None, None)
        try:
            return access_mail(self.caller.viewer, document.in_reply_to, home)
        except NotFound:
            raise _unknown("in_reply_to", "is no mail of yours") from None

    def _task(self, document: MailInput) -> Task | None:
        if document.task is None:
            return None
        try:
            if document.project is not None:
                project = access_project(self.caller.viewer, document.project)
                return access_task(project, document.task)
            return access_any_task(self.caller.viewer, document.task)
        except NotFound:
            raise _unknown("task", "is no task that you see") from None

    def _project(self, document: MailInput, task: Task | None, answered: Mail | None) -> Project:
        """Say which project a mail is of: the one named, its task's, or the caller's only one."""
        if document.project is not None:
            try:
                return access_project(self.caller.viewer, document.project)
            except NotFound:
                raise _unknown("project", "is no project that you see") from None
        if task is not None:
            return task.project
        if answered is not None:
            return answered.project
        only = list(visible_projects(self.caller.viewer)[:2])
        if len(only) != 1:
            raise _unknown("project", "is required: name the project or the task")
        return only[0]


def _unknown(path: str, message: str) -> Invalid:
    return Invalid(f"{path} {message}.", errors=[Fault(path=path, message=message)])


class MailReadView(ApiView):
    """What was read of the mailbox."""

    @keyed_post(
        "mark_mail_read", "mail", body=MailReadInput, answer=MailReadShape,
        refusals=(400, 401, 409, 413, 415, 422),
    )  # fmt: skip
    def post(self, request: Request) -> Response:
        """Mark mail that you received as read; the same again changes nothing.

        Nothing is marked when one of them is no mail that you received.
        """
        reader = self.caller.name
        found = self._received(reader)
        marked = mark_mail_read(received=found, actor=self.actor)
        shape = MailReadShape(marked=marked, unread=_unread(self).count())
        return Response(shape.document())

    def _received(self, reader: str) -> list[int]:
        """Find the rows of what is to be marked. Errors: Invalid naming what was not received."""
        named = self.body(MailReadInput).mail
        ids = {name: row_id(name) for name in named}
        rows = MailRecipient.objects.filter(
            name=reader,
            mail_id__in=[pk for pk in ids.values() if pk is not None],
            mail__in=visible_mail(self.caller.viewer).values("pk"),
        )
        known = {row.mail_id: row for row in rows}
        faults = [
            Fault(path=f"mail.{at}", message="is no mail that you received")
            for at, name in enumerate(named)
            if ids[name] not in known
        ]
        if faults:
            raise Invalid("Only received mail is marked read.", errors=faults)
        return [row.pk for row in known.values()]


def _unread(view: ApiView) -> QuerySet[Mail]:
    unread = unread_of(view.caller.name).values("mail")
    return visible_mail(view.caller.viewer).filter(pk__in=unread)


def _shape(rows: Sequence[Mail], *, reader: str) -> list[dict[str, Any]]:
    return [MailShape.of_mail(row, reader).document() for row in rows]


def _in_box(view: ApiView, rows: QuerySet[Mail]) -> QuerySet[Mail]:
    """Narrow mail to what the caller received or sent. Errors: Invalid."""
    box = view.request.query_params.get("box", "all")
    if box not in BOXES:
        raise _unknown("box", f"must be one of {', '.join(BOXES)}")
    received = MailRecipient.objects.filter(name=view.caller.name).values("mail")
    if box == "in":
        return rows.filter(pk__in=received)
    return rows.filter(sender=view.caller.name) if box == "out" else rows


def _narrowed(view: ApiView, rows: QuerySet[Mail]) -> QuerySet[Mail]:
    """Narrow mail by the query. Errors: Invalid, NotFound."""
    query = view.request.query_params
    kind = query.get("type")
    if kind is not None:
        if kind not in tuple(MailType):
            raise _unknown("type", f"must be one of {', '.join(MailType)}")
        rows = rows.filter(type=kind)
    if query.get("project"):
        rows = rows.filter(project=access_project(view.caller.viewer, query["project"]))
    if query.get("task"):
        rows = rows.filter(task=access_any_task(view.caller.viewer, query["task"]))
    if query.get("conversation"):
        rows = rows.filter(conversation_id=row_id(query["conversation"]) or 0)
    if query.get("in_reply_to"):
        rows = rows.filter(in_reply_to__message_id=query["in_reply_to"])
    if _flag(view, "unanswered"):
        rows = unanswered(rows)
    if _flag(view, "unread"):
        rows = rows.filter(pk__in=unread_of(view.caller.name).values("mail"))
    return rows


def _flag(view: ApiView, name: str) -> bool:
    """Read a switch of the query. Errors: Invalid."""
    given = view.request.query_params.get(name)
    if given not in (None, "true", "false"):
        raise _unknown(name, "must be true or false")
    return given == "true"
