"""The judge of a run's end: each thing that must hold is seen where it is broken by force."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import transaction

from orchestration.models import Artifact, Assignment, AuditEvent, Project, Task
from orchestration.simulation import oracle as oracle_module
from orchestration.simulation import script as script_module
from orchestration.simulation.invariants import broken_invariants
from orchestration.simulation.oracle import COMPLETED, Oracle
from orchestration.simulation.play import simulate
from orchestration.simulation.script import Rates, write_script

CALM = Rates(
    fail=0.0, slow=0.0, timeouts=0.0, contradictions=0.0, kill_workers=0.0, handoffs=0.0,
    questions=0.0,
)  # fmt: skip


def step_of(project: Project) -> Task:
    """A step that was done at once, of a root that was planned."""
    rows = Task.objects.filter(project=project, blueprint__isnull=False, is_planned=False)
    found = rows.order_by("pk").first()
    assert found is not None
    return found


def tell(task: Task, kind: str, **after: object) -> None:
    """Add an event to the trail."""
    AuditEvent.objects.create(
        project=task.project, task=task, kind=kind, subject=f"task:{task.pk}", actor="x",
        after=after or None,
    )  # fmt: skip


def set_step(**changed: object) -> Callable[[Project], object]:
    """Change a step's row by force."""
    return lambda project: Task.objects.filter(pk=step_of(project).pk).update(**changed)


def set_root(**changed: object) -> Callable[[Project], object]:
    """Change every root's row by force."""
    rows = Task.objects.filter(parent__isnull=True)
    return lambda project: rows.filter(project=project).update(**changed)


def run_roots_at_once(project: Project) -> None:
    for task in Task.objects.filter(project=project, parent__isnull=True, is_planned=True):
        tell(task, "task.working", status="working")


def lock_again(project: Project) -> None:
    row = Artifact.objects.filter(task=step_of(project)).order_by("pk")[0]
    row.pk, row.version = None, 2
    row.save(force_insert=True)


def lock_in_the_trail(project: Project) -> None:
    row = Artifact.objects.filter(task=step_of(project)).order_by("pk")[0]
    tell(row.task, "artifact.locked", name=row.name, version=row.version)


def revive(project: Project) -> None:
    pk = Assignment.objects.filter(task=step_of(project), seat="executor").order_by("pk")[0].pk
    Assignment.objects.filter(pk=pk).update(status="queued")


PLANTS: list[tuple[Callable[[Project], object], str]] = [
    (set_step(status="working"), "neither ended nor waiting for Sir"),
    (set_step(status="failed"), "neither ended nor waiting for Sir"),
    (set_step(status="working", is_superseded=True), "neither ended nor waiting for Sir"),
    (set_step(status="working"), "at work, and nobody holds it"),
    (set_step(status="cancelled"), "tasks whose state the trail does not tell"),
    (set_step(status="cancelled"), "the trail counts other tasks than there are"),
    (set_step(status="cancelled"), "faults"),
    (set_root(last_outcome="waived: so"), "not as scripted"),
    (revive, "live work of ended tasks"),
    (revive, "assignments whose state the trail does not tell"),
    (lambda project: tell(step_of(project), "task.done", status="done"), "done twice"),
    (lock_in_the_trail, "locked twice"),
    (lock_in_the_trail, "the trail locks another number of artifacts"),
    (lock_again, "a second version without a fix"),
    (lambda project: tell(step_of(project), "loop.commanded"), "counts other control commands"),
    (lambda project: tell(step_of(project), "archive.written"), "counts other archives"),
    (run_roots_at_once, "planned roots ran at once"),
    (lambda project: Project.objects.filter(pk=project.pk).update(status="active"),
     "every root has ended, and the project is active"),
]  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_each_invariant_is_seen_where_it_is_broken() -> None:
    script = write_script(8, 3, CALM)
    result = simulate(script, slug="simulation-broken")
    assert result.is_clean, result.broken
    ended = Oracle(script)
    ended.state = dict.fromkeys(script.roots, COMPLETED)
    assert broken_invariants(result.project, script, ended) == []
    unseen = []
    for plant, words in PLANTS:
        with transaction.atomic():
            plant(result.project)
            found = broken_invariants(result.project, script, ended)
            unseen += [words] * (not any(words in one for one in found))
            transaction.set_rollback(True)
    assert unseen == []
    waiting = broken_invariants(result.project, script, Oracle(script))
    assert waiting == ["the oracle is not at the end: verdicts are missing"]


@pytest.mark.parametrize("module", [oracle_module, script_module])
def test_the_oracle_knows_the_script_alone(module: object) -> None:
    """What judges the engine must not ask the engine."""
    tree = ast.parse(Path(str(module.__file__)).read_text())  # type: ignore[attr-defined]
    found = {one.module for one in ast.walk(tree) if isinstance(one, ast.ImportFrom)}
    found |= {
        name.name for one in ast.walk(tree) if isinstance(one, ast.Import) for name in one.names
    }
    ours = {one for one in found if str(one).startswith(("orchestration", "django"))}
    assert ours <= {"orchestration.simulation.script"}
