"""The unit of work: one transaction, its moves and audit events, and the hints sent after it.

Every service opens one, or is handed the one of its caller. It collects events and changed fields
and writes each in one statement at the end, so that four moves of a task cost one UPDATE and one
bulk INSERT. Hints and wake-ups go out after commit only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connection, models, transaction
from django.utils import timezone

from orchestration.broadcast import publisher
from orchestration.contracts.hints import Hint
from orchestration.enqueue import wake_notifier, wake_workers
from orchestration.models import Assignment, AuditEvent, IdempotencyRecord, Project, Task
from orchestration.models.inserts import insert_keyed, insert_states
from orchestration.models.keys import Keys
from orchestration.models.rows import update_row
from orchestration.models.statements import record_reads
from orchestration.states import TASK_TERMINAL

COMMITTED = 0
"""`status` of a keyed request whose work is committed and whose answer is not stored yet."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts.

    Shape: `name` is `system`, `agent:NAME`, `human:USERNAME`, `operator:NAME` (who ran a
    command on the machine, by the system's user name) or `policy:ID`. `record_id` is the
    IdempotencyRecord of the request, marked by the first commit it causes.
    """

    name: str
    request_id: str = ""
    record_id: int | None = None

    @property
    def is_human(self) -> bool:
        """Whether a person acts, by session or personal token."""
        return self.name.startswith("human:")

    @property
    def is_agent(self) -> bool:
        """Whether an agent acts, by its token."""
        return self.name.startswith("agent:")


SYSTEM = Actor("system")


@dataclass(frozen=True, slots=True)
class Slot:
    """One executor slot of a worker process. `worker` names host, process start and thread."""

    worker: str


@dataclass(slots=True)
class Work:
    """What one transaction changes and announces.

    Shape: `slot` is the free executor slot of whoever finishes something here, if it may take a
    successor; `taken` is the successor it took.
    """

    actor: Actor
    now: Any = field(default_factory=timezone.now)
    events: list[dict[str, Any]] = field(default_factory=list)
    hints: dict[str, Hint] = field(default_factory=dict)
    wakes: int = 0
    tells: bool = False
    slot: Slot | None = None
    taken: Assignment | None = None
    freed_parent_id: int | None = None
    _dirty: dict[tuple[type, Any], tuple[models.Model, set[str]]] = field(default_factory=dict)
    _new: dict[type[models.Model], list[models.Model]] = field(default_factory=dict)
    _readers: list[tuple[int, int | None]] = field(default_factory=list)
    _keys: Keys = field(default_factory=Keys)

    def free_slot(self, parent_id: int | None) -> None:
        """Note whose parallel slot this work gives back; a successor may be taken for it."""
        self.freed_parent_id = parent_id
        self.taken = None

    @contextmanager
    def as_system(self) -> Iterator[None]:
        """Record what follows as the system's own doing, within somebody's request.

        Who hands work in does not judge it: rules do, and the trail must say so.
        """
        asked_by = self.actor
        self.actor = replace(SYSTEM, request_id=asked_by.request_id)
        try:
            yield
        finally:
            self.actor = asked_by

    def touch(self, row: models.Model, *fields: str) -> None:
        """Note that `fields` of a loaded row changed; they are saved once, at the end."""
        held = self._dirty.setdefault((type(row), row.pk), (row, set()))
        if held[0] is not row:
            # Two copies of one row in one unit of work would overwrite each other.
            for name in fields:
                setattr(held[0], name, getattr(row, name))
        held[1].update(fields)

    def record(
        self,
        kind: str,
        *,
        subject: str,
        project_id: int | None,
        task_id: int | None = None,
        before: object = None,
        after: object = None,
        why: str = "",
    ) -> None:
        """Add one audit event, written in this transaction."""
        self.events.append(
            {
                "kind": kind,
                "subject": subject,
                "project_id": project_id,
                "task_id": task_id,
                "actor": self.actor.name,
                "before": before,
                "after": after,
                "why": why,
                "request_id": self.actor.request_id,
                "at": self.now,
            }
        )

    def hint(self, topic: str, project_id: int | None, version: int = 0) -> None:
        """Announce after commit that a topic changed."""
        self.hints[topic] = Hint(topic, project_id, version)

    def wake(self, count: int = 1) -> None:
        """Wake idle executor slots after commit."""
        self.wakes += count

    def insert(self, rows: Sequence[models.Model]) -> None:
        """Give new rows their keys; they are written at the end, or before anybody asks for them.

        Rows of one model go out in one statement, in the order of the models' first rows.
        """
        for row in rows:
            if row.pk is None:
                row.pk = self._keys.next_key(type(row))
            row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS
            self._new.setdefault(type(row), []).append(row)

    def read(self, task_id: int, assignment_id: int | None) -> None:
        """Note that a step read the locked artifacts of the steps it depends on."""
        self._readers.append((task_id, assignment_id))

    def ended_steps(self) -> list[int]:
        """List the tasks whose end is noted here and not written yet."""
        return [
            row.pk
            for row, fields in self._dirty.values()
            if isinstance(row, Task) and "status" in fields and row.status in TASK_TERMINAL
        ]

    def write_before(self, execute: Any, sql: Any, params: Any, many: Any, context: Any) -> Any:
        """Write the new rows of a table before a statement that names it. A database wrapper."""
        if self._new:
            for model in [one for one in self._new if one._meta.db_table in sql]:
                self._write_new(model)
        return execute(sql, params, many, context)

    def _write_new(self, model: type[models.Model]) -> None:
        """Insert the rows of a model that wait. Changed fields noted on those rows are in it."""
        rows = self._new.pop(model, [])
        if not rows:
            return
        insert_keyed(rows)
        for row in rows:
            held = self._dirty.get((model, row.pk))
            if held is not None and held[0] is row:
                del self._dirty[model, row.pk]
        self._keys.forget(model)

    def flush(self) -> None:
        """Write what was collected so far: new rows, changed fields, then events."""
        for model in list(self._new):
            self._write_new(model)
        self.flush_rows()
        if self._readers:
            readers, self._readers = self._readers, []
            record_reads(readers, self.now)
        if self.events:
            insert_states(AuditEvent, self.events)
            self.events = []

    def flush_rows(self) -> None:
        """Write the changed fields, so that queries see them; events are written at the end."""
        for model in {model for model, _ in self._dirty} & self._new.keys():
            self._write_new(model)
        for row, fields in self._dirty.values():
            if "version" not in fields and isinstance(row, Task | Project):
                # Every change shows in the version: a copy of the same version is the same row.
                row.version += 1
                fields.add("version")
            update_row(row, fields)
        self._dirty.clear()


@contextmanager
def unit_of_work(actor: Actor, *, slot: Slot | None = None) -> Iterator[Work]:
    """Open a transaction and write everything collected in it at its end.

    With `slot` the first assignment that becomes ready for it may be taken on the way.

    Locks: on SQLite the process's writer lock, taken by the database backend. Hints and wake-ups
    go out after commit and never undo or fail committed work.
    """
    with transaction.atomic():
        work = Work(actor, slot=slot)
        with connection.execute_wrapper(work.write_before):
            yield work
            work.flush()
        if actor.record_id is not None:
            IdempotencyRecord.objects.filter(pk=actor.record_id, status__isnull=True).update(
                status=COMMITTED
            )
        hints, wakes = list(work.hints.values()), min(work.wakes, settings.COUNTERSIGN_CONCURRENCY)
        tells = work.tells

        def announce() -> None:
            if wakes:
                wake_workers(wakes)
            publisher.put(hints)
            if tells:
                wake_notifier()

        if hints or wakes or tells:
            transaction.on_commit(announce, robust=True)


def locked(queryset: models.QuerySet[Any], *, skip: bool = False) -> models.QuerySet[Any]:
    """Lock the rows of a queryset where the database has row locks.

    Foreign-key inserts by others are not blocked (`no_key`). SQLite has one writer, so no lock.
    """
    if connection.features.has_select_for_update:
        return queryset.select_for_update(of=("self",), no_key=True, skip_locked=skip)
    return queryset
