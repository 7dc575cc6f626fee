"""How Django answers over ASGI here: one thread hop a request, on threads that are kept.

Django's handler starts a thread for each request and ends it afterwards, and with it the thread's
database connection: opening SQLite and reading its schema again costs more than most answers. It
also goes back to the event loop between the middleware and the view.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.db import close_old_connections, connections
from django.http import HttpRequest, HttpResponseBase

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[..., Awaitable[None]]

MAX_IDLE = 8
"""Threads that are kept while nobody needs them; a rush starts more, which end after it."""


class OneHopHandler(ASGIHandler):
    """Django's handler with a synchronous chain: middleware and view run in one go in one thread.

    `at_once` views run at the same time; the others wait on the loop, which costs nothing, instead
    of for a database connection. A slow sender or reader keeps no place: its body was read before,
    its answer is sent after. An asynchronous view would run on a loop of its own; there is none.
    """

    def __init__(self, *, at_once: int) -> None:
        super().__init__()
        self._places = asyncio.Semaphore(at_once)

    def load_middleware(self, is_async: bool = False) -> None:  # noqa: FBT001, FBT002  # Django's signature
        """Build the chain without Django's hops between the loop and the thread."""
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        """Answer in the request's thread."""
        async with self._places:
            return await sync_to_async(self._answer, thread_sensitive=True)(request)

    def _answer(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if not response.streaming:
            # Not only once the answer was read: a pooled connection is for whoever works.
            close_old_connections()
        return response


class RequestThread(ThreadPoolExecutor):
    """One thread that answers one request at a time, and knows whether it has done so."""

    def __init__(self) -> None:
        super().__init__(max_workers=1, thread_name_prefix="request")
        self.last: Future[Any] | None = None

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Queue a call on the thread."""
        self.last = super().submit(fn, *args, **kwargs)
        return self.last


class RequestThreads:
    """Wrap an HTTP application so that its requests share kept threads, the warmest first."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self._idle: list[RequestThread] = []

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request on a thread of its own."""
        thread = self._idle.pop() if self._idle else RequestThread()
        try:
            async with ThreadSensitiveContext(executor=thread):
                await self.application(scope, receive, send)
        finally:
            self._give_back(thread)

    def _give_back(self, thread: RequestThread) -> None:
        """Keep a thread for the next request, once its last call is over.

        A caller that hangs up does not stop what its request runs.
        """
        last = thread.last
        if last is None or last.done():
            self._keep(thread)
            return
        loop = asyncio.get_running_loop()
        last.add_done_callback(lambda _: loop.call_soon_threadsafe(self._keep, thread))

    def _keep(self, thread: RequestThread) -> None:
        if len(self._idle) < MAX_IDLE:
            self._idle.append(thread)
        else:
            thread.submit(connections.close_all)
            thread.shutdown(wait=False)
