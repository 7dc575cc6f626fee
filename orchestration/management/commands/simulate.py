"""Simulate a whole project: `manage.py simulate --tasks N --seed S --fail-rate F …`.

Scripted agents fail, time out, contradict themselves, dawdle and die; Sir decides. What the loop
made of it is held against an independent oracle. Exit code 1 when anything is off, naming it.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.core.checks import Tags
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from config.datadir import DataDirHeld, DataDirLock
from config.prepare import has_pending_migrations
from orchestration.management.operator import errors_in_words
from orchestration.models import Project
from orchestration.simulation.cast import Broken
from orchestration.simulation.crew import OwnThread, Processes, WorkersStuck
from orchestration.simulation.play import Result, simulate
from orchestration.simulation.script import Rates, write_script

RATES = {
    "fail-rate": ("fail", "attempts that fail"),
    "slow": ("slow", "steps whose agent is overtaken by its lease, or gives it back"),
    "timeouts": ("timeouts", "how often a failure is a lease or a time that ran out"),
    "contradictions": ("contradictions", "steps that claim what their own record refutes"),
    "kill-workers": ("kill_workers", "steps over whose check a worker of ours dies"),
    "handoffs": ("handoffs", "steps that are handed over wrongly first"),
    "questions": ("questions", "steps that ask Sir, or are blocked"),
}
SHOWN = 20


class Command(BaseCommand):
    """Play a script and say how well the loop did."""

    help = "Simulate a project with scripted agents; exit code 1 when the loop did anything wrong."
    requires_system_checks = (Tags.security,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the size, the seed and the rates. Units: rates are shares from 0 to 1."""
        parser.add_argument("--tasks", type=int, default=50, help="roots of the master list")
        parser.add_argument("--seed", type=int, default=1, help="the same seed, the same run")
        defaults = Rates()
        for option, (name, what) in RATES.items():
            parser.add_argument(
                f"--{option}", dest=name, type=float, default=getattr(defaults, name),
                help=f"{what} (default %(default)s)",
            )  # fmt: skip
        parser.add_argument(
            "--processes", type=int, default=0, metavar="N",
            help="with Redis: N worker processes, of which some are killed",
        )  # fmt: skip
        parser.add_argument(
            "--among-others", action="store_true",
            help="run although the database holds other projects",
        )  # fmt: skip

    def handle(self, *_args: Any, **options: Any) -> None:
        """Simulate. Errors: CommandError where it may not run, or for a rate that is no share."""
        rates = Rates(**{name: _share(name, options[name]) for name, _ in RATES.values()})
        if options["tasks"] < 1:
            raise CommandError("--tasks must be at least 1")
        if options["processes"] and not settings.REDIS_URL:
            raise CommandError("--processes needs REDIS_URL: without it there are no such workers")
        with ExitStack() as stack:
            if not settings.REDIS_URL:
                self._hold_data_dir(stack)
            if has_pending_migrations():
                call_command("migrate", interactive=False, verbosity=0)
            _require_alone(may_have_others=options["among_others"])
            script = write_script(options["tasks"], options["seed"], rates)
            slug = f"simulation-{uuid4().hex[:8]}"
            count = options["processes"]
            with errors_in_words():
                try:
                    result = simulate(
                        script, slug=slug,
                        hire=(lambda one: Processes(one, count=count)) if count else OwnThread,
                    )  # fmt: skip
                except (Broken, WorkersStuck) as error:
                    raise CommandError(str(error)) from error
        self._tell(result)

    def _hold_data_dir(self, stack: ExitStack) -> None:
        lock = DataDirLock(settings.COUNTERSIGN_DATA_DIR)
        try:
            lock.acquire()
        except DataDirHeld as held:
            raise CommandError(f"{held}; a simulation needs a data directory of its own") from held
        stack.callback(lock.release)

    def _tell(self, result: Result) -> None:
        write = self.stdout.write
        write(
            f"{result.project.slug}: {result.acts} acts, {result.deaths} dead workers,"
            f" {result.seconds:.1f} s"
        )
        for line in result.score.lines():
            write(line)
        wrong = [problem for part in result.score.parts for problem in part.wrong]
        for title, problems in (("wrong", wrong), ("broken", result.broken)):
            for problem in problems[:SHOWN]:
                write(f"{title}: {problem}")
            if len(problems) > SHOWN:
                write(f"{title}: {len(problems) - SHOWN} more")
        if not result.is_clean:
            sys.exit(1)
        write("Every invariant holds.")


def _share(name: str, value: float) -> float:
    if not 0 <= value < 1:
        raise CommandError(f"{name} must be a share from 0 to below 1, not {value}")
    return value


def _require_alone(*, may_have_others: bool) -> None:
    others = Project.objects.exclude(slug__startswith="simulation-")
    names = list(others.order_by("pk").values_list("slug", flat=True)[:3])
    if names and not may_have_others:
        raise CommandError(
            f"this database holds other projects ({', '.join(names)}): use a COUNTERSIGN_DATA_DIR"
            " or DATABASE_URL of its own, or say --among-others"
        )
