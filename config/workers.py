"""Run Celery workers and the scheduler in threads of this process: embedded, `worker` and `beat`.

One worker a queue, so that long steps on `agents` never keep the sweep, the sealer or the canary on
`control` waiting for a thread.
"""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from celery import signals
from celery.beat import Scheduler, SchedulingError, Service
from celery.bootsteps import RUN
from celery.exceptions import CPendingDeprecationWarning, SecurityWarning
from celery.worker import state
from celery.worker.consumer import Consumer
from django.conf import settings
from django.db import connections

from config.celery import make_app
from config.heap import HeapTrim, limit_malloc_arenas
from config.memory_broker import wake_readers

logger = logging.getLogger(__name__)
# Celery warns root about pickled messages; ours are JSON only.
warnings.filterwarnings("ignore", category=SecurityWarning)

CONTROL_QUEUE = "control"
AGENTS_QUEUE = "agents"
QUEUES = (CONTROL_QUEUE, AGENTS_QUEUE)
CONTROL_THREADS = 4  # the sweep, the sealer, the canary and the deliveries side by side
RESTART_SECONDS = 1.0
SILENT_SECONDS = 8.0
RECONNECT_SECONDS = 2.0
START_SECONDS = 30.0
# The memory broker wakes its reader for whatever happens, Redis only for a message.
DRAIN_SECONDS = 0.05 if settings.REDIS_URL else 1.0
WARM = 0  # the exit code that Celery's shutdown flag carries


def prompt_loop(
    consumer: Any, connection: Any, messages: Any, blueprint: Any, _hub: Any, qos: Any, *_: Any
) -> None:
    """Consume like Celery's blocking loop, but look up more often than its 2 s.

    While the prefetch window is full Redis is not asked; only the next look notices the room.
    """
    messages.on_message = consumer.create_task_handler()
    messages.consume()
    consumer.on_ready()
    while blueprint.state == RUN and consumer.connection:
        state.maybe_shutdown()
        if qos.prev != qos.value:
            qos.update()
        consumer.perform_pending_operations()
        with contextlib.suppress(TimeoutError):
            connection.drain_events(timeout=DRAIN_SECONDS)


class PromptConsumer(Consumer):  # type: ignore[misc]  # Celery has no types
    """Celery's consumer with `prompt_loop`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.loop = prompt_loop

    def ensure_connected(self, conn: Any) -> Any:
        """Connect, trying again every RECONNECT_SECONDS at most until the worker stops.

        Celery's own steps grow to half a minute, in which a broker that is back goes unused.
        """
        first_seconds = RECONNECT_SECONDS / 4

        def note(error: Exception, interval: float) -> None:
            if interval <= first_seconds:
                logger.warning("broker not reachable, trying again", extra={"error": error})

        connected = conn.ensure_connection(
            note,
            interval_start=first_seconds,
            interval_step=first_seconds,
            interval_max=RECONNECT_SECONDS,
            callback=state.maybe_shutdown,
        )
        self.first_connection_attempt = False
        return connected


class QueueWorker(threading.Thread):
    """One Celery worker with its pool of threads; started again when it dies."""

    def __init__(self, queue: str, *, concurrency: int) -> None:
        super().__init__(name=f"worker-{queue}", daemon=True)
        self.queue = queue
        self.concurrency = concurrency
        self.is_ready = threading.Event()
        self.is_stopping = threading.Event()

    def run(self) -> None:
        """Work until asked to stop."""
        while not self.is_stopping.is_set():
            try:
                self._build().start()
            except Exception:
                logger.exception("worker could not start", extra={"queue": self.queue})
            if not self.is_stopping.is_set():
                logger.error("worker ended, starting another", extra={"queue": self.queue})
                self.is_stopping.wait(RESTART_SECONDS)
        # What the start of a worker asked the database was asked in this thread.
        connections.close_all()

    def _build(self) -> Any:
        # `app.Worker(pool="threads")` is the form that honours the pool; WorkController(pool_cls=)
        # does not. Its own app holds its own queue selection, also after a reconnect.
        worker = make_app().Worker(
            pool="threads",
            concurrency=self.concurrency,
            queues=[self.queue],
            hostname=f"{self.queue}-{os.getpid()}@{platform.node()}",
            quiet=True,
            use_eventloop=False,
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
            ready_callback=self._note_ready,
        )
        # Celery's logging set-up turned it on: it announces a default of Celery 6 at each lost
        # connection; ours never cancel running jobs for that.
        warnings.filterwarnings("ignore", category=CPendingDeprecationWarning)
        return worker

    def _note_ready(self, _consumer: Any) -> None:
        self.is_ready.set()


class WorkerGroup:
    """The workers of one process. Units: `concurrency` is threads for `agents`."""

    def __init__(self, *, queues: Sequence[str] = QUEUES, concurrency: int) -> None:
        threads = {CONTROL_QUEUE: CONTROL_THREADS, AGENTS_QUEUE: concurrency}
        self.workers = [QueueWorker(queue, concurrency=threads[queue]) for queue in queues]
        self.trim = HeapTrim()

    def start(self) -> None:
        """Start every worker. Its threads wait for the broker as long as they must."""
        state.should_stop = None
        limit_malloc_arenas()
        self.trim.start()
        for worker in self.workers:
            worker.start()

    def wait_until_ready(self, timeout_seconds: float = START_SECONDS) -> bool:
        """Wait until all consume. Return whether they do."""
        ends = time.monotonic() + timeout_seconds
        return all(worker.is_ready.wait(max(0, ends - time.monotonic())) for worker in self.workers)

    def ask_to_stop(self) -> None:
        """Take no more messages and tell running jobs through Celery's `worker_shutting_down`."""
        for worker in self.workers:
            worker.is_stopping.set()
        self.trim.ask_to_stop()
        state.should_stop = WARM
        wake_readers()
        signals.worker_shutting_down.send(sender=self, sig="SIGTERM", how="Warm", exitcode=WARM)

    def wait_until_stopped(self, grace_seconds: float) -> bool:
        """Wait for running jobs to end. Return whether all did."""
        ends = time.monotonic() + grace_seconds
        for worker in self.workers:
            worker.join(max(0, ends - time.monotonic()))
        return not any(worker.is_alive() for worker in self.workers)


