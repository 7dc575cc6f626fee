"""The engine a followed playbook runs on: ours, with or without its pages, or a server's."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from django.conf import settings
from django.db import connections

from config.datadir import holder_of
from config.embedded import AddressTaken, Embedded, address_of, listen
from config.workers import BeatThread, WorkerGroup
from orchestration.management.following import Follower, Standing
from orchestration.services.audit import seal_events

POLL_SECONDS = 0.2
SURE_AFTER_POLLS = 5
"""Between two transactions of a run nothing may be live for a moment; that is no waiting."""
LAST_POLLS = 10
GRACE_SECONDS = 4.0
ENDS = frozenset({Standing.DONE, Standing.FAILED})


class ServerEnded(Exception):
    """The server that did the work is gone."""


@dataclass(slots=True)
class Watch:
    """Poll a follower until its root has ended, or waits where nobody is waited for."""

    follower: Follower
    may_wait: bool
    stop: threading.Event = field(default_factory=threading.Event)
    standing: Standing = Standing.RUNNING

    def run(self, check: Callable[[], None] = lambda: None) -> Standing:
        """Follow. `check` is called between two looks and may raise to give up."""
        waited = 0
        while not self.stop.is_set():
            self.standing = self.follower.poll()
            waited = waited + 1 if self.standing is Standing.WAITING else 0
            if self.standing in ENDS or (waited >= SURE_AFTER_POLLS and not self.may_wait):
                break
            check()
            self.stop.wait(POLL_SECONDS)
        self._tell_the_rest()
        return self.standing

    def _tell_the_rest(self) -> None:
        """Show the last moves too: their seals come a moment after the rows."""
        for _ in range(LAST_POLLS):
            if self.stop.is_set() or self.follower.is_all_told():
                break
            self.stop.wait(POLL_SECONDS)
            self.follower.poll()


def follow_server(watch: Watch) -> Standing:
    """Follow work that a server does. Errors: ServerEnded when it is gone before the work is."""
    return watch.run(_require_server)


def _require_server() -> None:
    if not settings.REDIS_URL and holder_of(settings.COUNTERSIGN_DATA_DIR) is None:
        raise ServerEnded


def follow_with_workers(watch: Watch) -> tuple[Standing, bool]:
    """Work here, without pages. Shape: how the root stands, whether every job ended by itself."""
    workers, beat = WorkerGroup(concurrency=settings.COUNTERSIGN_CONCURRENCY), BeatThread()
    workers.start()
    beat.start()
    try:
        watch.run()
    except KeyboardInterrupt:
        watch.standing = Standing.RUNNING
    finally:
        beat.ask_to_stop()
        workers.ask_to_stop()
        is_clean = workers.wait_until_stopped(GRACE_SECONDS)
        seal_events()
    return watch.standing, is_clean


class PagedEngine:
    """Our own engine with its pages, so that Sir can decide while the playbook waits for him."""

    def __init__(self) -> None:
        try:
            self._listener = listen(settings.HOST, settings.PORT)
        except AddressTaken:
            self._listener = listen(settings.HOST, 0)
        self.url = address_of(self._listener)

    def follow(self, watch: Watch) -> tuple[Standing, bool]:
        """Serve and work till the watch ends or a signal comes. Shape: as `follow_with_workers`."""
        broken: list[BaseException] = []

        def look() -> None:
            try:
                watch.run()
            except BaseException as error:  # noqa: BLE001  # raised again in the main thread
                broken.append(error)
            finally:
                connections.close_all()
                engine.server.should_exit = True

        thread = threading.Thread(target=look, name="follow", daemon=True)
        engine = Embedded(
            self._listener,
            concurrency=settings.COUNTERSIGN_CONCURRENCY,
            is_web_only=False,
            after_startup=thread.start,
        )
        with self._listener:
            is_clean = engine.run()
        watch.stop.set()
        if thread.ident is not None:
            thread.join(GRACE_SECONDS)
        seal_events()
        if broken:
            raise broken[0]
        return watch.standing, is_clean
