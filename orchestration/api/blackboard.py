"""The blackboard: what an assignee does to its task, and what Sir does to anybody's.

Source: DESIGN sections 4 (task table) and 14, source document 001.
"""

from __future__ import annotations

from typing import Any

from django.core.files.uploadedfile import UploadedFile
from drf_spectacular.utils import extend_schema
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from orchestration.api.base import ApiView, read_body
from orchestration.api.bodies import EmptyBody, ProgressBody, ReasonBody, SpawnBody, StatusBody
from orchestration.api.idempotency import idempotent
from orchestration.api.operations import REFUSALS as REFUSED
from orchestration.api.operations import SirView, keyed_post
from orchestration.api.parsers import JsonParser, parse_json
from orchestration.api.permissions import (
    require_agent,
    require_commenter,
    require_sir_or_scope,
)
from orchestration.api.projects import etag
from orchestration.api.schema import IF_MATCH, KEYED, LEASE, problems
from orchestration.api.shapes.method import DepartedShape
from orchestration.api.shapes.tasks import ProgressShape, TaskShape
from orchestration.api.shapes.work import ClaimedShape, CommentShape, LeaseShape, OutputShape
from orchestration.api.tasks import fresh_task, task_document
from orchestration.contracts.outputs import MAX_CONTENT_BYTES
from orchestration.contracts.results import (
    DeviationInput,
    OutputFileInput,
    OutputInput,
    TaskCommentInput,
)
from orchestration.errors import Fault, Forbidden, Invalid, TooLarge
from orchestration.models import Task
from orchestration.scopes import Scope
from orchestration.selectors.tasks import facts_of
from orchestration.services.deviations import record_deviation
from orchestration.services.orphans import require_ever_held
from orchestration.services.outputs import MAX_OUTPUT_BYTES, read_output
from orchestration.services.progress import Progress, report_progress
from orchestration.services.second_marks import review_delegated
from orchestration.services.spawning import NewChild, spawn_task
from orchestration.services.tasks import (
    StatusChange,
    add_task_comment,
    add_task_output,
    cancel_task,
    change_status,
    claim_task,
    heartbeat_task,
    release_task,
    replan_task,
)
from orchestration.services.uploads import store_upload


class HolderView(ApiView):
    """Base of the calls that only the present holder makes."""

    @property
    def lease_token(self) -> str:
        """The lease token, where the caller fences its own processes."""
        return str(self.request.headers.get("X-Lease-Token", ""))


class ClaimTaskView(ApiView):
    """Claim one task."""

    @keyed_post("claim_task", "blackboard", body=EmptyBody, answer=ClaimedShape)
    def post(self, request: Request, pid: str, task: str) -> Response:
        """Take the executor's lease of a ready task."""
        found = self.task(pid, task)
        agent = require_agent(self.caller, Scope.EXECUTE)
        self.body(EmptyBody)
        claimed = claim_task(known=found, agent=agent, actor=self.actor)
        return Response(ClaimedShape.of_lease(claimed).document())


class HeartbeatTaskView(HolderView):
    """Keep a task's lease alive."""

    works_in_safe_stop = True

    @keyed_post("heartbeat_task", "blackboard", body=EmptyBody, answer=LeaseShape, parameters=LEASE)
    def post(self, request: Request, pid: str, task: str) -> Response:
        """Extend the lease."""
        found = self.task(pid, task)
        agent = require_agent(self.caller, Scope.EXECUTE)
        self.body(EmptyBody)
        held = heartbeat_task(
            task_id=found.pk, agent=agent, actor=self.actor, lease_token=self.lease_token
        )
        return Response(LeaseShape.of(held).document())


class ReleaseTaskView(HolderView):
    """Give a task back."""

    @keyed_post("release_task", "blackboard", body=ReasonBody, answer=TaskShape, parameters=LEASE)
    def post(self, request: Request, pid: str, task: str) -> Response:
        """Give the task back to the queue; it counts nothing."""
        found = self.task(pid, task)
        agent = require_agent(self.caller, Scope.EXECUTE)
        body = self.body(ReasonBody)
        release_task(
            task_id=found.pk,
            agent=agent,
            actor=self.actor,
            reason=body.reason,
            lease_token=self.lease_token,
        )
        return task_answer(found)


