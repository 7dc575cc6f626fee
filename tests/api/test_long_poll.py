"""Long polls: a claim waits on the event loop, and gets its work when the bell rings."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, MutableMapping
from typing import Any

import httpx
import pytest
from channels.db import database_sync_to_async
from django.core.asgi import get_asgi_application
from django.test import override_settings

from orchestration.api import long_poll
from orchestration.api.long_poll import LongPoll
from orchestration.broadcast import publisher
from orchestration.models import Assignment, Project
from orchestration.services.agents import create_agent
from orchestration.services.intake import NewTask, create_task
from orchestration.services.work import SYSTEM
from tests.factories import new_project

CLAIM = "/api/assignments/claim"
NEVER = 3600.0
Message = MutableMapping[str, Any]


@pytest.fixture
def token(transactional_db: None) -> str:
    """The token of an agent of a project named demo."""
    return create_agent(name="worker", projects=[new_project("demo")], actor=SYSTEM)[1]


@pytest.fixture
async def door() -> AsyncIterator[LongPoll]:
    """The HTTP application behind the long poll, with the hints on this test's loop."""
    publisher.bind_loop(asyncio.get_running_loop())
    yield LongPoll(get_asgi_application())
    publisher.unbind_loop()


def client(door: LongPoll, token: str) -> httpx.AsyncClient:
    """An HTTP client of the application."""
    transport = httpx.ASGITransport(app=door)
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.AsyncClient(
        transport=transport, base_url="http://localhost", headers=headers, timeout=60
    )


