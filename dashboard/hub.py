"""One hub a process: it subscribes once a group and writes hints to its sockets in memory.

Measured with 200 sockets at 50 events/s: one channel-layer message a socket takes seconds, the hub
milliseconds. A socket that was quiet is sent a hint at once; what follows goes out together, four
times a second at most, the newest hint of a topic only.
Source: DESIGN section 15.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

from channels.layers import get_channel_layer

from orchestration.broadcast import INBOX_GROUP, project_group, publisher
from orchestration.contracts.hints import HintMessage

logger = logging.getLogger(__name__)

WINDOW_SECONDS = 0.25
PULSE_SECONDS = 2.0
PULSES_A_BEAT = 5
PULSES_UNTIL_DEAF = 4
MAILBOX_TOPICS = 1_000
TRY_AGAIN_LATER = 1013
CATCH_UP = json.dumps({"catch_up": True})
BEAT_TOPIC = "beat"
TRAILING_TOPICS = (BEAT_TOPIC, "audit:")
BEAT = json.dumps({"beat": True})


class Deaf(Exception):
    """The channel layer does not answer, so a socket would be told nothing."""


class Mailbox:
    """What one socket has not been sent yet: the newest text a topic, and whether to close.

    Its clock starts at a delivery of hints: the next one is a window later, with all that came
    meanwhile. A burst of 50 events a second costs 200 sockets 800 messages a second so, and not
    20,000. A beat and a seal start no clock: they trail behind, a second at least apart, and the
    first hint of the next burst must not wait for them.
    """

    def __init__(self, *, topics: str = "") -> None:
        self.topics = topics
        self.close_code: int | None = None
        self._texts: dict[str, tuple[int, str]] = {}
        self._is_filled = asyncio.Event()
        self._is_ended = asyncio.Event()
        self._opens_at = 0.0

    def put(self, topic: str, text: str, version: int = 0) -> None:
        """Keep a text for the socket; a slow one that fell far behind is told to catch up."""
        if self.topics and ":" in topic and not topic.startswith((self.topics, "decision:")):
            return
        if len(self._texts) >= MAILBOX_TOPICS:
            self._texts = {"catch_up": (0, CATCH_UP)}
        kept = self._texts.get(topic)
        if kept is None or version >= kept[0]:
            self._texts[topic] = (version, text)
        self._is_filled.set()

    def end(self, code: int) -> None:
        """Have the socket closed after what is kept."""
        self.close_code = code
        self._is_filled.set()
        self._is_ended.set()

    async def take(self) -> list[str]:
        """Wait for texts, and for the window of the last delivery to end, and take all of them."""
        await self._is_filled.wait()
        loop = asyncio.get_running_loop()
        wait = self._opens_at - loop.time()
        if wait > 0 and not self._is_ended.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._is_ended.wait(), wait)
        if not all(topic.startswith(TRAILING_TOPICS) for topic in self._texts):
            self._opens_at = loop.time() + WINDOW_SECONDS
        self._is_filled.clear()
        texts, self._texts = [text for _, text in self._texts.values()], {}
        return texts


class Hub:
    """Fan hints out to the mailboxes of one event loop. All methods run in that loop."""

    def __init__(self) -> None:
        self._members: dict[str, set[Mailbox]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._lock = asyncio.Lock()
        self._layer: Any = None
        self._channel = ""
        self._sent = self._heard = 0
        self._has_gap = False

    @property
    def is_deaf(self) -> bool:
        """Whether the layer lost several pulses in a row."""
        return self._sent - self._heard >= PULSES_UNTIL_DEAF

    @property
    def groups(self) -> frozenset[str]:
        """The groups that the hub is subscribed to now."""
        return frozenset(self._members)

    async def join(self, mailbox: Mailbox, groups: Iterable[str]) -> None:
        """Subscribe a mailbox; when this returns, no later hint of the groups is missed.

        Errors: Deaf when the channel layer does not answer.
        """
        async with self._lock:
            try:
                await self._start()
                for group in groups:
                    if group not in self._members:
                        await self._layer.group_add(group, self._channel)
                    self._members.setdefault(group, set()).add(mailbox)
            except Exception as error:
                # Each layer has its own errors; whatever it is, this socket would hear nothing.
                raise Deaf(str(error)) from error
            if self.is_deaf:
                raise Deaf("the channel layer does not answer")

    async def leave(self, mailbox: Mailbox) -> None:
        """Unsubscribe a mailbox; the last one out stops the hub."""
        async with self._lock:
            for group, members in list(self._members.items()):
                members.discard(mailbox)
                if not members:
                    del self._members[group]
                    await self._discard(group)
            if not self._members:
                await self._stop()

    async def _discard(self, group: str) -> None:
        try:
            await self._layer.group_discard(group, self._channel)
        except Exception:
            logger.warning("a group could not be left", exc_info=True)

    async def _start(self) -> None:
        if self._tasks:
            return
        loop = asyncio.get_running_loop()
        self._layer = get_channel_layer()
        self._channel = await self._layer.new_channel()
        self._sent = self._heard = 0
        self._has_gap = False
        # An in-memory layer lives in this loop, so services must send through it.
        publisher.bind_loop(loop)
        self._tasks = [loop.create_task(self._receive()), loop.create_task(self._pulse())]

    async def _stop(self) -> None:
        publisher.unbind_loop()
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _receive(self) -> None:
        try:
            while True:
                message = await self._layer.receive(self._channel)
                if message["type"] == "pulse":
                    self._hear(message["number"])
                    continue
                for hint in message["hints"]:
                    self.publish(hint)
        finally:
            # Also at the loop's end, when nobody left: it must not be sent through any more.
            publisher.unbind_loop()

    def publish(self, hint: HintMessage) -> None:
        """Put one hint into its group's mailboxes."""
        project_id = hint["project"]
        group = INBOX_GROUP if project_id is None else project_group(project_id)
        members = self._members.get(group)
        if not members:
            return
        topic, version = hint["topic"], hint["version"]
        text = json.dumps({"topic": topic, "version": version})
        for mailbox in members:
            mailbox.put(topic, text, version)

    def _everyone(self) -> set[Mailbox]:
        return set().union(*self._members.values()) if self._members else set()

    # --- Is the layer alive? ------------------------------------------------------------------

    async def _pulse(self) -> None:
        """Send the hub a message through the layer; what does not come back is an outage."""
        while True:
            await asyncio.sleep(PULSE_SECONDS)
            self._sent += 1
            try:
                # Membership of an in-memory group ends after a day, so it is renewed.
                for group in self.groups:
                    await self._layer.group_add(group, self._channel)
                await self._layer.send(self._channel, {"type": "pulse", "number": self._sent})
            except Exception:
                self._has_gap = True
                logger.warning("the channel layer took no pulse", exc_info=True)
            if self.is_deaf:
                self._close_all()
            elif self._sent % PULSES_A_BEAT == 0:
                for mailbox in self._everyone():
                    mailbox.put(BEAT_TOPIC, BEAT)

    def _hear(self, number: int) -> None:
        gap = self._has_gap or number != self._heard + 1
        self._heard, self._has_gap = number, False
        if gap:
            for mailbox in self._everyone():
                mailbox.put("catch_up", CATCH_UP)

    def _close_all(self) -> None:
        """End the sockets: their pages then say how old they are, and poll."""
        logger.warning("the channel layer does not answer; sockets are closed")
        for mailbox in self._everyone():
            mailbox.end(TRY_AGAIN_LATER)


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def process_hub() -> Hub:
    """Return the hub of the running event loop; a server process has one loop, so one hub."""
    return _hubs.setdefault(asyncio.get_running_loop(), Hub())


def socket_groups(project_ids: Iterable[int]) -> tuple[str, ...]:
    """Name the groups of a socket: the inbox's and those of its projects."""
    return (INBOX_GROUP, *(project_group(pk) for pk in project_ids))
