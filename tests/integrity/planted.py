"""Faults of every kind, planted by force in the tree of a root with steps 1, 2 and 3.

Each says how it is repaired.
"""

from __future__ import annotations

from collections.abc import Callable

from django.apps import apps
from django.db import connection

from orchestration.models import Artifact, AuditEvent, AuditSeal, Blueprint, Task, TaskDependency
from tests.factories import child, new_project, step, submit_plan
from tests.integrity.planting import (
    BLUEPRINT,
    CONTENT,
    EDGE,
    EVENT,
    SEAL,
    TASK,
    force,
    unconstrained,
    unguarded,
)

Plant = Callable[[Task], Callable[[], None]]


def changed_status(root: Task) -> Callable[[], None]:
    """A row says review, and its history does not."""
    held = child(root, "2")
    force(f"UPDATE {TASK} SET status = 'review' WHERE id = %s", held.pk)
    return lambda: _set_status(held)


def illegal_status(root: Task) -> Callable[[], None]:
    """A state that no table knows."""
    held = child(root, "2")
    with unconstrained():
        force(f"UPDATE {TASK} SET status = 'almost' WHERE id = %s", held.pk)
    return lambda: _set_status(held)


def _set_status(held: Task) -> None:
    force(f"UPDATE {TASK} SET status = %s WHERE id = %s", held.status, held.pk)


def cycle(root: Task) -> Callable[[], None]:
    """Two steps wait for each other."""
    one, two = child(root, "2").pk, child(root, "3").pk
    TaskDependency.objects.create(task_id=one, requires_id=two)
    return lambda: force(f"DELETE FROM {EDGE} WHERE task_id = %s AND requires_id = %s", one, two)


def lost_root(root: Task) -> Callable[[], None]:
    """The root itself waits for a task that is not there."""
    gone = 99_999_998
    with unconstrained():
        force(f"INSERT INTO {EDGE} (task_id, requires_id) VALUES (%s, %s)", root.pk, gone)
    return lambda: force(f"DELETE FROM {EDGE} WHERE requires_id = %s", gone)


def dangling(root: Task) -> Callable[[], None]:
    """A step waits for another project's task."""
    other = submit_plan(new_project("other"), step("1", run=()))
    edge = TaskDependency.objects.create(task=child(root, "2"), requires=other)
    return lambda: force(f"DELETE FROM {EDGE} WHERE id = %s", edge.pk)


def lost_task(root: Task) -> Callable[[], None]:
    """A step waits for a task that is not there."""
    gone = 99_999_999
    with unconstrained():
        force(
            f"INSERT INTO {EDGE} (task_id, requires_id) VALUES (%s, %s)", child(root, "2").pk, gone
        )
    return lambda: force(f"DELETE FROM {EDGE} WHERE requires_id = %s", gone)


def changed_event(root: Task) -> Callable[[], None]:
    """Somebody edited what was said."""
    event = AuditEvent.objects.filter(task=root, kind="task.working").first()
    assert event is not None

    def say(why: str) -> None:
        with unguarded(EVENT):
            force(f"UPDATE {EVENT} SET why = %s WHERE id = %s", why, event.pk)

    say("nothing to see here")
    return lambda: say(event.why)


def broken_link(root: Task) -> Callable[[], None]:
    """A seal leads to another one than the one before it."""
    seal = AuditSeal.objects.filter(event__task=root).first()
    assert seal is not None

    def point(previous: str) -> None:
        with unguarded(SEAL):
            force(f"UPDATE {SEAL} SET previous_hash = %s WHERE position = %s", previous,
                  seal.position)  # fmt: skip

    point("f" * 64)
    return lambda: point(seal.previous_hash)


def changed_artifact(root: Task) -> Callable[[], None]:
    """The bytes of a locked artifact are others."""
    digest = Artifact.objects.get(task=child(root, "1"), name="made.txt").content_id

    def fill(data: bytes) -> None:
        with unguarded(CONTENT):
            force(f"UPDATE {CONTENT} SET data = %s WHERE sha256 = %s", data, digest)

    fill(b"ho\n")
    return lambda: fill(b"hi\n")


def changed_blueprint(root: Task) -> Callable[[], None]:
    """The locked plan says something else."""
    blueprint = Blueprint.objects.get(task=root)

    def write(text: str) -> None:
        with unguarded(BLUEPRINT):
            force(f"UPDATE {BLUEPRINT} SET canonical = %s WHERE id = %s", text, blueprint.pk)

    write("{}")
    return lambda: write(blueprint.canonical)


PLANTED: dict[str, Plant] = {
    "unexplained_row": changed_status,
    "illegal_status": illegal_status,
    "dependency_cycle": cycle,
    "dangling_dependency": dangling,
    "lost_task": lost_task,
    "lost_root": lost_root,
    "broken_seal": changed_event,
    "broken_link": broken_link,
    "artifact_changed": changed_artifact,
    "blueprint_changed": changed_blueprint,
}
KINDS = {"broken_link": "broken_seal", "lost_task": "dangling_dependency",
         "lost_root": "dangling_dependency"}  # fmt: skip


WRITTEN = {"project", "decision", "notice", "auditevent", "auditseal"}
"""Tables that a stop writes: the project's state, the item, who is told, and the trail."""


def everything_else() -> dict[str, list[tuple[object, ...]]]:
    """Every row of the engine that a stop must leave alone."""
    tables = [one._meta.db_table for one in apps.get_app_config("orchestration").get_models()]
    found: dict[str, list[tuple[object, ...]]] = {}
    with connection.cursor() as cursor:
        for name in tables:
            cursor.execute(f"SELECT * FROM {name} ORDER BY 1")
            found[name.removeprefix("orchestration_")] = cursor.fetchall()
    return {name: rows for name, rows in found.items() if name not in WRITTEN}
