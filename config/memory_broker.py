"""Kombu's in-memory broker, woken by a message instead of polling for it.

The stock transport sleeps between looks: a long sleep delays each wake-up, a short one burns the
processor of an idle server. Here a put or an acknowledgement sets an event the reader waits for.

The stock transport also declares without a lock what all its connections share. A thread that finds
no exchange, and stores one after another thread has declared and bound it, wipes the binding out:
from then on every message to that queue is dropped, silently, until the process ends.
"""

from __future__ import annotations

import threading
import weakref
from queue import Empty
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, memory

ALIAS = "embedded"
URL = f"{ALIAS}://localhost/"
DEFAULT_WAIT_SECONDS = 1.0

_transports: weakref.WeakSet[Transport] = weakref.WeakSet()
_transports_lock = threading.Lock()
_topology_lock = threading.RLock()
"""Held while exchanges, bindings and queues change: all connections of the process share them."""


def wake_readers() -> None:
    """Let every waiting reader look again: something was put, or the process stops."""
    with _transports_lock:
        waiting = list(_transports)
    for transport in waiting:
        transport.arrived.set()


class Channel(memory.Channel):  # type: ignore[misc]  # kombu has no types
    """A channel that tells the readers what changed, and declares one at a time."""

    def exchange_declare(self, *arguments: Any, **options: Any) -> None:
        """Declare an exchange unless it stands; what is bound to it stays bound."""
        with _topology_lock:
            super().exchange_declare(*arguments, **options)

    def exchange_delete(self, *arguments: Any, **options: Any) -> None:
        """Delete an exchange with its bindings."""
        with _topology_lock:
            super().exchange_delete(*arguments, **options)

    def queue_bind(self, *arguments: Any, **options: Any) -> None:
        """Bind a queue to an exchange, once."""
        with _topology_lock:
            super().queue_bind(*arguments, **options)

    def queue_unbind(self, *arguments: Any, **options: Any) -> None:
        """Take a binding back."""
        with _topology_lock:
            super().queue_unbind(*arguments, **options)

    def queue_delete(self, *arguments: Any, **options: Any) -> None:
        """Delete a queue with its bindings."""
        with _topology_lock:
            super().queue_delete(*arguments, **options)

    def _new_queue(self, queue: str, **options: Any) -> None:
        with _topology_lock:
            super()._new_queue(queue, **options)

    def _queue_for(self, queue: str) -> Any:
        with _topology_lock:
            return super()._queue_for(queue)

    def _put(self, queue: str, message: Any, **options: Any) -> None:
        super()._put(queue, message, **options)
        wake_readers()

    def basic_ack(self, delivery_tag: str, multiple: bool = False) -> None:  # noqa: FBT001, FBT002  # kombu's signature
        """Acknowledge; the prefetch window has room again."""
        super().basic_ack(delivery_tag, multiple=multiple)
        self.connection.arrived.set()

    def basic_reject(self, delivery_tag: str, requeue: bool = False) -> None:  # noqa: FBT001, FBT002  # kombu's signature
        """Reject; the prefetch window has room again."""
        super().basic_reject(delivery_tag, requeue=requeue)
        self.connection.arrived.set()


class Transport(memory.Transport):  # type: ignore[misc]  # kombu has no types
    """The transport of one connection, with the event its reader waits for."""

    Channel = Channel

    def __init__(self, client: Any, **options: Any) -> None:
        super().__init__(client, **options)
        self.arrived = threading.Event()
        with _transports_lock:
            _transports.add(self)

    def drain_events(self, connection: Any, timeout: float | None = None) -> None:
        """Deliver one message. Errors: TimeoutError when none came, or woken for another cause.

        The reader then looks up: at the stop flag, and at what its acknowledgements made possible.
        """
        # Cleared before the look: a message that arrives after it sets the event again.
        self.arrived.clear()
        try:
            self.cycle.get(self._deliver, timeout=timeout)
        except Empty:
            self.arrived.wait(DEFAULT_WAIT_SECONDS if timeout is None else timeout)
        else:
            return
        try:
            self.cycle.get(self._deliver, timeout=timeout)
        except Empty:
            raise TimeoutError from None


TRANSPORT_ALIASES[ALIAS] = f"{__name__}:Transport"
