"""Look for state that cannot be: what no service of ours would have written.

Each look is linear in the rows of one project, streams them in batches and locks nothing, so that
work goes on meanwhile; whoever acts on a finding confirms it under a lock.
Source: DESIGN section 10 ("Safe stop").
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from django.db import connection
from django.db.models import Model, QuerySet
from django.utils import timezone

from orchestration.contracts.graph import find_cycles
from orchestration.models import (
    Artifact,
    ArtifactContent,
    Assignment,
    AuditEvent,
    AuditSeal,
    Blueprint,
    Decision,
    Defect,
    Plan,
    Project,
    Task,
    TaskDependency,
)
from orchestration.models.statements import EVENT_COLUMNS
from orchestration.selectors.audit import SETTLED_AFTER
from orchestration.selectors.tasks import IMPORTED_REASON
from orchestration.services.audit import event_digest
from orchestration.services.work import locked
from orchestration.states import (
    AssignmentStatus,
    DecisionStatus,
    DefectStatus,
    PlanStatus,
    ProjectStatus,
    TaskStatus,
)

BATCH = 2_000
CONTENTS = 20
"""Artifacts may be large: so many are held at once."""
IMPORTED_KIND = f"task.{IMPORTED_REASON}"
ALIASES = {"decision.opened": DecisionStatus.OPEN.value, "plan.drafted": PlanStatus.DRAFT.value,
           "project.created": ProjectStatus.ACTIVE.value}  # fmt: skip
"""Events that begin a row and do not name its first state."""


class FaultKind(StrEnum):
    """What can be wrong."""

    DANGLING = "dangling_dependency"
    CYCLE = "dependency_cycle"
    STATUS = "illegal_status"
    HISTORY = "unexplained_row"
    SEAL = "broken_seal"
    UNSEALED = "unsealed_event"
    BLUEPRINT = "blueprint_changed"
    ARTIFACT = "artifact_changed"
    IMPORT = "faulty_import"


@dataclass(frozen=True, slots=True)
class IntegrityFault:
    """One thing that is wrong. Shape: `subject` as in the trail: `task:12`."""

    kind: FaultKind
    subject: str
    detail: str

    def document(self) -> dict[str, str]:
        """As the decision, the API and the command show it."""
        return {"kind": self.kind.value, "subject": self.subject, "detail": self.detail}


@dataclass(frozen=True, slots=True)
class _Machine:
    """One state machine whose rows the trail explains."""

    noun: str
    model: type[Model]
    states: type[StrEnum]
    project: str


MACHINES = (
    _Machine("project", Project, ProjectStatus, "pk"),
    _Machine("task", Task, TaskStatus, "project_id"),
    _Machine("assignment", Assignment, AssignmentStatus, "project_id"),
    _Machine("plan", Plan, PlanStatus, "task__project_id"),
    _Machine("defect", Defect, DefectStatus, "task__project_id"),
    _Machine("decision", Decision, DecisionStatus, "project_id"),
)
STATE_KINDS: Mapping[str, str] = {
    f"{one.noun}.{state}": state.value for one in MACHINES for state in one.states
} | ALIASES
"""The state that each kind of event leaves its row in."""
TASK_KINDS = (*(f"task.{state}" for state in TaskStatus), IMPORTED_KIND)


def find_faults(project_id: int) -> Iterator[IntegrityFault]:
    """Find everything that is wrong in a project, the quick looks first."""
    yield from wrong_edges(project_id)
    yield from cycles(project_id)
    yield from unexplained_rows(project_id)
    yield from broken_seals(project_id)
    yield from changed_blueprints(project_id)
    yield from changed_artifacts(project_id)


def wrong_edges(project_id: int) -> Iterator[IntegrityFault]:
    """Find dependencies on, or of, a task that is not there, and those that leave the project."""
    edge, task = TaskDependency._meta.db_table, Task._meta.db_table
    sql = (
        f"SELECT d.task_id, d.requires_id, t.id, r.id FROM {edge} d "  # noqa: S608
        f"LEFT JOIN {task} t ON t.id = d.task_id LEFT JOIN {task} r ON r.id = d.requires_id "
        "WHERE (t.project_id = %s OR r.project_id = %s) "
        "AND (t.id IS NULL OR r.id IS NULL OR t.project_id <> r.project_id) ORDER BY d.id"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [project_id, project_id])
        rows = cursor.fetchall()
    for task_id, requires_id, known, required in rows:
        yield dangling_fault(task_id, requires_id, is_lost=None in (known, required))


def dangling_fault(task_id: int, requires_id: int, *, is_lost: bool) -> IntegrityFault:
    """Name an edge that leads nowhere, or out of its project."""
    missing = "a task that is not there" if is_lost else "another project's"
    return IntegrityFault(
        FaultKind.DANGLING, f"task:{task_id}",
        f"task {task_id} depends on task {requires_id}: {missing}",
    )  # fmt: skip


def cycles(project_id: int) -> Iterator[IntegrityFault]:
    """Find tasks that wait for each other, and tasks that stand above themselves."""
    edges = TaskDependency.objects.filter(task__project=project_id).order_by()
    graph: dict[str, list[str]] = {}
    for task_id, requires_id in edges.values_list("task_id", "requires_id").iterator(BATCH):
        graph.setdefault(str(task_id), []).append(str(requires_id))
        graph.setdefault(str(requires_id), [])
    for cycle in find_cycles(graph):
        yield cycle_fault(cycle, "depend on each other")
    rows = Task.objects.filter(project=project_id, parent__isnull=False).order_by()
    above = {
        str(pk): [str(parent)] for pk, parent in rows.values_list("pk", "parent_id").iterator(BATCH)
    }
    for cycle in find_cycles(above):
        yield cycle_fault(cycle, "stand below each other")


def cycle_fault(cycle: list[str], how: str) -> IntegrityFault:
    """Name a circle by its first task, and show the way round."""
    way = " → ".join([*cycle[:20], "…" if len(cycle) > 20 else cycle[0]])
    return IntegrityFault(FaultKind.CYCLE, f"task:{cycle[0]}", f"tasks {how}: {way}")


def unexplained_rows(project_id: int) -> Iterator[IntegrityFault]:
    """Find rows in a state that no table knows, or other than their last event left them in."""
    last = _last_states(project_id)
    for machine in MACHINES:
        rows = machine.model._default_manager.filter(**{machine.project: project_id})
        known = frozenset(state.value for state in machine.states)
        for pk, status in rows.order_by().values_list("pk", "status").iterator(BATCH):
            subject = f"{machine.noun}:{pk}"
            if subject not in last and _is_early_light_plan(machine, pk):
                continue
            found = wrong_state(subject, status, last.get(subject), known)
            if found is not None:
                yield found
    yield from _changed_verdicts(project_id)


def _is_early_light_plan(machine: _Machine, pk: int) -> bool:
    """Whether a row is a light plan of the time before these were recorded; none of them moves."""
    if machine.model is not Plan:
        return False
    return Plan.objects.filter(pk=pk, is_light=True, status=PlanStatus.DRAFT.value).exists()


def _last_states(project_id: int) -> dict[str, str]:
    """The state in which the trail left each row of a project."""
    rows = AuditEvent.objects.filter(project=project_id, kind__in=[*STATE_KINDS, IMPORTED_KIND])
    states: dict[str, str] = {}
    ordered = rows.order_by("pk").values_list("subject", "kind")
    for subject, kind in ordered.iterator(BATCH):
        states[subject] = STATE_KINDS.get(kind, kind)
    imported = {subject for subject, state in states.items() if state == IMPORTED_KIND}
    if imported:
        first = rows.filter(kind=IMPORTED_KIND).values_list("subject", "after")
        states |= {
            subject: str((after or {}).get("status"))
            for subject, after in first
            if subject in imported
        }
    return states


def wrong_state(
    subject: str, status: str, explained: str | None, known: frozenset[str]
) -> IntegrityFault | None:
    """Hold a state against the known ones and the one that its history left it in."""
    if status not in known:
        return IntegrityFault(FaultKind.STATUS, subject, f"{subject} has no legal state: {status}")
    if explained != status:
        said = f"its history left it {explained}" if explained else "no event of it is there"
        return IntegrityFault(FaultKind.HISTORY, subject, f"{subject} is {status}; {said}")
    return None


def _changed_verdicts(project_id: int, *, pk: int | None = None) -> Iterator[IntegrityFault]:
    """Find decisions that say another verdict than was recorded when they were decided."""
    events = AuditEvent.objects.filter(project=project_id, kind="decision.decided").order_by("pk")
    rows = Decision.objects.filter(project=project_id, status=DecisionStatus.DECIDED.value)
    if pk is not None:
        events, rows = events.filter(subject=f"decision:{pk}"), rows.filter(pk=pk)
    said = {subject: after or {} for subject, after in events.values_list("subject", "after")}
    for one, verdict, digest in rows.order_by("pk").values_list("pk", "verdict", "digest"):
        recorded = said.get(f"decision:{one}")
        if recorded and (recorded.get("verdict"), recorded.get("digest")) != (verdict, digest):
            yield IntegrityFault(
                FaultKind.HISTORY, f"decision:{one}",
                f"decision:{one} says {verdict}; {recorded.get('verdict')} was decided",
            )  # fmt: skip


def is_still_wrong(project_id: int, fault: IntegrityFault) -> bool:
    """Look at one row again: what ran meanwhile may have explained it.

    Everything but a row's state never changes in passing, so it is as wrong as it was.
    Locks: the row; whoever moves it holds that lock until its event is there too.
    """
    noun, _, name = fault.subject.partition(":")
    if fault.kind is FaultKind.UNSEALED:
        return not AuditSeal.objects.filter(event=int(name)).exists()
    machine = next((one for one in MACHINES if one.noun == noun), None)
    if machine is None or fault.kind not in (FaultKind.HISTORY, FaultKind.STATUS):
        return True
    rows = locked(machine.model._default_manager.filter(pk=int(name)))
    status = rows.values_list("status", flat=True).first()
    if status is None:
        return False
    known = frozenset(state.value for state in machine.states)
    explained = explained_state(project_id, fault.subject)
    if wrong_state(fault.subject, status, explained, known) is not None:
        return True
    return machine.model is Decision and any(_changed_verdicts(project_id, pk=int(name)))


def explained_state(project_id: int, subject: str) -> str | None:
    """The state in which the trail left one row, or None where it never names it."""
    noun, _, name = subject.partition(":")
    # By the task there is an index; a project may have a hundred thousand events.
    held = {"task": int(name)} if noun == "task" else {"project": project_id}
    events = AuditEvent.objects.filter(
        subject=subject, kind__in=[*STATE_KINDS, IMPORTED_KIND], **held
    )
    newest = events.order_by("-pk").values_list("kind", "after").first()
    if newest is None:
        return None
    kind, after = newest
    return STATE_KINDS.get(kind) or str((after or {}).get("status"))


def broken_seals(project_id: int) -> Iterator[IntegrityFault]:
    """Recompute the seals of a project's events; find broken links and what was never sealed."""
    columns = [f"event__{name}" for name in EVENT_COLUMNS]
    seals = AuditSeal.objects.filter(event__project=project_id).order_by("position")
    rows = seals.values_list("position", "previous_hash", "hash", *columns)
    for position, previous, sealed, *event in rows.iterator(BATCH):
        if event_digest(event, position, previous) != sealed:
            yield seal_fault(event[0], position)
    for position in _broken_links(project_id):
        yield link_fault(position)
    late = AuditEvent.objects.filter(
        project=project_id, seal__isnull=True, at__lt=timezone.now() - SETTLED_AFTER
    ).order_by("pk")
    for pk in late.values_list("pk", flat=True)[:CONTENTS]:
        yield IntegrityFault(FaultKind.UNSEALED, f"event:{pk}", f"event {pk} was never sealed")


