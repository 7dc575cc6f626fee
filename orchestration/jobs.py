"""Celery entry points: each calls one service and may run twice, late or never."""

from __future__ import annotations

import os
import socket
import threading
import time
from functools import lru_cache
from uuid import uuid4

from celery import shared_task, signals
from django.conf import settings

from orchestration.enqueue import check_further, slots
from orchestration.policy import DEFAULT_POLICY
from orchestration.rules.prefilter import prefilter
from orchestration.rules.redlines import red_lines_in
from orchestration.services.audit import seal_events
from orchestration.services.deliveries import deliver_notices
from orchestration.services.health import answer_canary
from orchestration.services.integrity import check_every_project
from orchestration.services.lease_sweeps import reclaim_from_dead
from orchestration.services.sweeping import sweep
from orchestration.services.work import Slot
from orchestration.services.worker_link import stopping
from orchestration.services.working import work_until_idle

WORK_SLICE_SECONDS = 20.0


class LastHeard:
    """When this process last ran a job of the schedule. Units: monotonic seconds."""

    def __init__(self) -> None:
        self.at = time.monotonic()

    def note(self) -> None:
        """Note that one runs now."""
        self.at = time.monotonic()

    @property
    def seconds_ago(self) -> float:
        """How long the schedule has been silent here."""
        return time.monotonic() - self.at


last_heard = LastHeard()


@signals.worker_shutting_down.connect
def stop_running_work(**_: object) -> None:
    """Let running commands stop when this process shuts down; they go back in the queue."""
    stopping.set()


@signals.worker_init.connect
def allow_running_work(**_: object) -> None:
    """Take work again: a worker of this process starts.

    Embedded, nothing else works on this data directory: what another process name still holds was
    held by a process that is gone, so it goes back in the queue at once.
    """
    stopping.clear()
    # Words are compiled at first use; the first message should not wait for that.
    prefilter("", DEFAULT_POLICY)
    red_lines_in([""], DEFAULT_POLICY)
    if not settings.REDIS_URL:
        reclaim_from_dead(f"{socket.gethostname()}:", alive=process_name(os.getpid()))


@lru_cache(maxsize=1)
def process_name(pid: int) -> str:
    """Name this process among all workers. Shape: `host:pid:random`; a fork gets its own."""
    return f"{socket.gethostname()}:{pid}:{uuid4().hex[:8]}"


def current_slot() -> Slot:
    """The slot of the calling thread."""
    return Slot(f"{process_name(os.getpid())}:{threading.get_ident()}")


@shared_task(name="orchestration.jobs.work_job", acks_late=True, ignore_result=True)
def work_job() -> None:
    """Claim ready assignments and keep going until none is left or the slice ends."""
    slots.hear()
    work_until_idle(current_slot(), slice_seconds=WORK_SLICE_SECONDS)


@shared_task(name="orchestration.jobs.sweep_job", ignore_result=True)
def sweep_job() -> None:
    """Repair what a lost message or a dead process left behind."""
    sweep()


@shared_task(name="orchestration.jobs.notify_job", ignore_result=True)
def notify_job() -> None:
    """Remind, and deliver what people are owed to be told."""
    deliver_notices()


@shared_task(name="orchestration.jobs.seal_job", ignore_result=True)
def seal_job() -> None:
    """Seal the audit events committed since last time."""
    last_heard.note()
    seal_events()


@shared_task(name="orchestration.jobs.canary_job", ignore_result=True)
def canary_job() -> None:
    """Show that a worker hears: the scheduler sends this, the worker answers in a row."""
    answer_canary()


@shared_task(name="orchestration.jobs.integrity_job", ignore_result=True)
def integrity_job(after: int = 0) -> None:
    """Check every project whole; what the slice does not reach is checked by the next message."""
    last = check_every_project(after=after)
    if last is not None:
        check_further(last)