class StatusView(HolderView):
    """Move a task as its assignee."""

    @keyed_post(
        "set_task_status",
        "blackboard",
        body=StatusBody,
        answer=TaskShape,
        parameters=[*LEASE, *IF_MATCH],
    )
    def post(self, request: Request, pid: str, task: str) -> Response:
        """Set working, review, failed, blocked or waiting_human."""
        found = self.task(pid, task)
        agent = require_agent(self.caller, Scope.EXECUTE)
        body = self.body(StatusBody)
        change_status(
            task_id=found.pk,
            change=StatusChange(body.status, body.detail, body.blocked_by, body.light_plan),
            agent=agent,
            actor=self.actor,
            lease_token=self.lease_token,
            seen_version=self.seen_version(body.version),
        )
        return task_answer(found)


class OutputsView(HolderView):
    """Hand in an output."""

    parser_classes = (JsonParser, MultiPartParser)

    @extend_schema(
        operation_id="add_output",
        tags=["blackboard"],
        parameters=[*KEYED, *LEASE],
        request={
            "application/json": OutputInput,
            "multipart/form-data": {
                "type": "object",
                "required": ["file", "title"],
                "properties": {
                    "file": {"type": "string", "format": "binary"},
                    "type": {"type": "string"},
                    "title": {"type": "string"},
                    "summary": {"type": "string"},
                    "assertions": {"type": "string", "description": "A JSON list."},
                },
            },
        },
        responses={201: OutputShape, **problems(*REFUSED, 413, 415)},
    )
    @idempotent
    def post(self, request: Request, pid: str, task: str) -> Response:
        """Hand in content, a path of the workspace that we read, or a file of up to 50 MB."""
        found = self.task(pid, task)
        agent = require_agent(self.caller, Scope.EXECUTE)
        document = self._document(found)
        data, _ = read_output(found, document)
        output = add_task_output(
            task_id=found.pk,
            document=document,
            data=data,
            agent=agent,
            actor=self.actor,
            lease_token=self.lease_token,
        )
        return Response(OutputShape.of(output).document(), status=201)

    def _document(self, task: Task) -> OutputInput:
        """Read the output from JSON, or from a form with its file."""
        data = self.request.data
        if not hasattr(data, "lists"):
            return self.body(OutputInput)
        form, file = read_form(data)
        require_ever_held(task, require_agent(self.caller))
        described = read_body(OutputFileInput, form)
        return store_upload(task, name=file.name or "", data=file.read(), document=described)


def read_form(data: Any) -> tuple[dict[str, Any], UploadedFile[Any]]:
    """Read the fields and the file of an upload.

    Errors: Invalid without exactly one file; TooLarge.
    """
    files = data.getlist("file")
    if len(files) != 1 or not isinstance(files[0], UploadedFile):
        raise Invalid("Send one `file`.", errors=[Fault(path="file", message="one is needed")])
    size = files[0].size or 0
    if size > MAX_OUTPUT_BYTES:
        raise TooLarge(
            f"The file has {size} bytes; at most {MAX_OUTPUT_BYTES} are accepted.",
            limit_bytes=MAX_OUTPUT_BYTES,
        )
    form = {name: data.get(name) for name in data if name != "file"}
    if form.get("assertions") is not None:
        form["assertions"] = parse_json(_bytes_of(form["assertions"]))
    return form, files[0]


def _bytes_of(field: str | UploadedFile[Any]) -> bytes:
    """Read a field of a form, which `curl -F name=@file` sends as a file. Errors: TooLarge."""
    if isinstance(field, str):
        return field.encode("utf-8", "surrogatepass")
    if (field.size or 0) > MAX_CONTENT_BYTES:
        raise TooLarge(
            f"The field has {field.size} bytes; at most {MAX_CONTENT_BYTES} are accepted.",
            limit_bytes=MAX_CONTENT_BYTES,
        )
    data: bytes = field.read()
    return data


class CommentsView(ApiView):
    """Comment on a task."""

    @keyed_post(
        "add_comment", "blackboard", body=TaskCommentInput, answer=CommentShape, status=201,
        parameters=LEASE,
    )  # fmt: skip
    def post(self, request: Request, pid: str, task: str) -> Response:
        """Write a comment: general, handoff, observation or review.

        Who delegated the task may send its own verification with its review: `tool_calls` are
        recorded under its lease and become a second set of marks on the outputs, with its name.
        """
        found = self.task(pid, task)
        require_commenter(self.caller)
        document, agent = self.body(TaskCommentInput), self.caller.agent
        if document.tool_calls and agent is not None:
            comment = review_delegated(
                task_id=found.pk,
                document=document,
                agent=agent,
                actor=self.actor,
                lease_token=str(request.headers.get("X-Lease-Token", "")),
            )
        elif document.tool_calls:
            raise Forbidden("People's reviews come without tool calls.", code="not_the_delegator")
        else:
            comment = add_task_comment(
                task_id=found.pk, document=document, agent=agent, actor=self.actor
            )
        return Response(CommentShape.of(comment).document(), status=201)