class ScheduleWatch(threading.Thread):
    """Run the schedule's jobs here when its messages stay away: embedded, nobody else would.

    The last resort for whatever stops the scheduler, the control worker or the broker between them.
    """

    def __init__(self, *, silent_seconds: float = SILENT_SECONDS) -> None:
        super().__init__(name="schedule-watch", daemon=True)
        self.silent_seconds = silent_seconds
        self.is_stopping = threading.Event()

    def run(self) -> None:
        """Look now and then until asked to stop."""
        jobs = import_module("orchestration.jobs")
        while not self.is_stopping.wait(self.silent_seconds / 4):
            if jobs.last_heard.seconds_ago < self.silent_seconds:
                continue
            logger.warning("the schedule is silent; its jobs run in its watch")
            for job in (jobs.sweep_job, jobs.seal_job, jobs.canary_job, jobs.notify_job):
                self._run(job)
            connections.close_all()

    def _run(self, job: Callable[[], None]) -> None:
        try:
            job()
        except Exception:
            # Whatever a job meets now, the next look tries it again.
            logger.exception("a job of the schedule failed in its watch")

    def ask_to_stop(self) -> None:
        """Look no more."""
        self.is_stopping.set()


class WakeUpScheduler(Scheduler):  # type: ignore[misc]  # Celery has no types
    """Celery's scheduler, which says once that the broker is gone instead of at every entry."""

    is_broker_gone = False

    def setup_schedule(self) -> None:
        """Take the schedule; every entry is due at once, since the last process may have died."""
        super().setup_schedule()
        for entry in self.schedule.values():
            entry.last_run_at -= entry.schedule.run_every

    def adjust(self, n: float, drift: float = 0.0) -> float:
        """Sleep until an entry is due. Celery sleeps 10 ms less and spins through the rest."""
        return n + drift

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        """Send one wake-up; a failed one is not repeated, the next one is due soon."""
        try:
            self.apply_async(entry, producer=producer, advance=False)
        except SchedulingError as error:
            if not self.is_broker_gone:
                logger.warning("broker takes no wake-ups", extra={"error": error})
            self.is_broker_gone = True
        else:
            self.is_broker_gone = False


class BeatThread(threading.Thread):
    """The scheduler. Its entries are seconds apart, so it keeps no file."""

    def __init__(self) -> None:
        super().__init__(name="beat", daemon=True)
        self.service = Service(make_app(), scheduler_cls=WakeUpScheduler, remote_control=False)

    def run(self) -> None:
        """Send each entry when it is due, until asked to stop."""
        self.service.start()

    def ask_to_stop(self) -> None:
        """Send nothing more."""
        self.service.stop()
