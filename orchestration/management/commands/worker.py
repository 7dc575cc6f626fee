"""Run workers as a process of their own: `manage.py worker [--queues control,agents]`."""

from __future__ import annotations

import os
import signal
import sys
import threading
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.checks import Tags
from django.core.management.base import BaseCommand, CommandError

from config.collector import set_start_aside
from config.workers import QUEUES, WorkerGroup

GRACE_SECONDS = 8.0


class Command(BaseCommand):
    """Consume wake-ups from Redis and work until SIGTERM or Ctrl-C."""

    help = "Run a worker process beside `serve`. Needs REDIS_URL."
    requires_system_checks = (Tags.security,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the queues and the number of threads."""
        parser.add_argument("--queues", default=",".join(QUEUES), help="comma list")
        parser.add_argument("--concurrency", type=int, default=settings.COUNTERSIGN_CONCURRENCY)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Work. Errors: CommandError without Redis or for an unknown queue."""
        if not settings.REDIS_URL:
            raise CommandError("worker needs REDIS_URL; without it `serve` does the work itself")
        queues = [queue.strip() for queue in options["queues"].split(",") if queue.strip()]
        unknown = sorted(set(queues) - set(QUEUES))
        if unknown or not queues:
            raise CommandError(f"unknown queue {', '.join(unknown)!r}: use {', '.join(QUEUES)}")
        stopping = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopping.set())
        set_start_aside()
        group = WorkerGroup(queues=queues, concurrency=options["concurrency"])
        group.start()
        self.stdout.write(f"Worker {os.getpid()} takes {', '.join(queues)}")
        self.stdout.flush()
        stopping.wait()
        group.ask_to_stop()
        if not group.wait_until_stopped(GRACE_SECONDS):
            self.stdout.write("Stopped with steps still running; another worker takes them over.")
            sys.stdout.flush()
            sys.stderr.flush()
            # Their threads would keep the interpreter alive until the commands end by themselves.
            os._exit(0)
