# ruff: noqa: S608  # the interpolated parts are table names, never values
"""Statements that lock rows and read only their versions.

Every change of a task or project shows in its version, so who holds a copy of the same version need
not read the row again.
Source: docs/decisions/0003-unit-of-work.md.
"""

from __future__ import annotations

from django.db import connection

from orchestration.models.rows import fetch_values
from orchestration.models.statements import ASSIGNMENT, PROJECT, TASK


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


def hold_versions(task_id: int) -> tuple[int, int] | None:
    """Hold a task's project against change, lock the task after it, and read their versions.

    Shape: (task version, project version); None when the task is gone.
    """
    sql = (
        f"SELECT t.version, p.version FROM {TASK} t JOIN {PROJECT} p ON p.id = t.project_id "
        "WHERE t.id = %s"
    )
    if connection.features.has_select_for_update:
        sql += " FOR SHARE OF p FOR NO KEY UPDATE OF t"
    rows = fetch_values(sql, [task_id])
    return (rows[0][0], rows[0][1]) if rows else None
