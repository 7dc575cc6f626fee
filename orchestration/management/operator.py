"""What the commands of the command line share: who acts, whose workspace, errors in plain words."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from config.prepare import has_pending_migrations
from orchestration.errors import CountersignError, Invalid, NotFound, WorkspaceError
from orchestration.models import Project
from orchestration.services.work import Actor

MAX_FAULTS_SHOWN = 20


class OperatorCommand(BaseCommand):
    """A command for an installation whose server has made its database."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run it. Errors: CommandError where there is no database of this release yet."""
        require_database()
        return super().execute(*args, **options)


def require_database() -> None:
    """Check that the server has prepared the database; a missing file is not made by asking.

    Errors: CommandError naming the data directory and what to do.
    """
    data_dir = settings.COUNTERSIGN_DATA_DIR
    first = "start the server first, with `make run`"
    name = str(connection.settings_dict["NAME"])
    in_memory = name.startswith(("file:", ":memory:"))
    if connection.vendor == "sqlite" and not (in_memory or Path(name).is_file()):
        raise CommandError(f"There is no database in {data_dir} yet: {first}.")
    if has_pending_migrations():
        raise CommandError(f"The database of {data_dir} is not ready for this release: {first}.")


def operator_actor() -> Actor:
    """Name whoever runs the command by the system's user name. Shape: `operator:NAME`."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        # A container may run under a number that no user list knows.
        name = str(os.getuid())
    return Actor(f"operator:{name[:120]}")


@contextmanager
def errors_in_words() -> Iterator[None]:
    """Turn an error of ours into one clear message and exit code 1.

    Errors: CommandError, with one line for each fault.
    """
    try:
        yield
    except CountersignError as error:
        raise CommandError(words_of(error)) from None


def words_of(error: CountersignError) -> str:
    """Say an error with its faults. Shape: at most 20 faults, one a line."""
    if not isinstance(error, Invalid):
        return error.detail
    lines = [_fault_line(one["path"], one["message"]) for one in error.errors]
    if not lines or lines == [error.detail]:
        return error.detail
    more = len(lines) - MAX_FAULTS_SHOWN
    shown = lines[:MAX_FAULTS_SHOWN] + ([f"and {more} more"] if more > 0 else [])
    return "\n  ".join([error.detail, *shown])


def _fault_line(path: str, message: str) -> str:
    if not path:
        return message
    # The line of a file comes first, as compilers write it.
    place, separator, rest = message.partition(": ")
    if separator and place.startswith("line "):
        return f"{place}: {path}: {rest}"
    return f"{path}: {message}"


def find_project(slug: str) -> Project:
    """Find a project by its slug. Errors: NotFound naming those that exist."""
    project = Project.objects.filter(slug=slug).first()
    if project is None:
        known = list(Project.objects.order_by("slug").values_list("slug", flat=True)[:20])
        rest = f"; there are {', '.join(known)}" if known else "; there is none yet"
        raise NotFound(f"There is no project {slug!r}{rest}.")
    return project


def operator_workspace(text: str, *, must_exist: bool) -> Path:
    """Return the real path of a directory that the operator gives as a workspace.

    Naming it allows it, wherever it is. The data directory is the exception: the database and the
    secret key are in it.
    Errors: WorkspaceError.
    """
    path = Path(text).expanduser()
    try:
        real = path.resolve()
        exists = real.exists()
    except (OSError, RuntimeError, ValueError) as error:
        raise WorkspaceError(f"The workspace {text!r} cannot be resolved: {error}.") from None
    if must_exist and not exists:
        raise WorkspaceError(f"There is no directory {text!r}.")
    if exists and not real.is_dir():
        raise WorkspaceError(f"The workspace {text!r} is not a directory.")
    data_dir: Path = settings.COUNTERSIGN_DATA_DIR.resolve()
    allowed = [root.resolve() for root in settings.COUNTERSIGN_WORKSPACE_ROOTS]
    if real.is_relative_to(data_dir) and not any(real.is_relative_to(root) for root in allowed):
        raise WorkspaceError(f"The workspace {text!r} is inside Countersign's own data directory.")
    return real


def read_text_argument(text: str) -> str:
    """Return an argument, or standard input for `-`. Errors: Invalid when it is not UTF-8."""
    try:
        if text == "-":
            return sys.stdin.buffer.read().decode("utf-8")
        # Bytes of the command line that are no UTF-8 arrive as lone surrogates.
        text.encode("utf-8")
    except UnicodeError as error:
        raise Invalid(f"the text is not valid UTF-8: {error}") from None
    return text
