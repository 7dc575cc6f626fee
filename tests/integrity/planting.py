"""Plant faults by force: raw statements, with triggers and checks out of the way, in tests only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

TASK = "orchestration_task"
EDGE = "orchestration_taskdependency"
EVENT = "orchestration_auditevent"
SEAL = "orchestration_auditseal"
CONTENT = "orchestration_artifactcontent"
BLUEPRINT = "orchestration_blueprint"


def force(sql: str, *values: int | str | bytes) -> None:
    """Run a statement as it is. Errors: AssertionError when it changed nothing."""
    with connection.cursor() as cursor:
        cursor.execute(sql, list(values))
        assert cursor.rowcount > 0


@contextmanager
def unguarded(table: str) -> Iterator[None]:
    """Take a table's immutability away for a moment: the file of a database was edited."""
    if connection.vendor == "postgresql":
        _run(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        yield
        _run(f"ALTER TABLE {table} ENABLE TRIGGER USER")
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = %s", [table]
        )
        triggers = cursor.fetchall()
    assert triggers
    for name, _ in triggers:
        _run(f"DROP TRIGGER {name}")
    yield
    for _, made in triggers:
        _run(made)


@contextmanager
def unconstrained() -> Iterator[None]:
    """Let a state stand that no table knows, and an edge that leads nowhere."""
    if connection.vendor == "postgresql":
        _run(f"ALTER TABLE {TASK} DROP CONSTRAINT task_status_known")
        _run("SET session_replication_role = replica")
        yield
        _run("SET session_replication_role = DEFAULT")
        return
    _run("PRAGMA ignore_check_constraints = ON")
    _run("PRAGMA foreign_keys = OFF")
    yield
    _run("PRAGMA foreign_keys = ON")
    _run("PRAGMA ignore_check_constraints = OFF")


def _run(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)
