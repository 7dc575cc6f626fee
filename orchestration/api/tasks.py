"""Tasks: list, create, import, read; messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from orchestration.access import access_task
from orchestration.api.base import ApiView
from orchestration.api.bodies import MessageBody, TaskCreateBody
from orchestration.api.idempotency import idempotent
from orchestration.api.pagination import PAGE_PARAMETERS, paged
from orchestration.api.permissions import require_sir_or_scope
from orchestration.api.projects import etag
from orchestration.api.requests import Caller
from orchestration.api.schema import KEYED, problems
from orchestration.api.shapes.dossier import DossierShape, TaskAnswer
from orchestration.api.shapes.tasks import ImportShape, IntakeShape, TaskList, TaskShape
from orchestration.errors import Fault, Invalid
from orchestration.models import Project, Task
from orchestration.rules.profiles import known_roles
from orchestration.scopes import Scope
from orchestration.seats.registry import EXTERNAL
from orchestration.selectors.documents import read_dossier
from orchestration.selectors.tasks import facts_of, master_list, ready_tasks
from orchestration.services.importing import import_master_list
from orchestration.services.intake import NewTask, create_task
from orchestration.services.integrity import stop_for_import
from orchestration.states import MASTER_VIEW, TaskStatus
from orchestration.workflows.dispatch import dispatch_text

LIST_WRAPPER = "master_task_list"
AUTHORITATIVE = "authoritative"
TASK_FILTERS = [
    OpenApiParameter("status", str, description="States, separated by commas."),
    OpenApiParameter(
        "view", str, enum=["master"], description="`master` answers the master list, by key."
    ),
    OpenApiParameter("ready", bool, description="Only what may be claimed now."),
    OpenApiParameter("parent", str, description="A task's steps; `none` for the roots."),
    *PAGE_PARAMETERS,
]


def task_document(task: Task) -> dict[str, Any]:
    """Shape one task whose project is loaded."""
    return TaskShape.of_task(task, facts_of(task.project, [task])[task.pk]).document()


def fresh_task(task: Task) -> Task:
    """Read a task as the database has it after a write."""
    return Task.objects.select_related("project", "assignee").get(pk=task.pk)


class TasksView(ApiView):
    """The tasks of a project."""

    @extend_schema(
        operation_id="list_tasks",
        tags=["tasks"],
        parameters=TASK_FILTERS,
        responses={200: TaskList, **problems(401, 404, 422)},
    )
    def get(self, request: Request, pid: str) -> Response:
        """List tasks, oldest first; `?view=master` answers the master task list instead."""
        project = self.project(pid)
        view = request.query_params.get("view")
        if view == "master":
            return Response(master_list(project))
        if view is not None:
            raise _bad_filter("view", "must be master")
        return Response(paged(request, _filtered(project, request), _shaper(project)))

    @extend_schema(
        operation_id="create_task",
        tags=["tasks"],
        parameters=KEYED,
        request=TaskCreateBody,
        responses={201: TaskShape, **problems(400, 401, 403, 404, 409, 413, 422)},
    )
    @idempotent
    def post(self, request: Request, pid: str) -> Response:
        """Create a root task. A plan that comes with it goes to audit at once."""
        project = self.project(pid)
        require_sir_or_scope(self.caller, Scope.ORCHESTRATE)
        body = self.body(TaskCreateBody)
        task = create_task(project_id=project.pk, new=self._new_task(body), actor=self.actor)
        return Response(task_document(fresh_task(task)), status=201)

    def _new_task(self, body: TaskCreateBody) -> NewTask:
        if body.role and body.role not in known_roles():
            raise _bad_filter("role", f"must be one of {', '.join(sorted(known_roles()))}")
        agent = self.caller.agent
        return NewTask(
            text=body.description or body.title,
            title=body.title,
            external_key=body.external_key,
            depends_on=body.depends_on,
            plan=body.plan,
            # A plan that a person posts is planned again as it is, like a playbook; its commands
            # are not trusted by that.
            backend=EXTERNAL if agent is not None else "playbook",
            agent_id=agent.pk if agent is not None else None,
            role=body.role,
            route=body.route.value if body.route is not None else "",
            spec_id=body.spec_id,
            specification=body.specification,
            rank=body.rank,
            scope=body.scope,
            is_self_initiated=self_initiated(self.caller, asked=body.self_initiated),
        )


def _shaper(project: Project) -> Callable[[Sequence[Task]], list[dict[str, Any]]]:
    def shape(rows: Sequence[Task]) -> list[dict[str, Any]]:
        facts = facts_of(project, rows)
        return [TaskShape.of_task(row, facts[row.pk]).document() for row in rows]

    return shape


def _filtered(project: Project, request: Request) -> QuerySet[Task]:
    """Narrow a project's tasks by the query. Errors: Invalid for a value that means nothing."""
    query = request.query_params
    rows: QuerySet[Task] = Task.objects.filter(project=project)
    ready = query.get("ready")
    if ready is not None:
        rows = _by_readiness(project, rows, ready)
    status = query.get("status")
    if status:
        rows = rows.filter(status__in=_states(status))
    parent = query.get("parent")
    if parent == "none":
        rows = rows.filter(parent__isnull=True)
    elif parent:
        rows = rows.filter(parent=access_task(project, parent))
    return rows.select_related("assignee")


def _by_readiness(project: Project, rows: QuerySet[Task], text: str) -> QuerySet[Task]:
    if text not in ("true", "false"):
        raise _bad_filter("ready", "must be true or false")
    ready = ready_tasks(project)
    return ready if text == "true" else rows.exclude(pk__in=ready.values("pk"))


