"""What every view of the API shares: its caller, its body as a contract, refusals audited."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

from django.db import DatabaseError
from pydantic import BaseModel
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from orchestration.access import access_project, access_task, project_ids_of
from orchestration.api.parsers import JsonParser
from orchestration.api.permissions import require_writable
from orchestration.api.requests import Caller, caller_of
from orchestration.contracts.documents import field_names, parse_document, sayable
from orchestration.errors import Fault, Invalid, NotFound, Stale
from orchestration.models import Project, Task
from orchestration.services.refusals import record_refusal
from orchestration.services.work import Actor

logger = logging.getLogger(__name__)
M = TypeVar("M", bound=BaseModel)
READ_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class ApiView(APIView):
    """Base of the API's views: one path, one method a function, errors as problem documents."""

    parser_classes: Sequence[type[BaseParser]] = (JsonParser,)
    http_method_names = ("get", "post", "put", "patch", "delete", "head")
    works_in_safe_stop = False
    """Whether this call is one of the few that a project in safe stop still takes."""
    record_id: int | None = None
    """The IdempotencyRecord of this request, set by `idempotent`."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse an address that no row can have. Errors: NotFound, Invalid."""
        super().initial(request, *args, **kwargs)
        require_storable_address(request)

    @cached_property
    def caller(self) -> Caller:
        """Who calls."""
        return caller_of(self.request)

    @property
    def actor(self) -> Actor:
        """The actor that services record for this request."""
        return replace(self.caller.actor, record_id=self.record_id)

    def project(self, pid: str) -> Project:
        """Find a visible project; writes need one that is neither archived nor in safe stop.

        Errors: NotFound, Conflict.
        """
        project = access_project(self.caller.viewer, pid)
        if self.request.method not in READ_METHODS and not self.works_in_safe_stop:
            require_writable(project)
        return project

    def task(self, pid: str, name: str) -> Task:
        """Find a task of a visible project. Errors: NotFound, Conflict as `project`."""
        return access_task(self.project(pid), name)

    def body(self, model: type[M]) -> M:
        """Read the request's body as its contract. Errors: Invalid listing every fault."""
        return read_body(model, self.request.data)

    def seen_version(self, given: int | None = None) -> int | None:
        """Return the version the caller saw: `If-Match`, else the body's `version`.

        Errors: Stale for an `If-Match` that is no version of ours.
        """
        header = self.request.headers.get("If-Match", "").strip()
        if not header or header == "*":
            return given
        text = header.removeprefix("W/").strip('"')
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise Stale(f"If-Match {header!r} is no version of this.")
        return int(text)

    def handle_exception(self, exc: Exception) -> Response:
        """Answer with a problem document; a 403 of a known caller is audited."""
        response = super().handle_exception(exc)
        if response.status_code == 403:
            self._audit_refusal(response)
        return response

    def _audit_refusal(self, response: Response) -> None:
        request: Request = self.request
        user = getattr(request, "_user", None)
        if user is None or not user.is_authenticated:
            return
        problem: Mapping[str, Any] = response.data or {}
        try:
            record_refusal(
                actor=self.caller.actor,
                method=request.method or "",
                path=request.path,
                code=str(problem.get("code", "")),
                why=str(problem.get("detail", "")),
                project_id=self._project_id_in_path(),
            )
        except DatabaseError:
            logger.exception("a refusal could not be recorded")

    def _project_id_in_path(self) -> int | None:
        name = self.kwargs.get("pid")
        if name is None:
            limited = project_ids_of(self.caller.agent) if self.caller.agent else None
            return next(iter(limited)) if limited is not None and len(limited) == 1 else None
        try:
            return access_project(self.caller.viewer, name).pk
        except NotFound:
            return None


def require_storable_address(request: Request) -> None:
    """Refuse a NUL in the path or the query: PostgreSQL cannot even be asked for it.

    Errors: NotFound for the path, Invalid naming the parameter.
    """
    if "\x00" in request.path:
        raise NotFound("There is nothing at this address.")
    for name, values in request.query_params.lists():
        if any("\x00" in text for text in (name, *map(str, values))):
            message = "contains a NUL character"
            raise Invalid(f"The query {message}.", errors=[Fault(path=name, message=message)])


def read_body(model: type[M], data: Any) -> M:
    """Read a body as its contract; a top-level field that it does not know is a fault.

    Errors: Invalid listing every fault with its path.
    """
    if not isinstance(data, Mapping):
        raise Invalid(
            "The body must be a JSON object.", errors=[Fault(path="", message="must be an object")]
        )
    known = field_names(model) - {"extra"}
    faults = [
        Fault(path=name, message="is no field of this request")
        for name in sorted(sayable(key) for key in data if key not in known)
    ]
    held = {key: value for key, value in data.items() if key in known}
    try:
        parsed = parse_document(model, held, detail="The body is not valid.")
    except Invalid as error:
        if not faults:
            raise
        error.errors[:0] = faults
        raise
    if faults:
        named = ", ".join(fault["path"] for fault in faults)
        raise Invalid(f"Unknown fields: {named}.", code="unknown_fields", errors=faults)
    return parsed