@database_sync_to_async
def queue_work(title: str = "work") -> None:
    """Queue a direct task that waits for an agent."""
    project = Project.objects.get(slug="demo")
    create_task(project_id=project.pk, new=NewTask(text=title, route="direct"), actor=SYSTEM)


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until something is so."""
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0)


async def test_waiting_claim_gets_work_when_the_bell_rings(
    door: LongPoll, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_poll, "LOOK_AGAIN_SECONDS", NEVER)
    async with client(door, token) as agent:
        waiting = asyncio.create_task(agent.post(CLAIM, json={"wait": 30}))
        await until(lambda: door.bell.waiters == 1)
        await door.bell.listening.wait()
        await queue_work("rung")
        answer = await waiting
    assert answer.status_code == 200
    assert answer.json()["title"] == "rung"
    assert door.bell.waiters == 0


async def test_lost_ring_only_costs_time(
    door: LongPoll, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_poll, "LOOK_AGAIN_SECONDS", 0.05)
    monkeypatch.setattr(door.bell, "ring", lambda: None)
    async with client(door, token) as agent:
        waiting = asyncio.create_task(agent.post(f"{CLAIM}/", json={"wait": 30}))
        await until(lambda: door.bell.waiters == 1)
        await queue_work("found")
        assert (await waiting).json()["title"] == "found"


async def test_wait_ends_with_204_and_shows_nothing_of_ours(door: LongPoll, token: str) -> None:
    async with client(door, token) as agent:
        waited = await agent.post(CLAIM, json={"wait": 0.1})
        at_once = await agent.post(CLAIM, json={})
    assert waited.status_code == at_once.status_code == 204
    assert long_poll.WAIT_HEADER not in waited.headers
    assert waited.content == b""


async def test_one_ring_gives_one_piece_of_work_to_one_of_many(door: LongPoll, token: str) -> None:
    async with client(door, token) as agent:
        waiting = [asyncio.create_task(agent.post(CLAIM, json={"wait": 2})) for _ in range(12)]
        await until(lambda: door.bell.waiters == 12)
        await queue_work()
        answers = await asyncio.gather(*waiting)
    assert sorted(answer.status_code for answer in answers) == [200] + [204] * 11


async def test_waiting_holds_no_thread(
    door: LongPoll, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_poll, "LOOK_AGAIN_SECONDS", NEVER)
    async with client(door, token) as agent:
        await agent.get("/healthz")
        before = threading.active_count()
        waiting = [asyncio.create_task(agent.post(CLAIM, json={"wait": 30})) for _ in range(20)]
        await until(lambda: door.bell.waiters == 20)
        await until(lambda: threading.active_count() <= before)
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    assert door.bell.waiters == 0


@override_settings(COUNTERSIGN_API_BURST=2, COUNTERSIGN_API_PER_SECOND=0.001)
async def test_waiting_claim_counts_once_for_the_rate(
    door: LongPoll, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_poll, "LOOK_AGAIN_SECONDS", 0.02)
    async with client(door, token) as agent:
        assert (await agent.post(CLAIM, json={"wait": 0.5})).status_code == 204
        assert (await agent.post(CLAIM, json={})).status_code == 204
        assert (await agent.post(CLAIM, json={})).status_code == 429


async def test_more_waiters_than_the_limit_are_answered_at_once(
    door: LongPoll, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_poll, "MAX_WAITERS", 1)
    monkeypatch.setattr(long_poll, "LOOK_AGAIN_SECONDS", NEVER)
    async with client(door, token) as agent:
        first = asyncio.create_task(agent.post(CLAIM, json={"wait": 30}))
        await until(lambda: door.bell.waiters == 1)
        assert (await agent.post(CLAIM, json={"wait": 30})).status_code == 204
        await queue_work()
        assert (await first).status_code == 200


async def test_refused_claim_does_not_wait(door: LongPoll, token: str) -> None:
    async with client(door, token) as agent:
        wrong = await agent.post(CLAIM, json={"wait": 30, "seats": ["king"]})
        huge = await agent.post(CLAIM, json={"wait": 30, "filler": "x" * 70_000})
        other = await agent.post(CLAIM, json={"wait": 30}, headers={"Authorization": "Bearer x"})
        read = await agent.get(CLAIM)
    assert [one.status_code for one in (wrong, huge, other, read)] == [422, 422, 401, 405]


def scope_of(token: str, body: bytes) -> Message:
    """The ASGI scope of a claim."""
    headers = {
        "host": "localhost",
        "authorization": f"Bearer {token}",
        "content-type": "application/json",
        "content-length": str(len(body)),
    }
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": CLAIM,
        "raw_path": CLAIM.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("localhost", 80),
    }


class Wire:
    """One connection. Shape: `hang_up` makes the caller leave; `sent` is what reached it."""

    def __init__(self, body: bytes) -> None:
        self.coming: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        self.hang_up = asyncio.Event()
        self.sent: list[Message] = []

    async def receive(self) -> Message:
        """Give the body, then the caller's leaving."""
        if self.coming:
            return self.coming.pop()
        await self.hang_up.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Take what is sent to the caller."""
        self.sent.append(message)


async def test_caller_that_leaves_waits_no_longer(
    door: LongPoll, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_poll, "LOOK_AGAIN_SECONDS", NEVER)
    body = json.dumps({"wait": 30}).encode()
    wire = Wire(body)
    running = asyncio.create_task(door(scope_of(token, body), wire.receive, wire.send))
    await until(lambda: door.bell.waiters == 1)
    wire.hang_up.set()
    await asyncio.wait_for(running, 30)
    assert wire.sent == []
    assert door.bell.waiters == 0


@pytest.mark.parametrize("key", [None, "k1"])
async def test_claim_whose_caller_left_meanwhile_is_given_back(token: str, key: str | None) -> None:
    await queue_work()
    body = json.dumps({"wait": 30}).encode()
    wire = Wire(body)
    django = get_asgi_application()

    async def leaving(scope: Any, receive: Any, send: Any) -> None:
        await django(scope, receive, send)
        wire.hang_up.set()
        for _ in range(5):
            await asyncio.sleep(0)

    scope = scope_of(token, body)
    if key is not None:
        scope["headers"].append((b"idempotency-key", key.encode()))
    await asyncio.wait_for(LongPoll(leaving)(scope, wire.receive, wire.send), 30)
    assert wire.sent == []
    status = await database_sync_to_async(lambda: Assignment.objects.get().status)()
    # With a key the caller can come back for the same answer.
    assert status == ("queued" if key is None else "leased")
