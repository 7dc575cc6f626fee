"""Workflows: which there are, start one, what their changes came to, questions, documents.

Source: DESIGN sections 11 and 14.
"""

from __future__ import annotations

from django.http import HttpResponse
from django.utils.http import content_disposition_header
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from orchestration.api.base import ApiView
from orchestration.api.blackboard import HolderView
from orchestration.api.bodies import WorkflowBody
from orchestration.api.operations import keyed_post
from orchestration.api.permissions import require_agent, require_sir_or_scope
from orchestration.api.schema import LEASE, problems
from orchestration.api.shapes.tasks import TaskShape
from orchestration.api.shapes.workflows import (
    AskedShape,
    WorkflowList,
    WorkflowRunList,
    WorkflowRunShape,
    WorkflowShape,
)
from orchestration.api.tasks import fresh_task, task_document
from orchestration.contracts.flow_results import QuestionRound
from orchestration.scopes import Scope
from orchestration.services.clarifying import ask_round
from orchestration.services.flow_documents import runs_of, zip_documents
from orchestration.workflows.dispatch import list_workflows, start_workflow

ZIP = "application/zip"


class WorkflowListView(ApiView):
    """The workflows that exist."""

    @extend_schema(
        operation_id="list_workflows",
        tags=["workflows"],
        responses={200: WorkflowList, **problems(401)},
    )
    def get(self, request: Request) -> Response:
        """List the slash commands: name, what it does, and who takes the text first."""
        results = [WorkflowShape.of(one) for one in list_workflows()]
        return Response(WorkflowList(results=results).document())


class WorkflowsView(ApiView):
    """The workflow runs of a project."""

    @extend_schema(
        operation_id="list_workflow_runs",
        tags=["workflows"],
        responses={200: WorkflowRunList, **problems(401, 404)},
    )
    def get(self, request: Request, pid: str) -> Response:
        """List the newest 200 changes, newest first, each with its documents and boxes."""
        results = [WorkflowRunShape.of_run(one) for one in runs_of(self.project(pid))]
        return Response(WorkflowRunList(results=results).document())

    @keyed_post(
        "start_workflow",
        "workflows",
        body=WorkflowBody,
        answer=TaskShape,
        status=201,
        refusals=(400, 401, 403, 404, 409, 413, 422),
    )
    def post(self, request: Request, pid: str) -> Response:
        """Start a workflow on a text; a text that names an unfinished change resumes it."""
        project = self.project(pid)
        require_sir_or_scope(self.caller, Scope.ORCHESTRATE)
        body = self.body(WorkflowBody)
        made = start_workflow(
            project_id=project.pk, name=body.workflow, text=body.text, actor=self.actor
        )
        return Response(task_document(fresh_task(made.task)), status=201)


class QuestionsView(HolderView):
    """Ask Sir several questions at once."""

    @keyed_post(
        "ask_questions",
        "workflows",
        body=QuestionRound,
        answer=AskedShape,
        status=201,
        parameters=LEASE,
    )
    def post(self, request: Request, pid: str, task: str) -> Response:
        """Put a round of 1 to 5 questions to Sir: at most 3 rounds a stage, 15 questions in all.

        The task waits for the answer and your clock stands still.
        """
        found = self.task(pid, task)
        agent = require_agent(self.caller, Scope.EXECUTE)
        decision = ask_round(
            task_id=found.pk,
            asked=self.body(QuestionRound),
            agent=agent,
            actor=self.actor,
            lease_token=self.lease_token,
        )
        shape = AskedShape(
            decision=str(decision.pk),
            round=int(decision.content["round"]),
            question=decision.question,
        )
        return Response(shape.document(), status=201)


class DocumentsView(ApiView):
    """The documents of a workflow."""

    @extend_schema(
        operation_id="download_documents",
        tags=["workflows"],
        responses={(200, ZIP): OpenApiTypes.BINARY, **problems(401, 404)},
    )
    def get(self, request: Request, pid: str, task: str) -> HttpResponse:
        """Download the locked documents of the task's workflow, at their paths, as a zip."""
        name, data = zip_documents(self.task(pid, task))
        headers = {
            "Content-Disposition": content_disposition_header(as_attachment=True, filename=name)
            or "attachment",
            "X-Content-Type-Options": "nosniff",
        }
        return HttpResponse(data, content_type=ZIP, headers=headers)
