"""Who builds on a step or on a locked artifact, directly or through others.

The reach is found by one recursive statement, whatever its depth; of a wide one a bounded part is
listed and the rest is counted.
Source: DESIGN section 8 ("Locked artifacts": impact = the transitive consumers).
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection

from orchestration.models import Artifact, ArtifactRead, Task, TaskDependency
from orchestration.states import TaskStatus

MOST_LISTED = 200
_TASK, _EDGE = Task._meta.db_table, TaskDependency._meta.db_table
_ARTIFACT, _READ = Artifact._meta.db_table, ArtifactRead._meta.db_table
_DEPENDENTS = (
    f"SELECT task_id FROM {_EDGE} WHERE requires_id = %s "  # noqa: S608 (names of our own tables)
    f"UNION SELECT d.task_id FROM reach JOIN {_EDGE} d ON d.requires_id = reach.id "
    f"JOIN {_TASK} t ON t.id = d.task_id AND t.is_superseded = %s"
)
_READERS = (
    f"SELECT r.task_id FROM {_ARTIFACT} a JOIN {_READ} r ON r.artifact_id = a.id "  # noqa: S608
    "WHERE a.task_id = %s AND a.name = %s "
    f"UNION SELECT r.task_id FROM reach JOIN {_ARTIFACT} a ON a.task_id = reach.id "
    f"JOIN {_READ} r ON r.artifact_id = a.id"
)


@dataclass(frozen=True, slots=True)
class Impact:
    """What a change reaches. Shape: `listed` is at most 200 of `total`, the finished ones first.

    Each is `{task, step_key, title, status, effect}`; effect is `to_reverify` for a consumer that
    is done and `freed` for one that waits.
    """

    listed: list[dict[str, object]]
    total: int


def dependents_of(task: Task) -> Impact:
    """List who needs a step, and who needs those, and so on. Costs two queries."""
    ids, total = _reach(_DEPENDENTS, [task.pk, False], task.pk)
    return Impact(_listed(ids), total)


def readers_of(artifact: Artifact) -> Impact:
    """List who read any version of an artifact, and who read what those locked, and so on.

    Shape: as `Impact`, each with the `artifacts` that it locked. Costs three queries.
    """
    origin = artifact.task_id
    ids, total = _reach(_READERS, [origin, artifact.name], origin)
    made: dict[int, list[str]] = {}
    locked = Artifact.objects.filter(task__in=ids).order_by("pk")
    for task_id, name, version in locked.values_list("task_id", "name", "version"):
        made.setdefault(task_id, []).append(f"{name} v{version}")
    rows = _listed(ids)
    return Impact([{**row, "artifacts": made.get(int(str(row["task"])), [])} for row in rows],
                  total)  # fmt: skip


def _reach(reach: str, values: list[int | str | bool], origin: int) -> tuple[list[int], int]:
    """Find the first consumers, finished ones first and by phase, and how many there are."""
    sql = (
        f"WITH RECURSIVE reach(id) AS ({reach}) "  # noqa: S608 (as above)
        f"SELECT t.id, count(*) OVER () FROM {_TASK} t WHERE t.id IN (SELECT id FROM reach) "
        "AND t.id <> %s AND t.is_superseded = %s "
        f"ORDER BY CASE WHEN t.status = '{TaskStatus.DONE}' THEN 0 ELSE 1 END, t.phase, t.id "
        f"LIMIT {MOST_LISTED}"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [*values, origin, False])
        rows = cursor.fetchall()
    return [row[0] for row in rows], rows[0][1] if rows else 0


def _listed(ids: list[int]) -> list[dict[str, object]]:
    rows = Task.objects.in_bulk(ids) if ids else {}
    return [
        {
            "task": str(pk),
            "step_key": rows[pk].step_key,
            "title": rows[pk].title,
            "status": rows[pk].status,
            "effect": "to_reverify" if rows[pk].status == TaskStatus.DONE else "freed",
        }
        for pk in ids
    ]
