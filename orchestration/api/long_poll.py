"""Wait for work or a reply without holding anything: no thread and no database connection.

This wraps the HTTP application. A claim that finds nothing is answered with WAIT_HEADER, and so is
a mail whose sender waits for the reply (its message_id keeps it from being sent twice); then
the request waits here, on the event loop, until the bell rings or a few seconds have passed, and is
asked again, whole. Each time it is an ordinary request, with its permissions; it is throttled once.
The bell is the channel layer's group of agents' work: a hint that is lost costs a few seconds.
Source: DESIGN section 14 (`assignments/claim`), section 3 (idle sockets hold no connection).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import random
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from channels.layers import get_channel_layer

from orchestration.api.throttles import WAIT_ROUND
from orchestration.broadcast import AGENTS_GROUP

logger = logging.getLogger(__name__)
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Any, Any], Awaitable[None]]

CLAIM_PATH = "/api/assignments/claim"
MAIL_PATH = "/api/mail"
WAITING_PATHS = frozenset({CLAIM_PATH, MAIL_PATH})
WAIT_HEADER = "Countersign-Wait"
RAW_WAIT_HEADER = WAIT_HEADER.lower().encode()
MAX_WAITERS = 512
"""Waiting claims of one process; beyond them a claim is answered at once."""
MAX_ASKING = 4
"""Waiting claims that ask again at the same time, so that a ring does not take every thread."""
MAX_BODY_BYTES = 65_536
LOOK_AGAIN_SECONDS = 3.0
"""How often a waiting claim asks although no bell rang; what became ready silently is found so."""
SETTLE_SECONDS = 0.01
"""A ring waits this long before it wakes anybody: what was queued together is there by then."""


@dataclass(slots=True)
class Answer:
    """A whole response, kept until it is known whether it is the last one."""

    messages: list[Message] = field(default_factory=list)

    async def keep(self, message: Message) -> None:
        """Take one message of the application."""
        self.messages.append(message)

    @property
    def status(self) -> int:
        """The HTTP status; 0 when there was no answer."""
        return int(self.messages[0]["status"]) if self.messages else 0

    @property
    def body(self) -> bytes:
        """The body, whole."""
        return b"".join(message.get("body", b"") for message in self.messages[1:])

    @property
    def wait_seconds(self) -> float:
        """How long the view lets the request wait; 0 for a final answer."""
        for name, value in self.messages[0].get("headers", ()) if self.messages else ():
            if name.lower() == RAW_WAIT_HEADER:
                return float(value)
        return 0.0

    async def send_to(self, send: Send) -> None:
        """Send it on, without the header that is ours."""
        for message in self.messages:
            if message["type"] == "http.response.start":
                headers = [one for one in message["headers"] if one[0].lower() != RAW_WAIT_HEADER]
                message = {**message, "headers": headers}
            await send(message)


class Bell:
    """Rings for every waiting claim of this process when work for agents may be there."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()
        self._listener: asyncio.Task[None] | None = None
        self.listening = asyncio.Event()
        """Set while the group's messages reach us."""

    @property
    def waiters(self) -> int:
        """How many claims wait now."""
        return len(self._waiting)

    def wait(self) -> asyncio.Future[None]:
        """Give a future that the next ring ends; listening starts with the first."""
        loop = asyncio.get_running_loop()
        if self._listener is None or self._listener.done():
            self._listener = loop.create_task(self._listen())
        waiting = loop.create_future()
        self._waiting.add(waiting)
        waiting.add_done_callback(self._leave)
        return waiting

    def _leave(self, waiting: asyncio.Future[None]) -> None:
        self._waiting.discard(waiting)

    def ring(self) -> None:
        """Wake every waiting claim."""
        for waiting in list(self._waiting):
            if not waiting.done():
                waiting.set_result(None)

    async def _listen(self) -> None:
        """Pass the group's messages on; end when nobody has waited for a while."""
        layer = get_channel_layer()
        if layer is None:
            return
        channel = await layer.new_channel()
        await layer.group_add(AGENTS_GROUP, channel)
        self.listening.set()
        try:
            while self._waiting:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(layer.receive(channel), LOOK_AGAIN_SECONDS * 2)
                    await asyncio.sleep(SETTLE_SECONDS)
                    self.ring()
        except Exception:
            # Without the layer the claims still look again by themselves.
            logger.warning("the bell of waiting claims is out of order", exc_info=True)
        finally:
            self.listening.clear()
            with contextlib.suppress(Exception):
                await layer.group_discard(AGENTS_GROUP, channel)