def seal_fault(event_id: int, position: int) -> IntegrityFault:
    """Name an event that is not what its seal covers."""
    return IntegrityFault(
        FaultKind.SEAL, f"event:{event_id}",
        f"event {event_id} at position {position} is not what was sealed",
    )  # fmt: skip


def link_fault(position: int) -> IntegrityFault:
    """Name a seal that does not lead to the one before it."""
    return IntegrityFault(
        FaultKind.SEAL, f"seal:{position}", f"the link before position {position} is broken"
    )


def _broken_links(project_id: int) -> list[int]:
    """Positions of a project's seals whose link does not lead to the seal before."""
    seal, event = AuditSeal._meta.db_table, AuditEvent._meta.db_table
    sql = (
        f"SELECT s.position FROM {seal} s JOIN {event} e ON e.id = s.event_id "  # noqa: S608
        f"LEFT JOIN {seal} b ON b.position = s.position - 1 "
        "WHERE e.project_id = %s AND s.position > 1 "
        "AND (b.hash IS NULL OR b.hash <> s.previous_hash) ORDER BY s.position"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [project_id])
        return [row[0] for row in cursor.fetchall()]


def changed_blueprints(project_id: int) -> Iterator[IntegrityFault]:
    """Find locked plans that do not match the digest they were locked under."""
    yield from changed_among(Blueprint.objects.filter(task__project=project_id))