def _states(text: str) -> list[str]:
    """Read states, ours or those of the master list. Errors: Invalid."""
    wanted: list[str] = []
    for one in (part.strip() for part in text.split(",")):
        of_master = [state.value for state, name in MASTER_VIEW.items() if name == one]
        if one in tuple(TaskStatus):
            wanted.append(one)
        elif of_master:
            wanted += of_master
        else:
            raise _bad_filter("status", f"{one!r} is none of {', '.join(TaskStatus)}")
    return wanted


def _bad_filter(name: str, message: str) -> Invalid:
    return Invalid(f"{name}: {message}.", errors=[Fault(path=name, message=message)])


def self_initiated(caller: Caller, *, asked: bool) -> bool:
    """Say whether work is an agent's own idea. Errors: Invalid for a person who says so."""
    if asked and caller.agent is None:
        raise _bad_filter("self_initiated", "only an agent's own idea is marked so")
    return asked


class MessagesView(ApiView):
    """Messages to a project."""

    @extend_schema(
        operation_id="submit_message",
        tags=["tasks"],
        parameters=KEYED,
        request=MessageBody,
        responses={201: IntakeShape, **problems(400, 401, 403, 404, 409, 413, 422)},
    )
    @idempotent
    def post(self, request: Request, pid: str) -> Response:
        """Take a message in. S0 decides in this call how much method it deserves.

        A slash command at its start, as in `/strict-plan Add a page`, starts that workflow.
        """
        project = self.project(pid)
        require_sir_or_scope(self.caller, Scope.ORCHESTRATE)
        body = self.body(MessageBody)
        sent = dispatch_text(
            project_id=project.pk,
            text=body.text,
            actor=self.actor,
            is_self_initiated=self_initiated(self.caller, asked=body.self_initiated),
        )
        task = fresh_task(sent.task)
        facts = facts_of(task.project, [task])
        shape = IntakeShape.of_intake(task, facts[task.pk], sent.assessment)
        return Response(shape.document(), status=201)


class ImportView(ApiView):
    """A master task list from outside."""

    @extend_schema(
        operation_id="import_tasks",
        tags=["tasks"],
        parameters=KEYED,
        request=OpenApiTypes.OBJECT,
        responses={
            200: ImportShape, 201: ImportShape, **problems(400, 401, 403, 404, 409, 413, 422)
        },
    )  # fmt: skip
    @idempotent
    def post(self, request: Request, pid: str) -> Response:
        """Import a list: the object of `?view=master`, bare or as `{"master_task_list": …}`.

        What is a task already and says the same is left as it is: 200 when nothing else was sent.
        A faulty list changes nothing and is refused with every fault. Sent as the loop's own state
        (`"authoritative": true` beside the wrapped list), it also puts the project in safe stop.
        """
        project = self.project(pid)
        require_sir_or_scope(self.caller, Scope.ORCHESTRATE)
        document, is_authoritative = _bare_list(request.data)
        try:
            done = import_master_list(project_id=project.pk, document=document, actor=self.actor)
        except Invalid as error:
            if is_authoritative:
                stop_for_import(project_id=project.pk, error=error, actor=self.actor)
            raise
        fresh = Task.objects.select_related("assignee").filter(
            pk__in=[row.pk for row in done.tasks]
        )
        project.refresh_from_db()
        shaped = _shaper(project)(list(fresh.order_by("number")))
        answer = {"tasks": shaped, "master_task_list": master_list(project)}
        return Response(answer, status=201 if done.made else 200)


def _bare_list(data: Any) -> tuple[Any, bool]:
    """Take the list out of its wrapper, where it has one. Shape: the list, whether it is the truth.

    Errors: Invalid for fields beside the wrapped list.
    """
    if not isinstance(data, Mapping):
        return data, False
    is_said = isinstance(data.get(AUTHORITATIVE), bool)
    inner = data.get(LIST_WRAPPER)
    if not is_said:
        if not isinstance(inner, Mapping):
            return data, False
        if "status" in inner and not isinstance(inner["status"], Mapping):
            # A task of this very name, in a bare list.
            return data, False
    unknown = sorted(key for key in data if key not in (LIST_WRAPPER, AUTHORITATIVE))
    if not is_said and AUTHORITATIVE in data:
        unknown.append(AUTHORITATIVE)
    if unknown:
        faults = [Fault(path=key, message="is no field of this request") for key in unknown]
        raise Invalid(
            f"Unknown fields: {', '.join(unknown)}.", code="unknown_fields", errors=faults
        )
    return inner, bool(data.get(AUTHORITATIVE))


class TaskView(ApiView):
    """One task, by id, readable key or the key it came with."""

    @extend_schema(
        operation_id="read_task",
        tags=["tasks"],
        parameters=[
            OpenApiParameter("expand", str, enum=["all"], description="Everything about it.")
        ],
        responses={200: TaskAnswer, **problems(401, 404, 422)},
    )
    def get(self, request: Request, pid: str, task: str) -> Response:
        """Read a task; with `?expand=all` with everything that belongs to it."""
        found = self.task(pid, task)
        expand = request.query_params.get("expand")
        if expand is None:
            return Response(task_document(found), headers=etag(found.version))
        if expand != "all":
            raise _bad_filter("expand", "must be all")
        document = DossierShape.of_dossier(read_dossier(found)).document()
        return Response(document, headers=etag(found.version))