class LongPoll:
    """Wrap an HTTP application so that claims may wait."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self.bell = Bell()
        self._asking: asyncio.Semaphore | None = None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass every request on; a claim that finds nothing waits and is asked again."""
        if scope["method"] != "POST" or scope["path"].rstrip("/") not in WAITING_PATHS:
            await self.application(scope, receive, send)
            return
        body, is_whole = await _read_body(receive)
        if not is_whole:
            # No claim is this large: let the application refuse it as it arrives.
            await self.application(scope, _replay(body, receive, is_whole=False), send)
            return
        await self._claim(scope, body, receive, send)

    async def _claim(self, scope: Message, body: bytes, receive: Receive, send: Send) -> None:
        loop = asyncio.get_running_loop()
        gone = asyncio.ensure_future(_disconnected(receive))
        try:
            answer = await self._ask(scope, body, 0)
            ends = loop.time() + answer.wait_seconds
            number = 0
            while answer.wait_seconds and self.bell.waiters < MAX_WAITERS:
                left = ends - loop.time()
                if left <= 0 or not await self._rest(left, gone):
                    break
                number += 1
                async with self._semaphore():
                    answer = await self._ask(scope, body, number)
            if gone.done():
                await self._give_back(scope, answer)
            else:
                await answer.send_to(send)
        finally:
            gone.cancel()

    async def _give_back(self, scope: Message, answer: Answer) -> None:
        """Release what was claimed for a caller that has gone, as the caller itself would.

        One with an Idempotency-Key may come back for the same answer, so its claim stays.
        """
        names = {name.lower() for name, _ in scope.get("headers", ())}
        if scope["path"].rstrip("/") != CLAIM_PATH:
            return
        if answer.status != 200 or b"idempotency-key" in names:
            return
        claimed = json.loads(answer.body)
        body = json.dumps({"lease_token": claimed["lease_token"], "reason": "caller gone"}).encode()
        path = f"/api/assignments/{claimed['id']}/release"
        headers = [
            (name, str(len(body)).encode() if name.lower() == b"content-length" else value)
            for name, value in scope["headers"]
        ]
        asked = {**scope, "path": path, "raw_path": path.encode(), "headers": headers}
        released = await self._ask(asked, body, 1)
        logger.info("a claim's caller had gone; its release answered %s", released.status)

    def _semaphore(self) -> asyncio.Semaphore:
        if self._asking is None:
            self._asking = asyncio.Semaphore(MAX_ASKING)
        return self._asking

    async def _rest(self, left: float, gone: asyncio.Future[None]) -> bool:
        """Wait for a ring, a while, or the caller's leaving. Return whether to go on."""
        pause = min(left, LOOK_AGAIN_SECONDS * random.uniform(0.8, 1.2))  # noqa: S311  # jitter
        rung = self.bell.wait()
        try:
            await asyncio.wait({rung, gone}, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
        finally:
            rung.cancel()
        return not gone.done()

    async def _ask(self, scope: Message, body: bytes, number: int) -> Answer:
        """Ask the application once, with the whole request."""
        answer = Answer()
        asked = {**scope, WAIT_ROUND: number}
        never = asyncio.get_running_loop().create_future()

        async def rest() -> Message:
            message: Message = await never
            return message

        try:
            await self.application(asked, _replay(body, rest, is_whole=True), answer.keep)
        finally:
            never.cancel()
        return answer


async def _read_body(receive: Receive) -> tuple[bytes, bool]:
    """Read a request's body, at most what a claim may have. Shape: (bytes, whether it is all)."""
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if message["type"] == "http.disconnect" or not message.get("more_body"):
            return body, True
        if len(body) > MAX_BODY_BYTES:
            return body, False


def _replay(body: bytes, rest: Receive, *, is_whole: bool) -> Receive:
    """Give a body that was read once more, then whatever comes after it."""
    given = False

    async def receive() -> Message:
        nonlocal given
        if given:
            return await rest()
        given = True
        return {"type": "http.request", "body": body, "more_body": not is_whole}

    return receive


async def _disconnected(receive: Receive) -> None:
    """Return when the caller has gone."""
    while (await receive())["type"] != "http.disconnect":
        continue