def changed_among(blueprints: QuerySet[Blueprint]) -> Iterator[IntegrityFault]:
    """Hash some locked plans again; find those that do not match."""
    rows = blueprints.order_by("pk").values_list("pk", "canonical", "sha256")
    for pk, canonical, digest in rows.iterator(CONTENTS):
        if hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest() != digest:
            yield IntegrityFault(
                FaultKind.BLUEPRINT, f"blueprint:{pk}", f"blueprint {pk} is not what was locked"
            )


def changed_artifacts(project_id: int) -> Iterator[IntegrityFault]:
    """Find artifacts whose bytes do not match their digest, or are gone."""
    yield from unsound_among(Artifact.objects.filter(project=project_id))


def unsound_among(artifacts: QuerySet[Artifact]) -> Iterator[IntegrityFault]:
    """Hash what some artifacts hold again; find those that do not match."""
    rows = artifacts.order_by("pk")
    named: dict[str, tuple[int, str]] = {}
    for pk, name, digest in rows.values_list("pk", "name", "content_id").iterator(BATCH):
        named.setdefault(digest, (pk, name))
    wanted = sorted(named)
    for start in range(0, len(wanted), BATCH):
        digests = wanted[start : start + BATCH]
        sound = _sound_contents(digests)
        for digest in digests:
            if digest not in sound:
                pk, name = named[digest]
                yield IntegrityFault(
                    FaultKind.ARTIFACT, f"artifact:{pk}",
                    f"artifact {pk} ({name[:200]}) is not what was locked",
                )  # fmt: skip


def _sound_contents(digests: list[str]) -> set[str]:
    """Which of some contents hash to the digest they are stored under."""
    rows = ArtifactContent.objects.filter(sha256__in=digests).order_by()
    stored = rows.values_list("sha256", "size_bytes", "data").iterator(CONTENTS)
    return {
        digest
        for digest, size, data in stored
        if len(data) == size and hashlib.sha256(bytes(data)).hexdigest() == digest
    }
