"""Our own workers, as a simulation drives them: in this process, or processes that are killed.

Source: DESIGN section 3 ("Kill any process at any moment").
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

from django.conf import settings
from django.utils import timezone

from orchestration.models import Assignment, Project
from orchestration.seats.registry import worker_backends
from orchestration.services.lease_sweeps import reclaim_expired_leases
from orchestration.services.sweeping import sweep
from orchestration.services.work import Slot
from orchestration.services.working import claim_one, work_until_idle
from orchestration.states import ASSIGNMENT_LIVE, AssignmentStatus

SLICE_SECONDS = 60.0
WAIT_SECONDS = 60.0
LOOK_SECONDS = 0.01


class WorkersStuck(Exception):
    """The worker processes did not finish what is queued for them."""


class Crew(Protocol):
    """Whoever does what is queued for the system's own backends."""

    deaths: int

    def drive(self) -> None:
        """Return when nothing is left that they could do."""
        ...

    def die_at_work(self, project: Project) -> None:
        """Let one die over the work that is queued now, and repair what it left."""
        ...

    def close(self) -> None:
        """End them."""
        ...


class OwnThread:
    """One worker in this very thread."""

    def __init__(self, project: Project) -> None:
        self.project, self.deaths = project, 0

    def drive(self) -> None:
        """Work until nothing is left."""
        slot = Slot("simulation:0:0")
        while work_until_idle(slot, slice_seconds=SLICE_SECONDS, project_id=self.project.pk):
            pass

    def die_at_work(self, project: Project) -> None:
        """Take what is queued and never answer; the lease runs out."""
        held = claim_one(Slot(f"simulation:dead:{self.deaths}"), project_id=project.pk)
        if held is None:
            return
        self.deaths += 1
        Assignment.objects.filter(pk=held.pk).update(lease_expires_at=_before_now())
        reclaim_expired_leases()

    def close(self) -> None:
        """Nothing to end."""


class Processes:
    """Worker processes of the scaled-out mode; one dies by SIGKILL and another takes its place."""

    def __init__(self, project: Project, *, count: int = 2) -> None:
        self.project, self.deaths = project, 0
        self._running = [self._start() for _ in range(count)]

    def drive(self) -> None:
        """Wait until nothing is queued for them or held by them, also after a sweep.

        Errors: WorkersStuck.
        """
        self._wait()
        sweep()
        self._wait()

    def _wait(self) -> None:
        began = time.monotonic()
        looks = 0
        while self._live().exists():
            looks += 1
            if looks % 500 == 0:
                sweep()
            if time.monotonic() - began > WAIT_SECONDS:
                raise WorkersStuck(f"still queued after {WAIT_SECONDS:.0f} s: {self._live()[:5]}")
            time.sleep(LOOK_SECONDS)

    def _live(self) -> Any:
        return Assignment.objects.filter(
            project=self.project,
            backend__in=worker_backends(),
            status__in=[state.value for state in ASSIGNMENT_LIVE],
        )

    def die_at_work(self, project: Project) -> None:
        """Kill one with what it holds; its leases run out, and the work is queued again."""
        victim = self._running.pop(0)
        victim.kill()
        victim.wait()
        self.deaths += 1
        prefix = f"{os.uname().nodename}:{victim.pid}:"
        rows = Assignment.objects.filter(
            project=project, status=AssignmentStatus.LEASED.value, worker__startswith=prefix
        )
        rows.update(lease_expires_at=_before_now())
        self._running.append(self._start())
        sweep()

    def close(self) -> None:
        """End them by SIGTERM."""
        for one in self._running:
            one.send_signal(signal.SIGTERM)
        for one in self._running:
            one.wait(timeout=30)

    @staticmethod
    def _start() -> subprocess.Popen[bytes]:
        command = [sys.executable, str(_manage()), "worker", "--concurrency", "2"]
        return subprocess.Popen(  # noqa: S603  # our own program, with our own arguments
            command, env=_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )


def _manage() -> Path:
    return Path(settings.BASE_DIR) / "manage.py"


def _environment() -> Mapping[str, str]:
    return {**os.environ, "DJANGO_SETTINGS_MODULE": os.environ["DJANGO_SETTINGS_MODULE"]}


def _before_now() -> Any:
    return timezone.now() - timedelta(seconds=1)
