"""Run the scheduler as a process of its own: `manage.py beat`. Exactly one an installation."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from config.workers import BeatThread

STOP_SECONDS = 5.0


class Command(BaseCommand):
    """Send the periodic wake-ups until SIGTERM or Ctrl-C."""

    help = "Run the scheduler beside `serve` and `worker`. Needs REDIS_URL."
    requires_system_checks = ()

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Schedule. Errors: CommandError without Redis."""
        if not settings.REDIS_URL:
            raise CommandError("beat needs REDIS_URL; without it `serve` schedules itself")
        stopping = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopping.set())
        beat = BeatThread()
        beat.start()
        self.stdout.write(f"Beat {os.getpid()} schedules")
        self.stdout.flush()
        stopping.wait()
        beat.ask_to_stop()
        beat.join(STOP_SECONDS)
