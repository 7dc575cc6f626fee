"""What holds for every path of the URL table, so that a new one cannot be forgotten.

Agents get 403 or 404 on every path of people and in every other project; unknown fields are 422
naming them; the last slash is optional.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from django.urls import resolve

from orchestration.models import AuditEvent, Project
from tests.api.callers import EVERY_SCOPE, Caller, agent_client, human_client
from tests.api.url_table import (
    AGENTS_TOO,
    HUMANS_ONLY,
    NAMED_IN_BODY,
    NOT_OURS,
    OWN_ONLY,
    Endpoint,
    endpoints,
    rows_of,
)
from tests.factories import new_agent

EVERY = endpoints()
UNKNOWN = "no_such_field"


def named(wanted: list[Endpoint]) -> pytest.MarkDecorator:
    """Run a test for each of some endpoints."""
    return pytest.mark.parametrize(
        "endpoint", wanted, ids=[f"{one.method} {one.path}" for one in wanted]
    )


@pytest.fixture
def names(project: Project) -> Mapping[str, str]:
    """A row of each kind in the project demo."""
    return rows_of(project, new_agent("holder", project=project))


def test_each_path_says_whose_it_is() -> None:
    known = {one.key for one in EVERY}
    assert not HUMANS_ONLY & AGENTS_TOO
    assert known == HUMANS_ONLY | AGENTS_TOO, "say in tests/api/url_table.py who may use a path"
    assert known >= OWN_ONLY


@named([one for one in EVERY if one.key in HUMANS_ONLY])
def test_agent_with_every_scope_is_refused_on_the_paths_of_people(
    project: Project, agent: Caller, names: Mapping[str, str], endpoint: Endpoint
) -> None:
    before = AuditEvent.objects.count()
    answer = endpoint.ask(agent, names)
    assert answer.status_code in (403, 404), answer.content
    assert answer["Content-Type"] == "application/problem+json"
    kinds = AuditEvent.objects.order_by("-pk").values_list("kind", flat=True)
    assert set(kinds[: AuditEvent.objects.count() - before]) <= {"permission.refused"}


@named([one for one in EVERY if one.key in AGENTS_TOO])
def test_agent_with_every_scope_is_let_through_elsewhere(
    agent: Caller, names: Mapping[str, str], endpoint: Endpoint
) -> None:
    assert endpoint.ask(agent, names).status_code not in (401, 403, 404, 405)


@named([one for one in EVERY if one.key not in OWN_ONLY | NAMED_IN_BODY])
def test_agent_of_another_project_finds_nothing(
    outsider: Caller, names: Mapping[str, str], endpoint: Endpoint
) -> None:
    before = AuditEvent.objects.exclude(kind="permission.refused").count()
    answer = endpoint.ask(outsider, names)
    assert answer.status_code in (403, 404), answer.content
    assert AuditEvent.objects.exclude(kind="permission.refused").count() == before
    assert names["pid"] not in answer.json()["detail"]


@pytest.mark.parametrize("key", sorted(OWN_ONLY))
def test_paths_without_a_name_answer_with_the_callers_own(
    outsider: Caller, names: Mapping[str, str], key: tuple[str, str]
) -> None:
    endpoint = next(one for one in EVERY if one.key == key)
    answer = endpoint.ask(outsider, names)
    assert answer.status_code in (200, 204)
    assert "demo" not in answer.content.decode()


@named([one for one in EVERY if one.method != "get" and one.key not in NOT_OURS])
def test_unknown_field_is_422_and_named(
    project: Project, names: Mapping[str, str], endpoint: Endpoint
) -> None:
    """The caller is allowed everything, so that nothing but the body can be wrong."""
    caller = (
        human_client() if endpoint.key in HUMANS_ONLY else agent_client(project, name="holder-2")
    )
    answer = endpoint.ask(caller, names, json.dumps({UNKNOWN: {"a": 1}}))
    assert answer.status_code == 422, answer.content
    paths = [one["path"] for one in answer.json()["errors"]]
    assert any(path.split(".")[0] == UNKNOWN for path in paths), paths


@named(list(EVERY))
def test_last_slash_is_optional(endpoint: Endpoint) -> None:
    path = endpoint.filled(
        dict.fromkeys(
            (
                "pid",
                "task",
                "assignment",
                "artifact",
                "decision",
                "name",
                "experience",
                "page",
                "package",
            ),
            "1",
        )
    )
    bare = path.rstrip("/")
    assert resolve(bare).url_name == resolve(f"{bare}/").url_name == endpoint.name


@pytest.mark.parametrize("scope", EVERY_SCOPE)
@named([one for one in EVERY if one.key in HUMANS_ONLY])
def test_no_scope_opens_a_path_of_people(
    project: Project, names: Mapping[str, str], endpoint: Endpoint, scope: str
) -> None:
    caller = agent_client(project, name=f"only-{scope}", scopes=[scope])
    assert endpoint.ask(caller, names).status_code in (403, 404)
