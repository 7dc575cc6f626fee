"""A query that nobody answers in time: the call ends, the question stands and can be answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from channels.db import database_sync_to_async
from django.core.asgi import get_asgi_application

from orchestration.api.long_poll import LongPoll
from orchestration.broadcast import publisher
from orchestration.models import Mail
from tests.api.test_mail_api import make_two, reply_as_bob

QUERY: dict[str, Any] = {
    "type": "request", "mode": "query", "to": "bob", "message_id": "q-1",
    "content": "which file?", "wait": 0.3,
}  # fmt: skip
MAIL = "/api/mail/"

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def door() -> AsyncIterator[LongPoll]:
    publisher.bind_loop(asyncio.get_running_loop())
    yield LongPoll(get_asgi_application())
    publisher.unbind_loop()


def caller(door: LongPoll, token: str, headers: dict[str, str]) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app=door),
        base_url="http://localhost",
        timeout=60,
        headers={"Authorization": f"Bearer {token}", **headers},
    )


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "k-1"}])
async def test_call_ends_and_the_question_stands(door: LongPoll, headers: dict[str, str]) -> None:
    token = await database_sync_to_async(make_two)()
    async with caller(door, token, headers) as client:
        began = asyncio.get_running_loop().time()
        answer = await asyncio.wait_for(client.post(MAIL, json=QUERY), 20)
        assert asyncio.get_running_loop().time() - began >= QUERY["wait"]
        document = answer.json()
        assert (answer.status_code, document["reply"]) == (201, None)
        assert document["conversation"]["status"] == "open"
        assert document["expects_reply"] is True
        assert "countersign-wait" not in answer.headers
        waiting = (await client.get(MAIL, params={"box": "out", "unanswered": "true"})).json()
        assert [one["message_id"] for one in waiting["results"]] == ["q-1"]

        again = await asyncio.wait_for(client.post(MAIL, json=QUERY), 20)
        assert again.json()["reply"] is None
        assert await Mail.objects.acount() == 1

        await reply_as_bob("q-1")
        late = await asyncio.wait_for(client.post(MAIL, json=QUERY), 20)
        assert late.json()["reply"]["content"] == "in fsm.go"
        assert late.json()["conversation"]["status"] == "closed"
        found = (await client.get(MAIL, params={"in_reply_to": "q-1"})).json()
        assert [one["content"] for one in found["results"]] == ["in fsm.go"]
    assert door.bell.waiters == 0
