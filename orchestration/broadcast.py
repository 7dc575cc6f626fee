"""The only writer to the channel layer. A message is a hint that a topic changed, never a fact.

Services queue hints after commit; one thread a process drains them, so a commit never waits for
the layer. `orchestration.realtime` of the web process fans a hint out to its sockets in memory.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Coroutine, Iterable
from typing import Any

from channels.layers import get_channel_layer

from orchestration.contracts.hints import Hint

logger = logging.getLogger(__name__)

INBOX_GROUP = "countersign.inbox"
AGENTS_GROUP = "countersign.agents"
"""Rung when work for agents may be there: long polls wait for it."""
AGENTS_TOPIC = "agents"
_BATCH_LIMIT = 500
BATCH_SECONDS = 0.01


def project_group(project_id: int) -> str:
    """Name the group of one project's hints."""
    return f"countersign.project.{project_id}"


class Publisher:
    """Send queued hints to the channel layer from one thread, in batches.

    A web process binds its event loop (an in-memory layer lives in that loop); a worker process
    has none and gets a loop of its own. A full or dead layer drops hints: pages poll as well.
    """

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Hint] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def bind_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Send through `loop` from now on: the loop the sockets of this process live in."""
        self._loop = loop

    def unbind_loop(self) -> None:
        """Forget the bound loop, before it closes."""
        self._loop = None

    def put(self, hints: Iterable[Hint]) -> None:
        """Queue hints; start the sending thread at the first."""
        for hint in hints:
            self._queue.put(hint)
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._drain, name="hints", daemon=True)
                    self._thread.start()

    def _drain(self) -> None:
        own_loop = asyncio.new_event_loop()
        while True:
            batch = [self._queue.get()]
            while len(batch) < _BATCH_LIMIT and not self._queue.empty():
                batch.append(self._queue.get())
            try:
                self._run(send_hints(batch), own_loop)
            except Exception:
                # A hint is never the only copy of a fact; a broken layer must not end the thread.
                logger.warning("hints lost: the channel layer did not take them", exc_info=True)
            # A step announces itself several times; what comes meanwhile goes out as one message.
            time.sleep(BATCH_SECONDS)

    def _run(self, sending: Coroutine[Any, Any, None], own_loop: asyncio.AbstractEventLoop) -> None:
        bound = self._loop
        if bound is not None and bound.is_running():
            asyncio.run_coroutine_threadsafe(sending, bound).result(timeout=5)
        else:
            own_loop.run_until_complete(sending)


async def send_hints(hints: Iterable[Hint]) -> None:
    """Send hints to their groups, one message a group, the newest hint of a topic only."""
    layer = get_channel_layer()
    if layer is None:
        return
    groups: dict[str, dict[str, Hint]] = {}
    for hint in hints:
        groups.setdefault(_group_of(hint), {})[hint.topic] = hint
    for group, topics in groups.items():
        message = {"type": "hints", "hints": [hint.as_message() for hint in topics.values()]}
        await layer.group_send(group, message)


def _group_of(hint: Hint) -> str:
    if hint.topic == AGENTS_TOPIC:
        return AGENTS_GROUP
    return INBOX_GROUP if hint.project_id is None else project_group(hint.project_id)


publisher = Publisher()
