# ruff: noqa: S608  # the interpolated parts are table names and placeholders, never values
"""The engine's few hand-written statements, all in one place.

Each is one that every step of every run executes; the rest of the code speaks ORM. They run on
SQLite and PostgreSQL alike; where they lock, they lock in id order.
Source: docs/decisions/0003-unit-of-work.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import connection

from orchestration.models.artifacts import Artifact, ArtifactRead
from orchestration.models.assignments import Assignment
from orchestration.models.audit import AuditEvent, AuditSeal
from orchestration.models.decisions import Decision
from orchestration.models.projects import Project
from orchestration.models.reviews import Defect
from orchestration.models.rows import (
    datetime_parameter,
    execute,
    fetch_columns,
    fetch_rows,
    fetch_values,
)
from orchestration.models.tasks import Task, TaskDependency
from orchestration.states import (
    TASK_HOLDS_SLOT,
    TASK_TERMINAL,
    AssignmentStatus,
    ProjectStatus,
    Seat,
    TaskStatus,
)

TASK = Task._meta.db_table
EDGE = TaskDependency._meta.db_table
BLOCKER = Task.blocked_by.through._meta.db_table
ASSIGNMENT = Assignment._meta.db_table
PROJECT = Project._meta.db_table
ARTIFACT = Artifact._meta.db_table
READ = ArtifactRead._meta.db_table
DEFECT = Defect._meta.db_table
DECISION = Decision._meta.db_table
EVENT = AuditEvent._meta.db_table
SEAL = AuditSeal._meta.db_table

OPEN_STATES = tuple(state.value for state in TaskStatus if state not in TASK_TERMINAL)
SLOT_STATES = tuple(sorted(state.value for state in TASK_HOLDS_SLOT))


def _marks(values: Sequence[object]) -> str:
    return ", ".join(["%s"] * len(values))


def close_dependencies(task_id: int) -> bool:
    """Take one off the counters of a finished task's dependents; say whether any has none left.

    Locks: the dependents, in id order, so that two finishers cannot deadlock.
    """
    dependents = f"SELECT task_id FROM {EDGE} WHERE requires_id = %s"
    if connection.features.has_select_for_update:
        dependents = (
            f"SELECT id FROM {TASK} WHERE id IN ({dependents}) ORDER BY id FOR NO KEY UPDATE"
        )
    left = fetch_values(
        f"UPDATE {TASK} SET remaining_dependencies = remaining_dependencies - 1 "
        f"WHERE id IN ({dependents}) AND remaining_dependencies > 0 "
        "RETURNING remaining_dependencies",
        [task_id],
    )
    return any(not remaining for (remaining,) in left)


def ready_dependents(task_id: int, open_phase: int) -> list[Task]:
    """Read the pending dependents of a task that wait for nothing more, oldest first."""
    return fetch_rows(
        Task,
        f"id IN (SELECT task_id FROM {EDGE} WHERE requires_id = %s) AND status = %s "
        "AND remaining_dependencies = 0 AND phase <= %s AND NOT is_superseded ORDER BY id",
        [task_id, TaskStatus.PENDING.value, open_phase],
    )


def ready_in_phase(parent_id: int, phase: int) -> list[Task]:
    """Read the pending steps of one phase that wait for nothing more, oldest first."""
    return fetch_rows(
        Task,
        "parent_id = %s AND phase = %s AND status = %s AND remaining_dependencies = 0 "
        "AND NOT is_superseded ORDER BY id",
        [parent_id, phase, TaskStatus.PENDING.value],
    )


def phase_has_open_step(parent_id: int, phase: int, *, but: int) -> bool:
    """Look once into the index whether a phase has another step that has not ended."""
    sql = (
        f"SELECT 1 FROM {TASK} WHERE parent_id = %s AND phase = %s "
        f"AND status IN ({_marks(OPEN_STATES)}) AND NOT is_superseded AND id <> %s LIMIT 1"
    )
    return bool(fetch_values(sql, [parent_id, phase, *OPEN_STATES, but]))


def tasks_blocked_by(task_id: int) -> list[int]:
    """List the ids of tasks that a task blocks, in id order."""
    sql = f"SELECT from_task_id FROM {BLOCKER} WHERE to_task_id = %s ORDER BY from_task_id"
    return [found for (found,) in fetch_values(sql, [task_id])]


def is_root_stopped(root_id: int) -> bool:
    """Whether a root's attempt ends or is planned again, so that nothing of its plan goes on."""
    sql = f"SELECT 1 FROM {TASK} WHERE id = %s AND (is_ending OR is_replanning)"
    return bool(fetch_values(sql, [root_id]))


def is_root_ending(root_id: int) -> bool:
    """Whether a root's attempt is ending, read afresh."""
    return bool(fetch_values(f"SELECT 1 FROM {TASK} WHERE id = %s AND is_ending", [root_id]))


def running_children(parent_id: int) -> int:
    """Count the leaves of a parent that hold one of its parallel slots."""
    sql = (
        f"SELECT COUNT(*) FROM {TASK} WHERE parent_id = %s AND status IN ({_marks(SLOT_STATES)}) "
        "AND NOT is_planned"
    )
    return int(fetch_values(sql, [parent_id, *SLOT_STATES])[0][0])


