"""Copy a project's rows many times over, with every reference moved along: a crowd in seconds.

What was made once by the services is the sample; a copy differs in keys, numbers and times only,
so that pages read rows such as real work leaves. Copied seals have no real hashes: the chain of a
crowd cannot be verified. For an empty database that nobody works on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, models, transaction

from orchestration.models import (
    Artifact,
    Assessment,
    Assignment,
    AuditEvent,
    AuditReport,
    AuditSeal,
    Blueprint,
    Comment,
    Decision,
    Defect,
    LogChunk,
    Output,
    Plan,
    Project,
    QAReview,
    Task,
    TaskDependency,
    ValidationPackage,
    Verification,
)

COPIED: Sequence[type[models.Model]] = (
    Task, TaskDependency, Assessment, Comment, Plan, AuditReport, Blueprint, Assignment, Output,
    Verification, QAReview, Defect, Decision, Artifact, ValidationPackage, LogChunk, AuditEvent,
)  # fmt: skip
NOUNS: Mapping[str, type[models.Model]] = {
    "task": Task, "assignment": Assignment, "decision": Decision, "plan": Plan, "output": Output,
    "assessment": Assessment, "comment": Comment, "blueprint": Blueprint, "defect": Defect,
    "review": QAReview, "artifact": Artifact,
}  # fmt: skip
"""Whose id an event's subject ends with."""
SPACING = timedelta(minutes=20)
SQLITE_BATCH = 5_000
Row = list[Any]
Change = Callable[[Any, int], Any]


class Copier:
    """Copies of the rows that are there when it is made. Shape: `strides` by model, in ids."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.strides = {model: _last_key(model) for model in COPIED}
        self.numbers = project.task_sequence
        self.samples = {model: _read(model) for model in COPIED}

    def copy(self, times: int) -> None:
        """Write copies 1 to `times` of every row, and seal the copied events."""
        with _without_triggers():
            for model in COPIED:
                columns = [str(field.column) for field in model._meta.concrete_fields]
                _write(model, columns, self._rows(model, times))
            # Read before COPY begins: it has the connection to itself.
            unsealed = _unsealed()
            _write(AuditSeal, SEAL_COLUMNS, _seals(unsealed))
        Project.objects.filter(pk=self.project.pk).update(task_sequence=self.numbers * (times + 1))
        _set_counters()

    def _rows(self, model: type[models.Model], times: int) -> Iterator[Row]:
        changes = self._changes(model)
        for number in range(1, times + 1):
            for sample in self.samples[model]:
                row = list(sample)
                for place, change in changes:
                    row[place] = change(row[place], number)
                yield row

    def _changes(self, model: type[models.Model]) -> list[tuple[int, Change]]:
        """Say what a copy changes, by the place of the column."""
        found: list[tuple[int, Change]] = []
        for place, field in enumerate(model._meta.concrete_fields):
            target = model if field.primary_key else field.related_model
            if target in self.strides:
                found.append((place, _moved(self.strides[target])))
            elif model is Task and field.name in ("number", "rank"):
                found.append((place, _moved(self.numbers)))
            elif isinstance(field, models.DateTimeField):
                found.append((place, _earlier))
            elif model is AuditEvent and field.name == "subject":
                found.append((place, self._moved_subject))
        return found

    def _moved_subject(self, subject: str, number: int) -> str:
        noun, _colon, key = subject.partition(":")
        stride = self.strides.get(NOUNS.get(noun, Project))
        return f"{noun}:{int(key) + stride * number}" if stride and key.isdigit() else subject


def _moved(stride: int) -> Change:
    return lambda value, number: value if value is None else value + stride * number


def _earlier(value: Any, number: int) -> Any:
    """Move a time back, so that a crowd was not made in one minute; SQLite keeps times as text."""
    if value is None:
        return None
    if isinstance(value, str):
        return str(datetime.fromisoformat(value) - SPACING * number)
    return value - SPACING * number


def _last_key(model: type[models.Model]) -> int:
    last = model._default_manager.order_by("-pk").values_list("pk", flat=True).first()
    return int(last or 0)


def _read(model: type[models.Model]) -> list[tuple[Any, ...]]:
    """Read the rows as the database gives them, those of no task left out where tasks have them."""
    names = [field.column for field in model._meta.concrete_fields]
    where = "" if "task_id" not in names else " WHERE task_id IS NOT NULL"
    listed = ", ".join(f'"{name}"' for name in names)
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT {listed} FROM "{model._meta.db_table}"{where} ORDER BY "id"')
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


SEAL_COLUMNS = ("position", "event_id", "previous_hash", "hash", "sealed_at")


def _unsealed() -> tuple[int, list[tuple[Any, ...]]]:
    """Return the newest position, and id and time of what is not sealed, oldest id first."""
    newest = AuditSeal.objects.order_by("-position").first()
    rows = AuditEvent.objects.filter(seal__isnull=True).order_by("pk").values("pk", "at")
    with connection.cursor() as cursor:
        cursor.execute(str(rows.query))
        return (newest.position if newest else 0), cursor.fetchall()


def _seals(unsealed: tuple[int, list[tuple[Any, ...]]]) -> Iterator[Row]:
    newest, found = unsealed
    for position, (key, at) in enumerate(found, start=newest + 1):
        yield [position, key, f"crowd-{position - 1}", f"crowd-{position}", at]


def _write(model: type[models.Model], columns: Sequence[str], rows: Iterator[Row]) -> None:
    listed = ", ".join(f'"{name}"' for name in columns)
    table = f'"{model._meta.db_table}" ({listed})'
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f"COPY {table} FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
            return
        marks = ", ".join(["%s"] * len(columns))
        while batch := [row for _, row in zip(range(SQLITE_BATCH), rows, strict=False)]:
            cursor.executemany(f"INSERT INTO {table} VALUES ({marks})", batch)


@contextmanager
def _without_triggers() -> Iterator[None]:
    """Leave foreign keys unchecked, or check them at the end: tables refer to each other."""
    if connection.vendor != "postgresql":
        with transaction.atomic():
            yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        yield
        cursor.execute("SET session_replication_role = origin")


def _set_counters() -> None:
    """Let the next keys follow the copied ones, and tell the planner how much there is."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            for model in COPIED:
                table = model._meta.db_table
                cursor.execute(
                    "SELECT setval(pg_get_serial_sequence(%s, 'id'), "
                    f'(SELECT COALESCE(MAX("id"), 1) FROM "{table}"))',
                    [table],
                )
        cursor.execute("ANALYZE")
