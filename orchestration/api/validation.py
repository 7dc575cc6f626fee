"""Validation packages and control commands: post a verdict on a root, read what the loop decided.

Source: DESIGN sections 10 and 14, FORMATS ("Validation and release evidence package").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from pydantic import StrictBool, StrictStr
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from orchestration.access import access_package
from orchestration.api.base import ApiView, read_body
from orchestration.api.bodies import Body
from orchestration.api.idempotency import idempotent
from orchestration.api.pagination import PAGE_PARAMETERS, paged
from orchestration.api.parsers import JsonParser, MalformedBody
from orchestration.api.permissions import require_agent, require_sir, require_sir_or_scope
from orchestration.api.schema import KEYED, problems
from orchestration.api.shapes.validation import (
    CommandList,
    CommandShape,
    JudgedShape,
    PackageList,
    PackageShape,
)
from orchestration.contracts.documents import field_names
from orchestration.contracts.master_list import cycles_in, parse_master_list
from orchestration.contracts.validation import Package, parse_package
from orchestration.contracts.validation_text import MAX_CHARACTERS, parse_markdown, render_package
from orchestration.errors import Fault, Invalid, TooLarge
from orchestration.models import ControlCommand, ValidationPackage
from orchestration.scopes import Scope
from orchestration.services.integrity import stop_for_import
from orchestration.services.packages import package_of
from orchestration.services.validation import Posted, post_package
from orchestration.services.work import Actor

MARKDOWN = "text/markdown"
LIST = "master_task_list"
NESTED = ("latest_validation_package", "package", "markdown")
"""Fields that hold a whole package; without one the body is the package itself."""


class MarkdownParser(BaseParser):
    """Take a package as Markdown text."""

    media_type = MARKDOWN

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the text as a body. Errors: MalformedBody for no UTF-8; TooLarge."""
        limit = MAX_CHARACTERS * 4
        data = stream.read(limit + 1)
        if len(data) > limit:
            raise TooLarge(f"The body is larger than {limit} bytes.", limit_bytes=limit)
        try:
            return {"markdown": data.decode("utf-8-sig")}
        except UnicodeDecodeError:
            detail = "The body is not valid UTF-8."
            raise MalformedBody(detail, errors=[Fault(path="", message=detail)]) from None


class ValidationBody(Body):
    """What goes with a package: whose word it is, the list as its sender sees it, attachments.

    The package stands beside these fields, or whole in one of `latest_validation_package`,
    `package` and `markdown`.
    """

    authoritative: StrictBool = False
    master_task_list: dict[str, Any] | None = None
    all_artifacts_from_current_loop: dict[str, Any] | None = None
    latest_validation_package: dict[str, Any] | StrictStr | None = None
    package: dict[str, Any] | StrictStr | None = None
    markdown: StrictStr | None = None


class ValidationView(ApiView):
    """The validation packages of a root."""

    parser_classes = (JsonParser, MarkdownParser)

    @extend_schema(
        operation_id="list_validation_packages",
        tags=["loop"],
        parameters=PAGE_PARAMETERS,
        responses={200: PackageList, **problems(401, 404, 422)},
    )
    def get(self, request: Request, pid: str, task: str) -> Response:
        """List the packages of a task, oldest first."""
        found = self.task(pid, task)
        rows = ValidationPackage.objects.filter(task=found).select_related("agent")
        return Response(paged(request, rows, _packages))

    @extend_schema(
        operation_id="post_validation_package",
        tags=["loop"],
        parameters=[
            *KEYED,
            OpenApiParameter("authoritative", bool, description="As the field, for Markdown."),
        ],
        request={"application/json": OpenApiTypes.OBJECT, MARKDOWN: OpenApiTypes.STR},
        responses={201: JudgedShape, **problems(400, 401, 403, 404, 409, 413, 415, 422)},
    )
    @idempotent
    def post(self, request: Request, pid: str, task: str) -> Response:
        """Judge a root: a package in JSON or Markdown, answered with the control command.

        An independent agent with `review` speaks as the validator; Sir and agents with
        `orchestrate` send the loop's own state, marked `authoritative`. No agent judges what it
        planned, executed or fixed itself. A GO cannot overrule a failed planned check: then the
        rules' verdict stands, and the GO is kept as `claimed`. While a defect of what the root's
        steps locked is asked about or fixed, a GO waits for its end, and the command with it. A
        faulty `master_task_list` in the loop's own state puts the project in safe stop.
        """
        found = self.task(pid, task)
        is_loop_state = self._is_loop_state()
        try:
            body, package = _read(request.data)
        except Invalid as error:
            if is_loop_state:
                _stop_over_list(request, found.project_id, error, self.actor)
            raise
        authoritative = body.authoritative or _flag(request)
        if authoritative:
            require_sir_or_scope(self.caller, Scope.ORCHESTRATE)
        named = ("master_task_list", "all_artifacts_from_current_loop")
        held = {name: getattr(body, name) for name in named if getattr(body, name) is not None}
        posted = Posted(
            package=package,
            agent=self.caller.agent,
            is_loop_state=is_loop_state,
            is_authoritative=authoritative,
            attachments=held,
        )
        judged = post_package(task_id=found.pk, posted=posted, actor=self.actor)
        return Response(JudgedShape.of_judged(judged).document(), status=201)

    def _is_loop_state(self) -> bool:
        """Whether the caller speaks for the loop. Errors: Forbidden."""
        agent = self.caller.agent
        if agent is None:
            require_sir(self.caller)
            return True
        if Scope.ORCHESTRATE.value in agent.scopes:
            return True
        require_agent(self.caller, Scope.REVIEW)
        return False


