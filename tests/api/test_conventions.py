"""What holds for every endpoint: problem documents, bodies, paths, the schema, the rate."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings
from django.urls import get_resolver
from drf_spectacular.renderers import OpenApiYamlRenderer

from orchestration.api import urls
from orchestration.api.base import ApiView
from orchestration.api.docs import openapi_document
from orchestration.models import Project, Task
from orchestration.services.agents import create_agent, revoke_agent, rotate_agent_token
from orchestration.services.work import SYSTEM
from tests.api.callers import Caller, agent_client, by_token, events, problem

MESSAGES = "/api/projects/demo/messages"


@pytest.mark.parametrize("path", ["/api/nothing", "/api/projects/demo/nothing/", "/api/"])
def test_unknown_address_is_a_problem_also_without_a_token(
    project: Project, agent: Caller, path: str
) -> None:
    problem(agent.get(path), 404, "not_found")
    problem(Caller().post(path), 404, "not_found")


@pytest.mark.parametrize(
    "path", ["/api/projects/demo", "/api/projects/demo/", "/api/projects", "/api/projects/"]
)
def test_trailing_slash_is_optional(agent: Caller, path: str) -> None:
    assert agent.get(path).status_code == 200


def test_project_by_id_or_slug_and_task_by_id_or_key(agent: Caller, project: Project) -> None:
    made = agent.send(MESSAGES, {"text": "Implement it"}).json()["task"]
    assert agent.read(f"/api/projects/{project.pk}/")["slug"] == "demo"
    for name in (made["id"], made["key"], made["key"].lower()):
        assert agent.read(f"/api/projects/{project.pk}/tasks/{name}")["id"] == made["id"]


@pytest.mark.parametrize(
    "query", ["tasks?parent=%00", "tasks?status=a%00", "artifacts?name=%00", "audit?actor=%00"]
)
def test_nul_in_the_query_is_422(agent: Caller, query: str) -> None:
    problem(agent.get(f"/api/projects/demo/{query}"), 422, "invalid")


@pytest.mark.parametrize("name", ["%00", "0", "999999", "9" * 30, "²", "nope", "DEMO-", "DEMO-²"])
def test_names_that_are_nothing_are_404(agent: Caller, name: str) -> None:
    problem(agent.get(f"/api/projects/demo/tasks/{name}"), 404, "not_found")
    problem(agent.get(f"/api/projects/{name}/tasks"), 404, "not_found")
    problem(agent.get(f"/api/artifacts/{name}/content"), 404, "not_found")


def test_method_that_is_not_there_is_405_and_says_what_is(agent: Caller) -> None:
    answer = agent.delete("/api/projects/demo/")
    problem(answer, 405, "method_not_allowed")
    assert answer["Allow"] == "GET, PATCH, HEAD"
    problem(agent.options("/api/projects/demo/"), 405, "method_not_allowed")


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "application/xml"]
)
def test_other_content_type_is_415(agent: Caller, content_type: str) -> None:
    answer = agent.post(MESSAGES, b"text=x", content_type=content_type)
    problem(answer, 415, "unsupported_media_type")
    assert not Task.objects.exists()


@pytest.mark.parametrize(
    ("body", "line", "column"),
    [
        (b'{"text": "x"', 1, 13),
        (b'{\n  "text": nope}', 2, 11),
        (b'{"text": "a\xff"}', 1, 12),
        (b"   ", 1, 1),
    ],
)
def test_malformed_json_is_400_with_its_position(
    agent: Caller, body: bytes, line: int, column: int
) -> None:
    found = problem(agent.post(MESSAGES, body, content_type="application/json"), 400, "malformed")
    assert (found["line"], found["column"]) == (line, column)
    assert not Task.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        b'{"text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"text": ' + b'{"a":' * 70 + b"1" + b"}" * 70 + b"}",
        b'{"text": NaN}',
        b'{"text": Infinity}',
        b'{"text": ' + b"9" * 5000 + b"}",
        b'{"text": 1e999}',
        b'{"text": "a", "text": "b"}',
    ],
)
def test_hostile_json_is_400(agent: Caller, body: bytes) -> None:
    problem(agent.post(MESSAGES, body, content_type="application/json"), 400, "malformed")
    assert not Task.objects.exists()


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "text"),
        ({"text": None}, "text"),
        ({"text": 7}, "text"),
        ({"text": "  \n "}, "text"),
        ({"text": "nul \x00"}, "text"),
        ({"text": "ok", "txet": 1, "actor": "sir"}, "actor"),
        ([1, 2], ""),
        ("text", ""),
    ],
)
def test_invalid_body_is_422_naming_the_field(agent: Caller, body: Any, path: str) -> None:
    answer = agent.post(MESSAGES, json.dumps(body), content_type="application/json")
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["path"] == path
    assert not Task.objects.exists()


def test_lone_surrogate_is_422(agent: Caller) -> None:
    answer = agent.post(MESSAGES, b'{"text": "a\\ud800"}', content_type="application/json")
    found = problem(answer, 422, "invalid")
    assert "surrogate" in found["errors"][0]["message"]


def test_message_over_one_megabyte_is_413_and_at_the_limit_is_taken(agent: Caller) -> None:
    problem(agent.send(MESSAGES, {"text": "é" * 500_001}), 413, "too_large")
    assert agent.send(MESSAGES, {"text": "é" * 500_000}).status_code == 201


def test_body_over_the_limit_is_413(agent: Caller) -> None:
    body = b'{"text": "' + b"x" * (9 * 1024 * 1024) + b'"}'
    problem(agent.post(MESSAGES, body, content_type="application/json"), 413, "too_large")


def test_without_a_token_every_endpoint_is_401(project: Project) -> None:
    anybody = Caller()
    for path, item in openapi_document()["paths"].items():
        filled = path.replace("{pid}", "demo").replace("{task}", "1")
        filled = filled.replace("{assignment}", "1").replace("{decision}", "1")
        filled = filled.replace("{artifact}", "1").replace("{experience}", "1")
        filled = filled.replace("{page}", "1")
        for method in item:
            answer = anybody.generic(method.upper(), filled, "{}", "application/json")
            problem(answer, 401, "not_authenticated")
            assert answer["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("header", ["Bearer nonsense", "Bearer csh_x", "Bearer", "bearer a b"])
def test_wrong_token_is_401(project: Project, header: str) -> None:
    answer = Caller().get("/api/projects/", headers={"Authorization": header})
    problem(answer, 401, "token_invalid")


def test_revoked_and_rotated_tokens_end_at_once(project: Project) -> None:
    agent, first = create_agent(name="turning", actor=SYSTEM)
    assert by_token(first).get("/api/projects/").status_code == 200
    _, second = rotate_agent_token(agent_id=agent.pk, actor=SYSTEM)
    problem(by_token(first).get("/api/projects/"), 401, "token_invalid")
    assert by_token(second).get("/api/projects/").status_code == 200
    revoke_agent(agent_id=agent.pk, actor=SYSTEM)
    problem(by_token(second).get("/api/projects/"), 401, "token_invalid")


@override_settings(COUNTERSIGN_API_BURST=3, COUNTERSIGN_API_PER_SECOND=0.01)
def test_each_token_has_its_own_rate(project: Project, agent: Caller, sir: Caller) -> None:
    for _ in range(3):
        assert agent.get("/api/projects/").status_code == 200
    answer = agent.get("/api/projects/")
    problem(answer, 429, "throttled")
    assert 90 <= int(answer["Retry-After"]) <= 100
    assert sir.get("/api/projects/").status_code == 200


def test_refusal_of_permission_is_audited_and_a_hidden_thing_is_not(
    project: Project, outsider: Caller
) -> None:
    reader = agent_client(project, name="reader", scopes=["observe"])
    problem(reader.send(MESSAGES, {"text": "Implement it"}), 403, "scope_missing")
    refused = events("permission.refused")
    assert [(one.actor, one.project_id) for one in refused] == [("agent:reader", project.pk)]
    assert refused[0].after == {"method": "POST", "path": MESSAGES, "code": "scope_missing"}
    problem(outsider.send(MESSAGES, {"text": "Implement it"}), 404, "not_found")
    assert len(events("permission.refused")) == 1


def test_request_id_reaches_the_answer_and_the_trail(project: Project, agent: Caller) -> None:
    answer = agent.send(MESSAGES, {"text": "Implement it"}, X_Request_ID="trace-0123456789")
    assert answer["X-Request-ID"] == "trace-0123456789"
    assert events("task.pending")[0].request_id == "trace-0123456789"
    assert events("task.pending")[0].actor == "agent:worker"


def test_schema_and_its_page_are_served_under_the_strict_policy(client: Any) -> None:
    schema = client.get("/api/schema/", headers={"Accept": "text/html"})
    assert schema.status_code == 200
    assert schema.json()["paths"].keys() == openapi_document()["paths"].keys()
    page = client.get("/api/docs/", headers={"Accept": "text/html"})
    assert page.status_code == 200
    text = page.content.decode()
    assert "script-src 'self'" in page["Content-Security-Policy"]
    assert "<script" not in text
    assert "style=" not in text
    for path in openapi_document()["paths"]:
        assert f"<code>{path}</code>" in text


def test_committed_schema_is_the_generated_one() -> None:
    renderer: Any = OpenApiYamlRenderer()
    generated = renderer.render(openapi_document(), renderer_context={})
    committed = (settings.BASE_DIR / "docs" / "openapi.yaml").read_bytes()
    assert generated == committed, "run make format"


def test_every_post_takes_an_idempotency_key() -> None:
    views = [getattr(pattern.callback, "cls", None) for pattern in urls.urlpatterns]
    ours = [view for view in views if view is not None and issubclass(view, ApiView)]
    assert len(ours) == len(views)
    posts = [view.post for view in ours if hasattr(view, "post")]
    assert len(posts) > 20
    assert all(getattr(post, "is_idempotent", False) for post in posts)


def test_api_is_mounted_once_with_its_own_last_word() -> None:
    routes = [str(pattern.pattern) for pattern in get_resolver().url_patterns]
    assert routes.count("api/") == 1
    assert str(urls.urlpatterns[-1].pattern) == ""
