"""Make an installation ready to serve: schema, accounts and demo, static files."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from django.core.management.base import OutputWrapper
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

STATIC_STAMP = ".stamp"
PREPARE_LOCK = 4_207_001  # any number that nothing else locks


def has_pending_migrations() -> bool:
    """Return whether the database lacks a migration of this release."""
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def prepare_database(stdout: OutputWrapper) -> None:
    """Migrate where something is pending, then ensure Sir's account and the demo project.

    Locks: of several web processes that start at once, one prepares and the others wait.
    """
    with _only_one():
        if has_pending_migrations():
            call_command("migrate", interactive=False, verbosity=0, stdout=stdout)
        call_command("bootstrap", stdout=stdout)


@contextmanager
def _only_one() -> Iterator[None]:
    # PostgreSQL may have web processes on several hosts; a SQLite file has one host.
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [PREPARE_LOCK])
            try:
                yield
            finally:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [PREPARE_LOCK])
        return
    with _file_lock(settings.COUNTERSIGN_DATA_DIR / "prepare.lock"):
        yield


@contextmanager
def _file_lock(path: Path) -> Iterator[None]:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def collect_static_files() -> bool:
    """Collect the static files again when one changed. Return whether they were collected.

    Locks: a file beside them, so that two web processes of one host do not write at once.
    """
    root: Path = settings.STATIC_ROOT
    root.mkdir(mode=0o755, parents=True, exist_ok=True)
    with _file_lock(root / ".lock"):
        stamp = root / STATIC_STAMP
        wanted = _static_fingerprint()
        if stamp.exists() and stamp.read_text(encoding="ascii") == wanted:
            return False
        call_command("collectstatic", interactive=False, verbosity=0)
        stamp.write_text(wanted, encoding="ascii")
        return True


def _static_fingerprint() -> str:
    digest = hashlib.sha256(settings.STORAGES["staticfiles"]["BACKEND"].encode())
    for finder in get_finders():
        for name, storage in finder.list([]):
            status = Path(storage.path(name)).stat()
            digest.update(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()
