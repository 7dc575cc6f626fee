"""The only place that names background jobs. A message is a wake-up; the rows carry the work."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from celery import current_app
from django.conf import settings
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)

WORK_JOB = "orchestration.jobs.work_job"
SWEEP_JOB = "orchestration.jobs.sweep_job"
SEAL_JOB = "orchestration.jobs.seal_job"
CANARY_JOB = "orchestration.jobs.canary_job"
NOTIFY_JOB = "orchestration.jobs.notify_job"
INTEGRITY_JOB = "orchestration.jobs.integrity_job"
JOB_NAMES = (WORK_JOB, SWEEP_JOB, SEAL_JOB, CANARY_JOB, NOTIFY_JOB, INTEGRITY_JOB)
AGENTS_QUEUE = "agents"
CONTROL_QUEUE = "control"
WAKE_EXPIRES_SECONDS = 60
TURN_EXPIRES_SECONDS = 600
WAKE_SPAN_SECONDS = 0.1
SILENT_SECONDS = 1.0
BROKER_SECONDS = 2


class Slots:
    """How many wake-ups are worth sending: to idle slots only, since busy ones pull on their own.

    Embedded, this process knows its slots: those at work, and the wake-ups on their way. Scaled
    out it cannot know, so a burst is cut to so many messages in a span. What is not sent here is
    found by the slots that work, and at the latest by the sweeper.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._busy = 0
        self._on_their_way = 0
        self._left = 0
        self._span_ends = 0.0
        self._silent_until = 0.0

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Count one slot of this process as busy while it holds work.

        A slot that looks for work counts as idle: whatever becomes ready meanwhile wakes it again.
        """
        with self._lock:
            self._busy += 1
        try:
            yield
        finally:
            with self._lock:
                self._busy -= 1

    def hear(self) -> None:
        """Note that a wake-up arrived."""
        with self._lock:
            self._on_their_way = max(self._on_their_way - 1, 0)

    def forget(self) -> None:
        """Start counting afresh: whatever was on its way may be lost."""
        with self._lock:
            self._on_their_way = 0
            self._silent_until = 0.0

    def be_silent(self) -> None:
        """Send nothing for a moment: not every commit may wait for a broker that is down."""
        with self._lock:
            self._silent_until = time.monotonic() + SILENT_SECONDS

    def may_speak(self) -> bool:
        """Whether the broker was up when it was last asked."""
        with self._lock:
            return time.monotonic() >= self._silent_until

    def worth_waking(self, count: int) -> int:
        """Return how many of `count` wake-ups to send, and count them as sent."""
        total = settings.COUNTERSIGN_CONCURRENCY
        now = time.monotonic()
        with self._lock:
            if now < self._silent_until:
                return 0
            if settings.REDIS_URL:
                if now >= self._span_ends:
                    self._left, self._span_ends = total, now + WAKE_SPAN_SECONDS
                sent = min(count, self._left)
                self._left -= sent
            else:
                sent = max(min(count, total - self._busy - self._on_their_way), 0)
                self._on_their_way += sent
        return sent


slots = Slots()


def wake_workers(count: int) -> bool:
    """Wake up to `count` idle executor slots. Return whether the broker took the messages.

    A broker that is down loses nothing: the sweeper wakes again as long as rows are waiting.
    """
    try:
        for _ in range(slots.worth_waking(count)):
            current_app.send_task(
                WORK_JOB,
                queue=AGENTS_QUEUE,
                expires=WAKE_EXPIRES_SECONDS,
                retry=False,
                ignore_result=True,
            )
    except (OperationalError, OSError):
        logger.warning("broker did not take a wake-up; the sweeper will repeat it")
        slots.be_silent()
        return False
    return True


def wake_notifier() -> bool:
    """Wake whoever delivers notices. Return whether the broker took the message.

    Nothing is lost without it: the schedule looks for what is owed every few seconds.
    """
    return _wake_control(NOTIFY_JOB, expires=WAKE_EXPIRES_SECONDS)


def check_further(after: int) -> bool:
    """Let the check of projects go on beyond an id, behind what waits in the queue meanwhile.

    Return whether the broker took the message; without it the next turn begins anew.
    """
    return _wake_control(INTEGRITY_JOB, after, expires=TURN_EXPIRES_SECONDS)


def _wake_control(job: str, *arguments: int, expires: int) -> bool:
    if not slots.may_speak():
        return False
    try:
        current_app.send_task(
            job,
            args=arguments,
            queue=CONTROL_QUEUE,
            expires=expires,
            retry=False,
            ignore_result=True,
        )
    except (OperationalError, OSError):
        logger.warning("broker did not take a wake-up; the schedule will repeat it")
        slots.be_silent()
        return False
    return True


def broker_answers(url: str | None = None) -> bool:
    """Whether the broker takes a connection. Units: waits at most BROKER_SECONDS."""
    try:
        with current_app.connection_for_write(url, connect_timeout=BROKER_SECONDS) as connection:
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=BROKER_SECONDS)
    except (OperationalError, OSError):
        return False
    return True
