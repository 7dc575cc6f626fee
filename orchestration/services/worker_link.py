"""How a running backend reports from a worker: live log, heartbeat, process group, stop.

Source: DESIGN section 3 ("Leases") and 8 ("output streamed to the log").
"""

from __future__ import annotations

import threading
import time

from django.utils import timezone

from orchestration.errors import LeaseLost
from orchestration.models import Assignment, LogChunk
from orchestration.services.leases import WORKER_LEASE_SECONDS, extend_lease
from orchestration.services.lookups import lock_assignment
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.work import SYSTEM, unit_of_work
from orchestration.states import AssignmentStatus

FLUSH_SECONDS = 0.3
FLUSH_CHARACTERS = 8_000
HEARTBEAT_SECONDS = WORKER_LEASE_SECONDS / 3
STOP_CHECK_SECONDS = 1.0

stopping = threading.Event()
"""Set when this process shuts down: running work stops and goes back in the queue."""


class WorkerLink:
    """The link of one leased assignment to its rows. Used from one thread."""

    def __init__(self, held: Assignment) -> None:
        self._held = held
        self._buffer: list[str] = []
        self._size = 0
        self._flushed_at = time.monotonic()
        self._beat_at = time.monotonic()
        self._checked_at = time.monotonic()
        self.stop_reason: str | None = None

    def log(self, text: str) -> None:
        """Append to the live log; written in pieces, at most three a second."""
        self._buffer.append(text.replace("\x00", "\ufffd"))
        self._size += len(text)
        due = time.monotonic() - self._flushed_at >= FLUSH_SECONDS
        if due or self._size >= FLUSH_CHARACTERS:
            self.flush()

    @retry_on_deadlock
    def flush(self) -> None:
        """Write what was logged and not yet written."""
        if not self._buffer:
            return
        held = self._held
        with unit_of_work(SYSTEM) as work:
            LogChunk.objects.create(
                project_id=held.project_id,
                task_id=held.task_id,
                assignment=held,
                source=f"{held.seat} {held.backend}",
                text="".join(self._buffer),
            )
            work.hint(f"log:{held.project_id}", held.project_id)
        self._buffer, self._size = [], 0
        self._flushed_at = time.monotonic()

    @retry_on_deadlock
    def process_started(self, process_group: str) -> None:
        """Record the process group before the command can do anything."""
        held = self._held
        with unit_of_work(SYSTEM):
            mine = Assignment.objects.filter(
                pk=held.pk, token=held.token, status=AssignmentStatus.LEASED.value
            )
            if not mine.update(process_group=process_group, has_progress=True):
                raise LeaseLost("the lease ended before the command started")
        held.process_group = process_group

    def should_stop(self) -> str | None:
        """Say why the work must stop: the process ends, its time is up, or the lease is gone."""
        now = time.monotonic()
        if self._buffer and now - self._flushed_at >= FLUSH_SECONDS:
            self.flush()
        if self.stop_reason is None:
            self.stop_reason = self._find_reason(now)
        return self.stop_reason

    def _find_reason(self, now: float) -> str | None:
        if stopping.is_set():
            return "the worker shuts down"
        if now - self._checked_at < STOP_CHECK_SECONDS:
            return None
        self._checked_at = now
        held = self._held
        if held.deadline is not None and timezone.now() >= held.deadline:
            return "timeout"
        if now - self._beat_at >= HEARTBEAT_SECONDS:
            self._beat_at = now
            return None if self._beat() else "lease lost"
        mine = Assignment.objects.filter(
            pk=held.pk, token=held.token, status=AssignmentStatus.LEASED.value
        )
        return None if mine.exists() else "lease lost"

    @retry_on_deadlock
    def _beat(self) -> bool:
        with unit_of_work(SYSTEM) as work:
            row = lock_assignment(self._held.pk)
            if row.status != AssignmentStatus.LEASED or row.token != self._held.token:
                return False
            extend_lease(work, row, has_progress=True)
        return True

    def close(self) -> None:
        """Write the rest of the log."""
        self.flush()
