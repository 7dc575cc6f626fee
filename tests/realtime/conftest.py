"""Sockets on the real ASGI application, opened with a person's own session."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser, Group, User
from django.db import connections
from django.test import AsyncClient

from config.asgi import application

HOST = "localhost"
PATIENCE_SECONDS = 5.0


class Socket:
    """One open page's socket. Channels' own communicator would need another server installed."""

    def __init__(self, path: str, cookie: str, *, origin: str) -> None:
        address, _, query = path.partition("?")
        scope = {
            "type": "websocket", "path": address, "query_string": query.encode(),
            "subprotocols": [],
            "headers": [
                (b"host", HOST.encode()), (b"origin", origin.encode()),
                (b"cookie", cookie.encode()),
            ],
        }  # fmt: skip
        self.communicator = ApplicationCommunicator(application, scope)
        self.close_code: int | None = None
        self.batch: deque[dict[str, Any]] = deque()

    async def open(self) -> bool:
        """Connect. Return whether the server took it."""
        await self.communicator.send_input({"type": "websocket.connect"})
        answer = await self.communicator.receive_output(PATIENCE_SECONDS)
        if answer["type"] == "websocket.close":
            self.close_code = answer.get("code", 1000)
        return bool(answer["type"] == "websocket.accept")

    async def read(self) -> dict[str, Any]:
        """Wait for the next message, one of a batch at a time."""
        if not self.batch:
            answer = await self.communicator.receive_output(PATIENCE_SECONDS)
            assert answer["type"] == "websocket.send", answer
            message = json.loads(answer["text"])
            self.batch = deque(message.get("batch", [message]))
        return self.batch.popleft()

    async def read_topic(self, topic: str) -> dict[str, Any]:
        """Wait for the next message of a topic, passing over others."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                message = await self.read()
                if message.get("topic") == topic:
                    return message

    async def send(self, **message: object) -> None:
        """Send a frame, as a page could."""
        await self.communicator.send_input({"type": "websocket.receive", **message})

    async def topics_until(self, topic: str, version: int) -> set[str]:
        """Every topic heard up to a hint of one topic in some version or a later one."""
        heard: set[str] = set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                message = await self.read()
                heard.add(str(message.get("topic")))
                if message.get("topic") == topic and int(message["version"]) >= version:
                    return heard

    async def close(self) -> None:
        """Hang up."""
        await self.communicator.send_input({"type": "websocket.disconnect", "code": 1001})
        await self.communicator.wait(PATIENCE_SECONDS)


async def session_cookie(user: AbstractBaseUser | None) -> str:
    """The cookie of a session that a person has just opened."""
    if user is None:
        return ""
    client = AsyncClient()
    await client.aforce_login(cast(User, user))
    return "; ".join(f"{name}={held.value}" for name, held in client.cookies.items())


Opener = Callable[..., Any]


async def in_thread(work: Callable[[], Any]) -> Any:
    """Run a service in a thread of its own, like a request or a worker, and leave no connection."""

    def run() -> Any:
        try:
            return work()
        finally:
            connections.close_all()

    return await sync_to_async(run, thread_sensitive=False)()


@pytest.fixture
async def open_socket() -> AsyncIterator[Opener]:
    """Open sockets that are hung up when the test ends."""
    opened: list[Socket] = []
    cookies: dict[object, str] = {}

    async def opener(
        user: AbstractBaseUser | None, query: str = "", *, origin: str = f"http://{HOST}"
    ) -> Socket:
        key = user.pk if user is not None else None
        if key not in cookies:
            cookies[key] = await session_cookie(user)
        socket = Socket(f"/ws/live/{query}", cookies[key], origin=origin)
        if await socket.open():
            opened.append(socket)
        return socket

    yield opener
    for socket in opened:
        await socket.close()


@pytest.fixture
def reader(transactional_db: None) -> User:
    """A person who may read."""
    user: User = get_user_model().objects.create_user("reader", password="a good password")
    user.groups.add(Group.objects.get_or_create(name="viewer")[0])
    return user