def _read(data: Any) -> tuple[ValidationBody, Package]:
    """Read the body and the package in it.

    Errors: Invalid listing every fault of the package, of the list and of the body.
    """
    if not isinstance(data, Mapping):
        raise Invalid(
            "The body must be a JSON object.", errors=[Fault(path="", message="must be an object")]
        )
    nested = [name for name in NESTED if data.get(name) is not None]
    ours = field_names(ValidationBody)
    faults: list[Fault] = []
    if nested:
        body = read_body(ValidationBody, data)
        raw: Any = data[nested[0]]
        faults += [Fault(path=name, message="is a second package") for name in nested[1:]]
    else:
        body = read_body(ValidationBody, {key: data[key] for key in data if key in ours})
        raw = {key: held for key, held in data.items() if key not in ours}
        known = field_names(Package) - {"extra"}
        faults += [
            Fault(path=str(key), message="is no field of this request")
            for key in sorted(str(name) for name in raw if name not in known)
        ]
    faults += _list_faults(body)
    package: Package | None = None
    try:
        package = parse_markdown(raw) if isinstance(raw, str) else parse_package(raw)
    except Invalid as error:
        faults += error.errors
    if faults or package is None:
        raise Invalid("The validation package is not valid.", code="package_invalid", errors=faults)
    return body, package


def _stop_over_list(request: Request, project_id: int, error: Invalid, actor: Actor) -> None:
    """Stop a project whose loop sent a list of tasks as its own state that cannot be read."""
    said = request.data.get("authoritative") if isinstance(request.data, Mapping) else None
    lost = [one for one in error.errors if one["path"].split(".")[0] == LIST]
    if lost and (said is True or _flag(request)):
        wrong = Invalid(error.detail, errors=lost)
        stop_for_import(project_id=project_id, error=wrong, actor=actor)


def _list_faults(body: ValidationBody) -> list[Fault]:
    if body.master_task_list is None:
        return []
    try:
        entries = parse_master_list(body.master_task_list)
    except Invalid as error:
        return [
            Fault(path=f"{LIST}.{one['path']}".rstrip("."), message=one["message"])
            for one in error.errors
        ]
    return [
        Fault(path=f"{LIST}.{path}", message=message)
        for path, message in cycles_in({key: entry.depends_on for key, entry in entries.items()})
    ]


def _flag(request: Request) -> bool:
    text = request.query_params.get("authoritative", "false")
    if text not in ("true", "false"):
        message = "must be true or false"
        raise Invalid(
            f"authoritative {message}.", errors=[Fault(path="authoritative", message=message)]
        )
    return text == "true"


def _packages(rows: Sequence[ValidationPackage]) -> list[dict[str, Any]]:
    return [PackageShape.of_package(row).document() for row in rows]


class PackageTextView(ApiView):
    """One package as Markdown."""

    @extend_schema(
        operation_id="read_validation_package",
        tags=["loop"],
        responses={(200, MARKDOWN): OpenApiTypes.STR, **problems(401, 404)},
    )
    def get(self, request: Request, pid: str, task: str, package: str) -> HttpResponseBase:
        """Read a package as Markdown, in the project's language."""
        found = self.task(pid, task)
        row = access_package(found, package)
        text = render_package(package_of(row), found.project.language)
        headers = {"X-Content-Type-Options": "nosniff"}
        return HttpResponse(text, content_type=f"{MARKDOWN}; charset=utf-8", headers=headers)


class ControlCommandsView(ApiView):
    """What the loop decided, verdict by verdict."""

    @extend_schema(
        operation_id="list_control_commands",
        tags=["loop"],
        parameters=PAGE_PARAMETERS,
        responses={200: CommandList, **problems(401, 404, 422)},
    )
    def get(self, request: Request, pid: str) -> Response:
        """List the control commands of a project, oldest first."""
        rows = ControlCommand.objects.filter(project=self.project(pid))
        return Response(paged(request, rows, _commands))


def _commands(rows: Sequence[ControlCommand]) -> list[dict[str, Any]]:
    return [CommandShape.of_command(row).document() for row in rows]
