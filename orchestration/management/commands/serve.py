"""Serve: `manage.py serve` is the whole system in one process, or its web part with Redis."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from contextlib import ExitStack
from functools import partial
from typing import Any

from django.conf import settings
from django.core.checks import Tags
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from config.datadir import DataDirHeld, DataDirLock
from config.embedded import AddressTaken, Embedded, address_of, listen
from config.prepare import collect_static_files, has_pending_migrations, prepare_database


class Command(BaseCommand):
    """Prepare the installation, then serve until Ctrl-C or SIGTERM."""

    help = "Run the web server and, unless REDIS_URL is set, the workers and the scheduler with it."
    requires_system_checks = (Tags.security,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the address and whether to prepare."""
        parser.add_argument("--host", default=settings.HOST)
        parser.add_argument("--port", type=int, default=settings.PORT, help="0 takes a free one")
        parser.add_argument("--concurrency", type=int, default=settings.COUNTERSIGN_CONCURRENCY)
        parser.add_argument(
            "--no-prepare",
            action="store_true",
            help="do not migrate and do not create Sir and the demo; refuse when migrations wait",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Serve. Errors: CommandError when the directory or the address is taken."""
        is_web_only = bool(settings.REDIS_URL)
        with ExitStack() as stack:
            lock = DataDirLock(settings.COUNTERSIGN_DATA_DIR)
            try:
                if not is_web_only:
                    lock.acquire()
                    stack.callback(lock.release)
                listener = stack.enter_context(listen(options["host"], options["port"]))
            except (DataDirHeld, AddressTaken) as error:
                raise CommandError(str(error)) from None
            url = address_of(listener)
            lock.note(url=url)
            self._prepare(is_skipped=options["no_prepare"])
            is_clean = Embedded(
                listener,
                concurrency=options["concurrency"],
                is_web_only=is_web_only,
                after_startup=partial(self._announce, url, is_web_only=is_web_only),
            ).run()
        self._leave(is_clean=is_clean)

    def _prepare(self, *, is_skipped: bool) -> None:
        if not is_skipped:
            prepare_database(self.stdout)
        elif has_pending_migrations():
            raise CommandError("migrations are pending: run `manage.py migrate` first")
        collect_static_files()
        connections.close_all()

    def _announce(self, url: str, *, is_web_only: bool) -> None:
        if is_web_only:
            self.stdout.write(
                "Web part only, since REDIS_URL is set: "
                "run `manage.py worker` and `manage.py beat` beside it."
            )
        self.stdout.write(f"Countersign is at {url} (Ctrl-C stops it)")
        self.stdout.flush()

    def _leave(self, *, is_clean: bool) -> None:
        if is_clean:
            self.stdout.write("Stopped.")
            return
        self.stdout.write("Stopped with steps still running; they continue at the next start.")
        sys.stdout.flush()
        sys.stderr.flush()
        # Their threads would keep the interpreter alive until the commands end by themselves.
        os._exit(0)
