"""Run a playbook: `manage.py run_playbook FILE [--workspace DIR] [--project SLUG] [--no-wait]`.

With an engine of its own when nobody else works on the data directory, else by the server that
does. Exit codes: 0 done, 1 failed, 2 it waits for somebody and was told not to.
"""

from __future__ import annotations

import os
import re
import sys
from argparse import ArgumentParser
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import Tags
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.urls import NoReverseMatch, reverse

from config.datadir import DataDirHeld, DataDirLock, holder_of
from config.prepare import collect_static_files, has_pending_migrations
from orchestration.errors import Conflict
from orchestration.management.cards import plain_text
from orchestration.management.following import Follower, Standing
from orchestration.management.operator import errors_in_words, operator_actor, operator_workspace
from orchestration.management.playbook_engine import (
    ENDS,
    PagedEngine,
    ServerEnded,
    Watch,
    follow_server,
    follow_with_workers,
)
from orchestration.models import Project, Task
from orchestration.services.projects import create_project
from orchestration.states import ProjectStatus
from orchestration.workflows.playbook import read_playbook, submit_playbook

EXIT_CODES = {Standing.DONE: 0, Standing.FAILED: 1, Standing.WAITING: 2, Standing.RUNNING: 130}
MAX_SLUG = 50


class Command(BaseCommand):
    """Submit a playbook and follow it to its end."""

    help = "Run a playbook on a directory and follow it. Exit codes: 0 done, 1 failed, 2 waiting."
    requires_system_checks = (Tags.security,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the file, where it works, and whether to wait for people."""
        parser.add_argument("file", help="a YAML file with a title and steps")
        parser.add_argument("--workspace", help="the directory its commands run in")
        parser.add_argument("--project", help="the project; made when missing")
        parser.add_argument(
            "--no-wait", action="store_true", help="leave with exit code 2 when it waits for Sir"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run it. Errors: CommandError for a playbook or a workspace that cannot be used."""
        path = Path(options["file"]).expanduser()
        with errors_in_words():
            read_playbook(path)
            given = options["workspace"]
            workspace = operator_workspace(given, must_exist=True) if given else None
        may_wait = not options["no_wait"]
        with ExitStack() as stack:
            lock = self._own_lock(stack)
            self._prepare(is_own=lock is not None)
            with errors_in_words():
                project = choose_project(options["project"], workspace, path)
                task = submit_playbook(
                    project_id=project.pk, path=path, actor=operator_actor(), is_trusted=True
                )
            self._write(f"{task} {task.title}, in {project.workspace}")
            if lock is not None:
                standing, is_clean = self._run_here(task, lock, may_wait=may_wait)
            else:
                standing, is_clean = self._run_there(task, may_wait=may_wait), True
        self._leave(EXIT_CODES[standing], is_clean=is_clean)

    def _own_lock(self, stack: ExitStack) -> DataDirLock | None:
        """Take the data directory for an engine of our own, or return None when another has it."""
        if settings.REDIS_URL:
            return None
        lock = DataDirLock(settings.COUNTERSIGN_DATA_DIR)
        try:
            lock.acquire()
        except DataDirHeld:
            return None
        stack.callback(lock.release)
        return lock

    def _prepare(self, *, is_own: bool) -> None:
        if not is_own:
            if has_pending_migrations():
                raise CommandError("migrations are pending: run `manage.py migrate` first")
            return
        if has_pending_migrations():
            call_command("migrate", interactive=False, verbosity=0)
        call_command("bootstrap", no_demo=True, stdout=self.stdout)

    def _run_here(self, task: Task, lock: DataDirLock, *, may_wait: bool) -> tuple[Standing, bool]:
        """Work on it in this process, with pages where Sir may be needed."""
        if not may_wait:
            follower = self._follower(task, home_url())
            standing, is_clean = follow_with_workers(Watch(follower, may_wait=False))
            self._tell_end(follower, standing)
            return standing, is_clean
        collect_static_files()
        engine = PagedEngine()
        lock.note(url=engine.url)
        self._write(f"Countersign is at {engine.url} while this runs (Ctrl-C stops it)")
        follower = self._follower(task, engine.url)
        standing, is_clean = engine.follow(Watch(follower, may_wait=True))
        self._tell_end(follower, standing)
        return standing, is_clean

    def _run_there(self, task: Task, *, may_wait: bool) -> Standing:
        """Follow it while the server, or the workers beside it, do the work."""
        holder = holder_of(settings.COUNTERSIGN_DATA_DIR)
        url = (holder["url"] if holder else "") or home_url()
        follower = self._follower(task, url)
        self._write(f"The server at {url} does the work")
        try:
            standing = follow_server(Watch(follower, may_wait=may_wait))
        except ServerEnded:
            self._write("The server has stopped; the work goes on when it runs again.")
            return Standing.WAITING
        except KeyboardInterrupt:
            self._write("Not followed any further; the server goes on with it.")
            return Standing.RUNNING
        if standing in ENDS:
            self._tell_end(follower, standing)
        return standing

    def _follower(self, task: Task, url: str) -> Follower:
        return Follower.start(task, self._write, lambda pk: decision_url(url, pk))

    def _tell_end(self, follower: Follower, standing: Standing) -> None:
        root = follower.root
        if standing is Standing.DONE:
            self._write(f"{root} is done. Locked artifacts:")
            for line in follower.artifacts():
                self._write(f"  {line}")
        elif standing is Standing.FAILED:
            self._write(f"{root} has failed: {root.status_detail or root.last_outcome}")
        else:
            self._write(f"{root} is not done; it goes on when the server runs: `make run`.")

    def _write(self, line: str) -> None:
        # Titles and details are agents' text: their escapes must not reach the terminal.
        self.stdout.write(plain_text(line))
        self.stdout.flush()

    def _leave(self, code: int, *, is_clean: bool) -> None:
        if not is_clean:
            self._write("Stopped with steps still running; they continue at the next start.")
            sys.stderr.flush()
            # Their threads would keep the interpreter alive until the commands end by themselves.
            os._exit(code)
        if code:
            sys.exit(code)


def home_url() -> str:
    """Give the address that `manage.py serve` has by the settings."""
    return f"http://{settings.HOST}:{settings.PORT}/"


def decision_url(base: str, decision_id: int) -> str:
    """Give the page of a decision below the address of the server."""
    try:
        path = reverse("dashboard:decision", args=[decision_id])
    except NoReverseMatch:
        path = "/"
    return base.rstrip("/") + path


def choose_project(slug: str | None, workspace: Path | None, path: Path) -> Project:
    """Find the project that a playbook runs in, or make it.

    By its slug; else the one that works in that directory; else one named after the directory, or
    after the playbook where no directory is given.
    Errors: Conflict when the named project works in another directory; those of `create_project`.
    """
    if slug:
        return _named_project(slug, workspace)
    usable = Project.objects.exclude(status=ProjectStatus.ARCHIVED.value)
    if workspace is not None:
        found = usable.filter(workspace=str(workspace)).order_by("-pk").first()
        return found or _new_project(_free_slug(workspace.name), workspace)
    name = slug_of(path.stem)
    return usable.filter(slug=name).first() or _new_project(_free_slug(name), None)


def _named_project(slug: str, workspace: Path | None) -> Project:
    project = Project.objects.filter(slug=slug).first()
    if project is None:
        return _new_project(slug, workspace)
    if workspace is not None and project.workspace != str(workspace):
        raise Conflict(f"The project {slug} works in {project.workspace}, not in {workspace}.")
    return project


def _new_project(slug: str, workspace: Path | None) -> Project:
    return create_project(
        slug=slug,
        workspace=str(workspace) if workspace else None,
        extra_roots=(workspace,) if workspace else (),
        actor=operator_actor(),
    )


def slug_of(name: str) -> str:
    """Make a slug of any name."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:MAX_SLUG].strip("-") or "playbook"


def _free_slug(name: str) -> str:
    slug, number = slug_of(name), 1
    taken = set(Project.objects.filter(slug__startswith=slug).values_list("slug", flat=True))
    while (candidate := slug if number == 1 else f"{slug}-{number}") in taken:
        number += 1
    return candidate
