"""Requests share kept threads, one request at a time on each."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse

from config.request_threads import MAX_IDLE, OneHopHandler, RequestThreads
from tests.deployment.processes import wait_until

WAIT_SECONDS = 10


class Application:
    """An application that notes the threads its requests run on, and may be held in them."""

    def __init__(self) -> None:
        self.ran_on: list[int] = []
        self.entered = threading.Semaphore(0)
        self.may_go = threading.Event()
        self.may_go.set()

    async def __call__(self, *_: Any) -> None:
        await sync_to_async(self.work)()

    def work(self) -> None:
        self.ran_on.append(threading.get_ident())
        self.entered.release()
        assert self.may_go.wait(WAIT_SECONDS)

    async def enter(self) -> None:
        assert await asyncio.to_thread(self.entered.acquire, timeout=WAIT_SECONDS)


async def ask(served: RequestThreads) -> None:
    async def nothing(*_: Any) -> Any:
        return {}

    await served({}, nothing, nothing)


async def test_requests_one_after_another_run_on_one_thread() -> None:
    application = Application()
    served = RequestThreads(application)
    for _ in range(3):
        await ask(served)
    assert len(set(application.ran_on)) == 1


async def test_requests_at_the_same_time_run_side_by_side() -> None:
    application = Application()
    application.may_go.clear()
    served = RequestThreads(application)
    count = MAX_IDLE + 3
    asked = [asyncio.create_task(ask(served)) for _ in range(count)]
    for _ in range(count):
        await application.enter()
    application.may_go.set()
    await asyncio.gather(*asked)
    assert len(set(application.ran_on)) == count


async def test_after_a_rush_only_some_threads_are_kept() -> None:
    application = Application()
    application.may_go.clear()
    served = RequestThreads(application)
    asked = [asyncio.create_task(ask(served)) for _ in range(MAX_IDLE + 3)]
    for _ in asked:
        await application.enter()
    before = threading.active_count()
    application.may_go.set()
    await asyncio.gather(*asked)
    ended = await asyncio.to_thread(wait_until, lambda: threading.active_count() <= before - 2)
    # One more runs now: the one that waits.
    assert ended


async def test_thread_of_a_caller_that_hung_up_is_kept_only_when_it_is_done() -> None:
    application = Application()
    application.may_go.clear()
    served = RequestThreads(application)
    gone = asyncio.create_task(ask(served))
    await application.enter()
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    # The next caller does not wait behind what the one that is gone still runs.
    following = asyncio.create_task(ask(served))
    await application.enter()
    application.may_go.set()
    await following
    assert len(set(application.ran_on)) == 2


async def test_only_so_many_views_run_at_once() -> None:
    application = Application()
    application.may_go.clear()

    def answer(_request: HttpRequest) -> HttpResponse:
        application.work()
        return HttpResponse()

    handler = OneHopHandler(at_once=2)
    handler.get_response = answer  # type: ignore[assignment, method-assign]  # the view, held in it

    async def serve(*_: Any) -> None:
        await handler.get_response_async(HttpRequest())

    served = RequestThreads(serve)
    asked = [asyncio.create_task(ask(served)) for _ in range(5)]
    for _ in range(2):
        await application.enter()
    assert not await asyncio.to_thread(application.entered.acquire, timeout=0.2)
    assert len(application.ran_on) == 2
    application.may_go.set()
    await asyncio.gather(*asked)
    assert len(application.ran_on) == 5
