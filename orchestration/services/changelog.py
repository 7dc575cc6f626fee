"""Write changelog entries into the project's own CHANGELOG.md, newest first.

An entry is a row first, so a killed process loses none: the sweep writes what is missing, and a
marker in the file keeps an entry from standing there twice. What a person wrote is kept as it is.
Source: FORMATS ("Delivery archive").
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from orchestration.errors import CountersignError
from orchestration.models import ChangelogEntry, Task
from orchestration.models.prepared import Prepared
from orchestration.models.rows import fetch_rows
from orchestration.runner.file_writes import FileContent, FileWrite, read_content, write_all
from orchestration.services.lookups import lock_project
from orchestration.services.work import SYSTEM, unit_of_work
from orchestration.states import ProjectStatus, TaskStatus

logger = logging.getLogger(__name__)
CHANGELOG = "CHANGELOG.md"
HEADING = b"# Changelog\n\n"
MOST_TRIES = 5
BATCH = 50
_FENCES = (b"```", b"~~~")


def marker_of(archive_id: int) -> str:
    """Name an entry inside the file."""
    return f"countersign:archive-{archive_id}"


def write_changelog_on_commit(project_id: int) -> None:
    """Write a project's waiting entries once the transaction has committed.

    While other roots of the project are at work they are left to the sweep, seconds later: the
    disk is asked once for all that end meanwhile.
    """

    def write() -> None:
        if not _working_roots(project_id):
            write_changelog(project_id)

    transaction.on_commit(write, robust=True)


@Prepared
def _working_roots(project_id: int) -> QuerySet[Any, Any]:
    states = [TaskStatus.CLAIMED.value, TaskStatus.WORKING.value]
    rows = Task.objects.filter(project=project_id, parent__isnull=True, status__in=states)
    return rows.order_by().values_list("pk")[:1]


def write_waiting_changelogs() -> int:
    """Write the entries that a killed process left waiting. Shape: how many projects, bounded."""
    rows = ChangelogEntry.objects.filter(
        written_at__isnull=True,
        tries__lt=MOST_TRIES,
        project__status__in=[ProjectStatus.ACTIVE.value, ProjectStatus.COMPLETED.value],
    ).order_by()
    ids = list(rows.values_list("project_id", flat=True).distinct()[:BATCH])
    return sum(write_changelog(pk) for pk in ids)


def write_changelog(project_id: int) -> bool:
    """Write a project's waiting entries, oldest first, each above the one before.

    What cannot be written is tried again by the sweep, a few times; the entries say why.
    Locks: the project's row, so that two of us never write the file at once.
    """
    with unit_of_work(SYSTEM) as work:
        project = lock_project(project_id)
        waiting = "project_id = %s AND written_at IS NULL AND tries < %s ORDER BY id LIMIT %s"
        entries = fetch_rows(ChangelogEntry, waiting, [project_id, MOST_TRIES, BATCH])
        if not entries:
            return False
        written_at, problem = work.now, ""
        try:
            _write(Path(project.workspace), entries)
        except (CountersignError, OSError) as error:
            logger.warning("changelog of project %s: %s", project_id, error)
            written_at, problem = None, str(error)[:300]
        for entry in entries:
            entry.written_at, entry.problem = written_at, problem
            entry.tries += written_at is None
            work.touch(entry, "written_at", "tries", "problem")
    return True


def _write(workspace: Path, entries: Sequence[ChangelogEntry]) -> None:
    """Put entries into the file at once. Errors: WorkspaceError, also for a symlink; TooLarge."""
    old = read_content(workspace, CHANGELOG)
    standing = data = old.data if old is not None else HEADING
    for entry in entries:
        if marker_of(entry.archive_id).encode() + b" -->" not in standing:
            data = with_entry(data, entry.body.encode("utf-8", "replace"))
    if data == standing:
        return
    mode, owner = (old.mode, old.owner) if old is not None else (0o644, None)
    write_all(workspace, [FileWrite(CHANGELOG, old, FileContent(data, mode, owner))])


def with_entry(standing: bytes, entry: bytes) -> bytes:
    """Put an entry above the newest one of a changelog; nothing else of it changes.

    Shape: in bytes, since a person's file may have any encoding; its line ends are kept.
    """
    line_end = b"\r\n" if b"\r\n" in standing else b"\n"
    made = entry.replace(b"\n", line_end)
    at = _first_entry(standing)
    before, after = standing[:at], standing[at:]
    if before.strip() and not before.endswith(line_end * 2):
        before = before.rstrip(b"\r\n") + line_end * 2
    return before + made + (line_end + after if after else b"")


def _first_entry(standing: bytes) -> int:
    """Find where the first heading of the second level stands, outside code; else the end."""
    at, fence = 0, b""
    for line in standing.splitlines(keepends=True):
        start = line.lstrip()[:3]
        if fence:
            fence = b"" if start == fence else fence
        elif start in _FENCES:
            fence = start
        elif line.startswith(b"## "):
            return at
        at += len(line)
    return at