class ProgressView(HolderView):
    """Report progress."""

    @keyed_post(
        "report_progress", "blackboard", body=ProgressBody, answer=ProgressShape, parameters=LEASE
    )
    def post(self, request: Request, pid: str, task: str) -> Response:
        """Count a step, name a new domain or doubt; the task may be upgraded by it."""
        found = self.task(pid, task)
        agent = require_agent(self.caller, Scope.EXECUTE)
        body = self.body(ProgressBody)
        _, upgraded = report_progress(
            task_id=found.pk,
            progress=Progress(body.step, body.new_domain, body.uncertain, body.note),
            agent=agent,
            actor=self.actor,
            lease_token=self.lease_token,
        )
        fresh = fresh_task(found)
        shape = TaskShape.of_task(fresh, facts_of(fresh.project, [fresh])[fresh.pk])
        return Response(ProgressShape(task=shape, upgraded=upgraded).document())


class SpawnView(HolderView):
    """Spawn a child of a task."""

    @keyed_post(
        "spawn_task",
        "blackboard",
        body=SpawnBody,
        answer=TaskShape,
        status=201,
        parameters=LEASE,
        refusals=(*REFUSED, 413),
    )
    def post(self, request: Request, pid: str, task: str) -> Response:
        """Create a child of the task you work on; it is offered to agents like any other.

        Depth comes from the server. You go on meanwhile, and hand in once every child has ended.
        """
        found = self.task(pid, task)
        agent = require_agent(self.caller, Scope.EXECUTE)
        body = self.body(SpawnBody)
        child = NewChild(
            text=body.description or body.title,
            title=body.title,
            role=body.role,
            scope=body.scope,
            estimated_steps=body.estimated_steps,
        )
        made = spawn_task(
            task_id=found.pk,
            child=child,
            agent=agent,
            actor=self.actor,
            lease_token=self.lease_token,
        )
        return Response(task_document(fresh_task(made)), status=201)


class DeviationsView(ApiView):
    """Leave a locked blueprint in one point."""

    @keyed_post(
        "record_deviation", "blackboard", body=DeviationInput, answer=DepartedShape, status=201
    )
    def post(self, request: Request, pid: str, task: str) -> Response:
        """Add, skip or change a step of a planned task, with the reason."""
        found = self.task(pid, task)
        require_sir_or_scope(self.caller, Scope.PLAN)
        departed = record_deviation(
            task_id=found.pk,
            asked=self.body(DeviationInput),
            actor=self.actor,
            is_sir=self.caller.agent is None,
        )
        new_task = str(departed.new_step.pk) if departed.new_step is not None else None
        shape = DepartedShape.of(departed.deviation).model_copy(update={"new_task": new_task})
        return Response(shape.document(), status=201)


class CancelView(SirView):
    """Cancel a task with everything below it."""

    @keyed_post("cancel_task", "blackboard", body=ReasonBody, answer=TaskShape, parameters=IF_MATCH)
    def post(self, request: Request, pid: str, task: str) -> Response:
        """Cancel it. Only Sir does this, and says why."""
        found = self.task(pid, task)
        self.as_sir(cancel_task, task_id=found.pk)
        return task_answer(found)


class ReplanView(SirView):
    """Plan a root again."""

    @keyed_post("replan_task", "blackboard", body=ReasonBody, answer=TaskShape, parameters=IF_MATCH)
    def post(self, request: Request, pid: str, task: str) -> Response:
        """End this attempt and plan the task again; it counts nothing. Only Sir does this."""
        found = self.task(pid, task)
        self.as_sir(replan_task, task_id=found.pk)
        return task_answer(found)


def task_answer(task: Task) -> Response:
    """Answer with a task as it is after the call."""
    fresh = fresh_task(task)
    return Response(task_document(fresh), headers=etag(fresh.version))
