"""What each answer carries, and what the ASGI door lets in."""

import json
import logging
from collections.abc import Sequence
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory, override_settings

from config.body_limit import BodyLimit
from config.logs import LineFormatter, RequestIdFilter, current_request_id
from config.middleware import RequestIdMiddleware, SecurityHeadersMiddleware


def answer(_request: HttpRequest) -> HttpResponse:
    return HttpResponse("body")


def directives(response: Any) -> dict[str, str]:
    parts = response["Content-Security-Policy"].split("; ")
    return dict(part.split(" ", 1) for part in parts)


def test_policy_allows_only_our_own_files_and_this_hosts_sockets() -> None:
    request = RequestFactory().get("/", headers={"host": "testserver:81"})
    found = directives(SecurityHeadersMiddleware(answer)(request))
    assert found["default-src"] == "'self'"
    assert found["script-src"] == "'self'"
    assert found["style-src"] == "'self'"
    assert found["connect-src"] == "'self' ws://testserver:81"
    assert found["frame-ancestors"] == "'none'"
    assert "unsafe" not in str(found)


def test_policy_of_an_unknown_host_names_no_host() -> None:
    request = RequestFactory().get("/", headers={"host": "evil.example;script-src *"})
    found = directives(SecurityHeadersMiddleware(answer)(request))
    assert found["connect-src"] == "'self'"


def test_view_may_set_a_policy_of_its_own() -> None:
    def docs(_request: HttpRequest) -> HttpResponse:
        return HttpResponse("body", headers={"Content-Security-Policy": "sandbox"})

    response = SecurityHeadersMiddleware(docs)(RequestFactory().get("/"))
    assert response["Content-Security-Policy"] == "sandbox"


@pytest.mark.parametrize(
    ("given", "is_kept"),
    [("client-id-1", True), ("short", False), ("a b c d e f g", False), ("x" * 65, False)],
)
def test_request_id_is_kept_when_well_formed(given: str, is_kept: bool) -> None:  # noqa: FBT001  # parametrized
    request = RequestFactory().get("/", headers={"x-request-id": given})
    response: Any = RequestIdMiddleware(answer)(request)
    assert (response["X-Request-ID"] == given) is is_kept
    assert response["X-Request-ID"] == current_request_id.get()


def test_log_line_names_the_request_and_stays_one_line() -> None:
    record = logging.makeLogRecord(
        {"name": "orchestration.x", "levelname": "WARNING", "msg": "a\nforged level=error"}
    )
    record.queue = "agents"
    token = current_request_id.set("req-12345")
    RequestIdFilter().filter(record)
    current_request_id.reset(token)
    line = LineFormatter().format(record)
    assert "\n" not in line
    assert 'request_id=req-12345 msg="a\\nforged level=error" queue=agents' in line


async def read_all(scope: Any, receive: Any, send: Any) -> None:
    """Read the whole body, then answer 200: what Django does."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"read"})


async def post(chunks: Sequence[bytes], headers: Sequence[tuple[bytes, bytes]] = ()) -> list[Any]:
    left = list(chunks)
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

    async def send(message: Any) -> None:
        sent.append(message)

    await BodyLimit(read_all, max_bytes=10)({"type": "http", "headers": headers}, receive, send)
    return sent


@pytest.mark.parametrize(
    ("chunks", "headers"),
    [([b""], [(b"content-length", b"11")]), ([b"123456", b"123456"], [])],
)
async def test_body_over_the_limit_is_413_by_its_length_and_by_counting(
    chunks: list[bytes], headers: list[tuple[bytes, bytes]]
) -> None:
    start, body = await post(chunks, headers)
    assert start["status"] == 413
    assert json.loads(body["body"])["code"] == "too_large"


async def test_body_at_the_limit_passes() -> None:
    start, _ = await post([b"12345", b"12345"], [(b"content-length", b"10")])
    assert start["status"] == 200


@override_settings(ALLOWED_HOSTS=["testserver"])
def test_secure_request_gets_a_secure_socket_source() -> None:
    response = SecurityHeadersMiddleware(answer)(RequestFactory().get("/", secure=True))
    assert directives(response)["connect-src"] == "'self' wss://testserver"
