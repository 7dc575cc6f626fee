"""Generated requests against the OpenAPI document: no 500, nothing that it does not say.

Every operation is asked as somebody who may do it, with documents that fit the schema and with
documents that do not, on rows that are there and on names that are made up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import requests
import schemathesis
from django.db import transaction
from django.test import override_settings
from hypothesis import HealthCheck, given
from hypothesis import settings as bounds
from hypothesis import strategies as st
from schemathesis import APIOperation, Case, GenerationMode, Response
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from orchestration.api.docs import openapi_document
from orchestration.models import Project
from tests.api.callers import Caller, agent_client, human_client
from tests.api.url_table import HUMANS_ONLY, endpoints, rows_of

ORIGIN = "http://testserver"
EXAMPLES = 12
CHECKS: list[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


def operation_of(result: Any) -> APIOperation[Any, Any, Any, Any]:
    """Give an operation of the document. Errors: what is wrong with it."""
    operation: APIOperation[Any, Any, Any, Any] = result.ok()
    return operation


SCHEMA = schemathesis.openapi.from_dict(dict(openapi_document()))
OPERATIONS = {
    f"{found.method.upper()} {found.path}": found
    for found in map(operation_of, SCHEMA.get_all_operations())
}
OF_PEOPLE = {
    (one.method, "/api/" + one.path.replace("<str:", "{").replace(">", "}").rstrip("/"))
    for one in endpoints()
    if one.key in HUMANS_ONLY
}


@pytest.fixture
def callers(project: Project) -> Mapping[bool, Caller]:
    """Sir for what only people do, else an agent with every scope; neither raises what breaks."""
    made = {True: human_client(), False: agent_client(project)}
    for caller in made.values():
        caller.raise_request_exception = False
    return made


@pytest.fixture
def names(project: Project, callers: Mapping[bool, Caller]) -> Mapping[str, str]:
    """A row of each kind; the agent holds the task and its assignment."""
    holder = callers[False].agent
    assert holder is not None
    return rows_of(project, holder)


def as_holder(case: Case[Any], names: Mapping[str, str]) -> Case[Any]:
    """Put in what nobody can guess, so that the request gets past the fence."""
    if isinstance(case.body, dict):
        case.body |= {key: names[key] for key in ("lease_token", "digest") if key in case.body}
    return case


def send(caller: Caller, case: Case[Any]) -> Response:
    """Send a generated request. Return the answer as the checks read it."""
    request: Any = requests.Request(**case.as_transport_kwargs(base_url=ORIGIN)).prepare()
    headers = {
        name: value
        for name, value in request.headers.items()
        if name.lower() in ("idempotency-key", "if-match", "x-lease-token")
    }
    body: Any = request.body or b""
    answer: Any = caller.generic(
        case.method.upper(),
        request.url.removeprefix(ORIGIN),
        body,
        request.headers.get("Content-Type", "application/json"),
        headers=headers,
    )
    return Response(
        status_code=answer.status_code,
        headers={name.lower(): [str(value)] for name, value in answer.headers.items()},
        content=answer.getvalue(),
        request=request,
        elapsed=0.0,
        verify=False,
    )


@pytest.mark.parametrize("place", ["rows that are there", "made-up names"])
@pytest.mark.parametrize("name", OPERATIONS)
@override_settings(COUNTERSIGN_API_BURST=100_000)
def test_no_request_finds_a_500_or_an_undocumented_answer(
    name: str, place: str, names: Mapping[str, str], callers: Mapping[bool, Caller]
) -> None:
    operation = OPERATIONS[name]
    caller = callers[(operation.method, operation.path.rstrip("/")) in OF_PEOPLE]
    known = {one.name: names[one.name] for one in operation.path_parameters}
    wanted = known if place == "rows that are there" else {}

    @bounds(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(
        case=st.one_of(
            operation.as_strategy(GenerationMode.POSITIVE, path_parameters=wanted),
            operation.as_strategy(GenerationMode.NEGATIVE, path_parameters=wanted),
        )
    )
    def ask(case: Case[Any]) -> None:
        # Taken back after each request, so that every one of them meets the same rows.
        with transaction.atomic():
            answer = send(caller, as_holder(case, names))
            transaction.set_rollback(True)
        case.validate_response(answer, checks=CHECKS)

    ask()


def test_document_names_every_path_of_the_table() -> None:
    documented = {(one.method, one.path.rstrip("/")) for one in OPERATIONS.values()}
    table = {
        (one.method, "/api/" + one.path.replace("<str:", "{").replace(">", "}").rstrip("/"))
        for one in endpoints()
    }
    assert documented == table