def record_reads(task_id: int, assignment_id: int | None, at: datetime) -> None:
    """Record that a step read the locked artifacts of the steps it depends on."""
    execute(
        f"INSERT INTO {READ} (artifact_id, task_id, assignment_id, created_at) "
        f"SELECT a.id, %s, %s, %s FROM {EDGE} d JOIN {ARTIFACT} a ON a.task_id = d.requires_id "
        "WHERE d.task_id = %s ON CONFLICT DO NOTHING",
        [task_id, assignment_id, datetime_parameter(at), task_id],
    )


def place_of_decision(decision_id: int) -> tuple[int, int | None, int | None] | None:
    """Say where a decision stands. Shape: (project id, task id, the task's parent id) or None."""
    rows = fetch_values(
        f"SELECT d.project_id, d.task_id, t.parent_id FROM {DECISION} d "
        f"LEFT JOIN {TASK} t ON t.id = d.task_id WHERE d.id = %s",
        [decision_id],
    )
    return (rows[0][0], rows[0][1], rows[0][2]) if rows else None


def defects_in(task_id: int, statuses: Sequence[str]) -> list[Defect]:
    """Read the defects of a task in some states, oldest first."""
    return fetch_rows(
        Defect,
        f"task_id = %s AND status IN ({_marks(statuses)}) ORDER BY id",
        [task_id, *statuses],
    )


EVENT_COLUMNS = (
    "id", "project_id", "task_id", "kind", "actor", "subject", "before", "after", "why",
    "request_id", "at",
)  # fmt: skip
"""What a seal covers, in the order it is hashed."""


def unsealed_events(floor: int, *, limit: int) -> list[list[Any]]:
    """Read the oldest events above an id that have no seal yet, by id. Shape: EVENT_COLUMNS."""
    return fetch_columns(
        AuditEvent,
        EVENT_COLUMNS,
        f"id > %s AND NOT EXISTS (SELECT 1 FROM {SEAL} s WHERE s.event_id = {EVENT}.id) "
        "ORDER BY id LIMIT %s",
        [floor, limit],
    )


def lock_versions(
    assignment_id: int, task_id: int, parent_id: int | None
) -> tuple[str, int, int, int, int | None] | None:
    """Lock a parent, its task and an assignment of it, in this order, and read their versions.

    Shape: (assignment status, its token, task version, project version, parent version); None when
    one of them is gone.
    """
    if parent_id is None:
        parent, join, locks = "NULL", "", "t, a"
    else:
        parent, join, locks = "q.version", f"JOIN {TASK} q ON q.id = t.parent_id", "q, t, a"
    sql = (
        f"SELECT a.status, a.token, t.version, p.version, {parent} FROM {TASK} t {join} "
        f"JOIN {ASSIGNMENT} a ON a.task_id = t.id JOIN {PROJECT} p ON p.id = t.project_id "
        "WHERE t.id = %s AND a.id = %s"
    )
    if connection.features.has_select_for_update:
        sql += f" FOR NO KEY UPDATE OF {locks}"
    rows = fetch_values(sql, [task_id, assignment_id])
    return (rows[0][0], rows[0][1], rows[0][2], rows[0][3], rows[0][4]) if rows else None


def queued_candidates(
    backends: Sequence[str],
    now: datetime,
    *,
    project_id: int | None = None,
    parent_id: int | None = None,
    full_parents: Sequence[int] = (),
    limit: int,
) -> list[tuple[int, int, int | None, str]]:
    """List claimable assignments, oldest first: of active projects, and QA of suspended ones.

    What was handed in before a project was suspended is verified, reviewed and locked (rule 8).

    Shape: (assignment id, task id, parent id, seat). `parent_id` limits it to one plan's steps;
    executors of `full_parents` are left out.
    """
    where = [
        f"a.status = %s AND a.backend IN ({_marks(backends)})",
        "(a.not_before IS NULL OR a.not_before <= %s)",
        "(p.status = %s OR (p.status = %s AND a.seat = %s))",
    ]
    params: list[object] = [
        AssignmentStatus.QUEUED.value, *backends,
        datetime_parameter(now), ProjectStatus.ACTIVE.value,
        ProjectStatus.SUSPENDED.value, Seat.QA.value,
    ]  # fmt: skip
    if project_id is not None:
        where.append("a.project_id = %s")
        params.append(project_id)
    if parent_id is not None:
        where.append("t.parent_id = %s")
        params.append(parent_id)
    if full_parents:
        where.append(
            f"(t.parent_id IS NULL OR a.seat <> %s OR t.parent_id NOT IN ({_marks(full_parents)}))"
        )
        params += [Seat.EXECUTOR.value, *full_parents]
    rows = fetch_values(
        f"SELECT a.id, a.task_id, t.parent_id, a.seat FROM {ASSIGNMENT} a "
        f"JOIN {TASK} t ON t.id = a.task_id JOIN {PROJECT} p ON p.id = a.project_id "
        f"WHERE {' AND '.join(where)} ORDER BY a.id LIMIT %s",
        [*params, limit],
    )
    return [(row[0], row[1], row[2], row[3]) for row in rows]
