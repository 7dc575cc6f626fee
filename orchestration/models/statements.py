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

from django.db import connection, models

from orchestration.models.agents import Agent
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
    update_and_fetch,
)
from orchestration.models.tasks import Task, TaskDependency
from orchestration.states import (
    SKIPPED_REASON,
    TASK_HOLDS_SLOT,
    TASK_TERMINAL,
    AssignmentStatus,
    DecisionStatus,
    ProjectStatus,
    Seat,
    TaskKind,
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
AGENT_PROJECT = Agent.projects.through._meta.db_table

OPEN_STATES = tuple(state.value for state in TaskStatus if state not in TASK_TERMINAL)
ROOT_TAKES_NO_PLACE = (
    TaskStatus.PENDING,
    TaskStatus.DONE,
    TaskStatus.CANCELLED,
    TaskStatus.FAILED,
    TaskStatus.FATAL,
)
SLOT_STATES = tuple(sorted(state.value for state in TASK_HOLDS_SLOT))


def _marks(values: Sequence[object]) -> str:
    return ", ".join(["%s"] * len(values))


def release_dependents(task_id: int, open_phase: int | None = None) -> list[Task]:
    """Take one off the counters of a finished task's dependents; return those that may start now.

    Locks: the dependents, in id order, so that two finishers cannot deadlock.
    """
    dependents = f"SELECT task_id FROM {EDGE} WHERE requires_id = %s"
    if connection.features.has_select_for_update:
        dependents = (
            f"SELECT id FROM {TASK} WHERE id IN ({dependents}) ORDER BY id FOR NO KEY UPDATE"
        )
    left = update_and_fetch(
        Task,
        "remaining_dependencies = remaining_dependencies - 1",
        f"id IN ({dependents}) AND remaining_dependencies > 0",
        [task_id],
        keep={"remaining_dependencies": 0, "status": TaskStatus.PENDING.value},
    )
    if open_phase is not None:
        left = [one for one in left if one.phase <= open_phase and not one.is_superseded]
    return sorted(left, key=lambda one: one.pk)


def ready_in_phase(parent_id: int, phase: int) -> list[Task]:
    """Read the pending steps of one phase that wait for nothing more, oldest first."""
    return fetch_rows(
        Task,
        "parent_id = %s AND phase = %s AND status = %s AND remaining_dependencies = 0 "
        "AND NOT is_superseded ORDER BY id",
        [parent_id, phase, TaskStatus.PENDING.value],
    )


def what_a_step_frees(
    task_id: int, parent_id: int, phase: int, *, ended: Sequence[int]
) -> tuple[bool, bool]:
    """Look into the indexes once. Shape: (it blocks others, its phase has another open step).

    `ended` are the steps whose end this transaction has not written yet.
    """
    sql = (
        f"SELECT EXISTS(SELECT 1 FROM {BLOCKER} WHERE to_task_id = %s), "
        f"EXISTS(SELECT 1 FROM {TASK} WHERE parent_id = %s AND phase = %s "
        f"AND status IN ({_marks(OPEN_STATES)}) AND NOT is_superseded "
        f"AND id NOT IN ({_marks(ended)}))"
    )
    rows = fetch_values(sql, [task_id, parent_id, phase, *OPEN_STATES, *ended])
    return bool(rows[0][0]), bool(rows[0][1])


UNFINISHED = (
    f"NOT is_superseded AND blueprint_id IS NOT NULL AND status <> '{TaskStatus.DONE}' "
    f"AND NOT (status = '{TaskStatus.CANCELLED}' AND cancel_reason = '{SKIPPED_REASON}')"
)
"""A step that its plan still waits for."""


def first_unfinished_phase(parent_id: int) -> int | None:
    """Return the lowest phase of a plan that has a step to wait for."""
    sql = f"SELECT MIN(phase) FROM {TASK} WHERE parent_id = %s AND {UNFINISHED}"
    first: int | None = fetch_values(sql, [parent_id])[0][0]
    return first


def waits_for_steps(parent_id: int) -> tuple[bool, bool]:
    """Look at the steps of a plan. Shape: (there are any, one of them is unfinished)."""
    sql = (
        f"SELECT EXISTS(SELECT 1 FROM {TASK} WHERE parent_id = %s), "
        f"EXISTS(SELECT 1 FROM {TASK} WHERE parent_id = %s AND {UNFINISHED})"
    )
    rows = fetch_values(sql, [parent_id, parent_id])
    return bool(rows[0][0]), bool(rows[0][1])


ROOT = f"parent_id IS NULL AND kind = '{TaskKind.TASK}'"


def waiting_roots(project_id: int, *, limit: int) -> list[Task]:
    """Lock the planned roots of a project that may start: what was begun before, then by rank.

    A root that failed is planned again before anything else is begun, as its command says.
    """
    return fetch_rows(
        Task,
        f"project_id = %s AND {ROOT} AND status = '{TaskStatus.PENDING}' "
        "AND remaining_dependencies = 0 AND is_planned ORDER BY attempt DESC, rank, id LIMIT %s",
        [project_id, limit],
        lock=True,
    )


def running_roots(project_id: int) -> int:
    """Count the planned roots that take a place: begun, not ended, not failed before a re-plan.

    One that asks Sir before its planning starts has not begun.
    """
    idle = ", ".join(f"'{state.value}'" for state in ROOT_TAKES_NO_PLACE)
    sql = (
        f"SELECT COUNT(*) FROM {TASK} WHERE project_id = %s AND {ROOT} AND is_planned "
        f"AND status NOT IN ({idle}) AND NOT (status = '{TaskStatus.WAITING_HUMAN}' "
        f"AND asked_from = '{TaskStatus.PENDING}')"
    )
    return int(fetch_values(sql, [project_id])[0][0])


def are_roots_done(project_id: int) -> bool:
    """Whether a project has a done root and none that is neither done nor cancelled."""
    sql = (
        f"SELECT EXISTS(SELECT 1 FROM {TASK} WHERE project_id = %s AND {ROOT} "
        f"AND status NOT IN ('{TaskStatus.DONE}', '{TaskStatus.CANCELLED}')), "
        f"EXISTS(SELECT 1 FROM {TASK} WHERE project_id = %s AND {ROOT} "
        f"AND status = '{TaskStatus.DONE}')"
    )
    is_open, is_any_done = fetch_values(sql, [project_id, project_id])[0]
    return bool(is_any_done) and not is_open


def add_to_sequence(project_id: int, count: int) -> int:
    """Move a project's task numbers on and return the last one. Locks: the project's row."""
    sql = (
        f"UPDATE {PROJECT} SET task_sequence = task_sequence + %s WHERE id = %s "
        "RETURNING task_sequence"
    )
    return int(fetch_values(sql, [count, project_id])[0][0])


def count_of(model: type[models.Model], task_id: int, *, attempt: int | None = None) -> int:
    """Count a task's rows of a model, of one attempt or of all."""
    sql = f"SELECT COUNT(*) FROM {model._meta.db_table} WHERE task_id = %s"
    if attempt is None:
        return int(fetch_values(sql, [task_id])[0][0])
    return int(fetch_values(f"{sql} AND attempt = %s", [task_id, attempt])[0][0])


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


def record_reads(readers: Sequence[tuple[int, int | None]], at: datetime) -> None:
    """Record that steps read the locked artifacts of the steps they depend on.

    Shape: `readers` are (task id, id of the assignment that read).
    """
    rows = " UNION ALL ".join(
        f"SELECT {int(task)} AS task_id, "
        + ("CAST(NULL AS bigint)" if held is None else str(int(held)))
        + " AS assignment_id"
        for task, held in readers
    )
    execute(
        f"INSERT INTO {READ} (artifact_id, task_id, assignment_id, created_at) "
        f"SELECT a.id, r.task_id, r.assignment_id, %s FROM ({rows}) r "
        f"JOIN {EDGE} d ON d.task_id = r.task_id JOIN {ARTIFACT} a ON a.task_id = d.requires_id "
        "WHERE true ON CONFLICT DO NOTHING",
        [datetime_parameter(at)],
    )


def group_names(user_id: int) -> frozenset[str]:
    """Name the groups of a person: every request asks for them."""
    sql = (
        "SELECT g.name FROM auth_group g JOIN auth_user_groups m ON m.group_id = g.id "
        "WHERE m.user_id = %s"
    )
    return frozenset(name for (name,) in fetch_values(sql, [user_id]))


def agent_project_ids(agent_id: int) -> list[int]:
    """List the projects that an agent is limited to: every request of it asks for them."""
    sql = f"SELECT project_id FROM {AGENT_PROJECT} WHERE agent_id = %s"
    return [pk for (pk,) in fetch_values(sql, [agent_id])]


def place_of_decision(decision_id: int) -> tuple[int, int | None, int | None] | None:
    """Say where a decision stands. Shape: (project id, task id, the task's parent id) or None."""
    rows = fetch_values(
        f"SELECT d.project_id, d.task_id, t.parent_id FROM {DECISION} d "
        f"LEFT JOIN {TASK} t ON t.id = d.task_id WHERE d.id = %s",
        [decision_id],
    )
    return (rows[0][0], rows[0][1], rows[0][2]) if rows else None


OF_LOCKED = f"SELECT id FROM {DEFECT} WHERE artifact_id IS NOT NULL"


def open_decisions_of(
    task_ids: Sequence[int], *, but: str, with_locked: bool = False
) -> list[Decision]:
    """Lock the open decisions of some tasks, in id order, except those of one kind.

    What is asked about a locked artifact is listed only `with_locked`.
    """
    if not task_ids:
        return []
    kept = "" if with_locked else f"AND (defect_id IS NULL OR defect_id NOT IN ({OF_LOCKED})) "
    return fetch_rows(
        Decision,
        f"task_id IN ({_marks(task_ids)}) AND status = '{DecisionStatus.OPEN}' AND kind <> %s "
        f"{kept}ORDER BY id",
        [*task_ids, but],
        lock=True,
    )


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
        # A literal: no parameter can tell a prepared statement that the partial index holds.
        f"a.status = '{AssignmentStatus.QUEUED}' AND a.backend IN ({_marks(backends)})",
        "(a.not_before IS NULL OR a.not_before <= %s)",
        "(p.status = %s OR (p.status = %s AND a.seat = %s))",
    ]
    params: list[object] = [
        *backends, datetime_parameter(now), ProjectStatus.ACTIVE.value,
        ProjectStatus.SUSPENDED.value, Seat.QA.value,
    ]  # fmt: skip
    if project_id is not None:
        where.append("a.project_id = %s")
        params.append(project_id)
    if parent_id is not None:
        # `+ 0` keeps PostgreSQL from walking all steps of a large plan for the few that are queued.
        where.append("t.parent_id + 0 = %s")
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
