"""Serve from one process: the ASGI server in the main thread, workers and scheduler beside it.

With REDIS_URL the workers and the scheduler are processes of their own; this is then the web part.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator
from types import FrameType

import uvicorn
import uvloop
from django.db import connections
from django.urls import resolve

from config.collector import set_start_aside
from config.workers import BeatThread, ScheduleWatch, WorkerGroup

logger = logging.getLogger(__name__)

GRACEFUL_HTTP_SECONDS = 2
GRACE_SECONDS = 4.0
SOCKET_MESSAGE_BYTES = 65_536  # sockets take hints out; what comes in is small
BACKLOG = 512


class AddressTaken(Exception):
    """The address cannot be listened on."""


class WebServer(uvicorn.Server):
    """Uvicorn without its own signal handling: `Embedded` stops the whole process in order."""

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        after_startup: Callable[[], None],
        before_shutdown: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self.after_startup = after_startup
        self.before_shutdown = before_shutdown

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take requests, then say so."""
        await super().startup(sockets=sockets)
        self.after_startup()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop the workers' intake first, then let the requests end."""
        self.before_shutdown()
        await super().shutdown(sockets=sockets)


def listen(host: str, port: int) -> socket.socket:
    """Bind the address before anything else starts. Errors: AddressTaken with the reason."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns Nagle's delay off (40 ms an answer) only where the protocol is named.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host.strip("[]"), port))
    except OSError as error:
        listener.close()
        raise AddressTaken(f"cannot listen on {host}:{port}: {error.strerror}") from None
    listener.listen(BACKLOG)
    listener.set_inheritable(False)
    return listener


def address_of(listener: socket.socket) -> str:
    """Return the address to open in a browser."""
    host, port = listener.getsockname()[:2]
    if host in {"0.0.0.0", "::"}:  # noqa: S104  # compared, not bound
        host = "localhost"
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


class Embedded:
    """One server process. Shape: `workers` and `beat` are None when other processes do that."""

    def __init__(
        self,
        listener: socket.socket,
        *,
        concurrency: int,
        is_web_only: bool,
        after_startup: Callable[[], None],
    ) -> None:
        self.listener = listener
        self.workers = None if is_web_only else WorkerGroup(concurrency=concurrency)
        self.beat = None if is_web_only else BeatThread()
        self.watch = ScheduleWatch()
        self.server = WebServer(
            uvicorn.Config(
                "config.asgi:application",
                loop="uvloop",
                http="httptools",
                ws="websockets-sansio",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                ws_max_size=SOCKET_MESSAGE_BYTES,
                timeout_graceful_shutdown=GRACEFUL_HTTP_SECONDS,
            ),
            after_startup=after_startup,
            before_shutdown=self._ask_workers,
        )

    def run(self) -> bool:
        """Serve until SIGINT or SIGTERM. Return whether every running job ended by itself."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)
        # A fault in the application ends the start here, before anything works beside it.
        self.server.config.load()
        # Imports the views, which would come with the first request otherwise.
        resolve("/")
        set_start_aside()
        if self.workers and self.beat:
            self.workers.start()
            self.beat.start()
            self.watch.start()
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self.server.serve(sockets=[self.listener]))
        finally:
            is_clean = self._stop_workers()
            connections.close_all()
        return is_clean

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self.server.should_exit:
            # The second Ctrl-C: leave at once; the rows hold everything.
            os._exit(128 + number)
        self.server.should_exit = True

    def _ask_workers(self) -> None:
        if self.workers and self.beat:
            self.watch.ask_to_stop()
            self.beat.ask_to_stop()
            self.workers.ask_to_stop()

    def _stop_workers(self) -> bool:
        if self.workers is None:
            return True
        self._ask_workers()
        return self.workers.wait_until_stopped(GRACE_SECONDS)
