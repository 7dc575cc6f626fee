"""Look at one root and its tree before the loop starts it or acts on its verdict.

Everything that the whole check looks for, limited to one root's rows: what the loop is about to
call done and archive is hashed once more, and no move explains what no service wrote.
Source: DESIGN section 10 ("Safe stop").
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db import connection
from django.db.models import OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, Concat

from orchestration.contracts.graph import find_cycles
from orchestration.models import Artifact, AuditEvent, AuditSeal, Blueprint, Task, TaskDependency
from orchestration.models.prepared import Prepared
from orchestration.models.statements import EVENT_COLUMNS
from orchestration.services.audit import GENESIS, event_digest
from orchestration.services.integrity_looks import (
    BATCH,
    CONTENTS,
    IMPORTED_KIND,
    STATE_KINDS,
    TASK_KINDS,
    IntegrityFault,
    changed_among,
    cycle_fault,
    dangling_fault,
    explained_state,
    link_fault,
    seal_fault,
    unsound_among,
    wrong_state,
)
from orchestration.states import TaskStatus


def quick_faults(project_id: int, root_id: int) -> list[IntegrityFault]:
    """Look at one root before it starts and when it ends: its tree, and what the roots wait for.

    Shape: a fixed number of statements, on the edges between roots and on the root's own tree.
    """
    return [
        *_edge_faults(project_id, root_id),
        *_changed_states(project_id, root_id),
        *_broken_seals(root_id),
        *changed_among(Blueprint.objects.filter(task__in=_tree(root_id))),
        *unsound_among(Artifact.objects.filter(task__in=_tree(root_id))),
    ]


def _tree(root_id: int) -> QuerySet[Task]:
    return Task.objects.filter(Q(pk=root_id) | Q(root=root_id)).order_by()


@Prepared
def _otherwise_told(root_id: int) -> QuerySet[Any, Any]:
    events = AuditEvent.objects.filter(task=OuterRef("pk"), kind__in=TASK_KINDS).order_by("-pk")
    told = Coalesce(Subquery(events.values("kind")[:1]), Value(""))
    tree = Task.objects.filter(Q(pk=root_id) | Q(root=root_id)).annotate(told=told)
    changed = tree.exclude(told=Concat(Value("task."), "status")).order_by("pk")
    return changed.values_list("pk", "status", "told")[:CONTENTS]


def _changed_states(project_id: int, root_id: int) -> Iterator[IntegrityFault]:
    """Find a root and tasks of its tree in another state than their own events left them in."""
    known = frozenset(state.value for state in TaskStatus)
    for pk, status, kind in _otherwise_told(root_id):
        subject = f"task:{pk}"
        # Only a root is ever imported, and that event names its state in its facts.
        explained = (
            explained_state(project_id, subject) if kind == IMPORTED_KIND else STATE_KINDS.get(kind)
        )
        found = wrong_state(subject, status, explained, known)
        if found is not None:
            yield found


EDGE, TASK = TaskDependency._meta.db_table, Task._meta.db_table
_EDGES = (
    f"WITH tree AS (SELECT id FROM {TASK} WHERE id = %s UNION ALL "  # noqa: S608
    f"SELECT id FROM {TASK} WHERE root_id = %s), "
    f"seen AS (SELECT d.id FROM tree JOIN {EDGE} d ON d.task_id = tree.id "
    f"UNION SELECT d.id FROM tree JOIN {EDGE} d ON d.requires_id = tree.id "
    f"UNION SELECT d.id FROM {EDGE} d JOIN {TASK} t ON t.id = d.task_id "
    "WHERE t.project_id = %s AND t.parent_id IS NULL) "
    "SELECT d.task_id, d.requires_id, t.project_id, r.project_id FROM seen "
    f"JOIN {EDGE} d ON d.id = seen.id "
    f"LEFT JOIN {TASK} t ON t.id = d.task_id LEFT JOIN {TASK} r ON r.id = d.requires_id"
)
"""By one index each: the edges of a tree, those onto it, and those between a project's roots."""


def _edge_faults(project_id: int, root_id: int) -> Iterator[IntegrityFault]:
    """Find edges that lead nowhere, out of the project, or in a circle; and parents in a circle."""
    with connection.cursor() as cursor:
        cursor.execute(_EDGES, [root_id, root_id, project_id])
        rows = cursor.fetchall()
    graph: dict[str, list[str]] = {}
    for task_id, requires_id, home, other in rows:
        graph.setdefault(str(task_id), []).append(str(requires_id))
        graph.setdefault(str(requires_id), [])
        if home != project_id or other != project_id:
            yield dangling_fault(task_id, requires_id, is_lost=None in (home, other))
    for cycle in find_cycles(graph):
        yield cycle_fault(cycle, "depend on each other")
    above = {str(pk): [str(parent)] for pk, parent in _parents(root_id)}
    for cycle in find_cycles(above):
        yield cycle_fault(cycle, "stand below each other")


@Prepared
def _parents(root_id: int) -> QuerySet[Any, Any]:
    below = Task.objects.filter(root=root_id, parent__isnull=False)
    return below.order_by().values_list("pk", "parent_id")


def _broken_seals(root_id: int) -> Iterator[IntegrityFault]:
    """Hash the sealed events of a tree again, each on the seal that stands before it."""
    before = AuditSeal.objects.filter(position=OuterRef("position") - 1).values("hash")
    columns = [f"event__{name}" for name in EVENT_COLUMNS]
    seals = AuditSeal.objects.filter(event__task__in=_tree(root_id)).order_by()
    rows = seals.values_list("position", "previous_hash", "hash", Subquery(before), *columns)
    for position, previous, sealed, linked, *event in rows.iterator(BATCH):
        if event_digest(event, position, previous) != sealed:
            yield seal_fault(event[0], position)
        if previous != (GENESIS if position == 1 else linked):
            yield link_fault(position)
