"""Reads for the phase graph and the timeline: one root's phases, steps, edges and times.

A plan of thousands of steps is read as counts by phase; only the phase that is open is read whole.
Source: UI.md section 5.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Count, Q

from orchestration.errors import NotFound
from orchestration.models import Assignment, Decision, Task, TaskDependency, Verification
from orchestration.policy import Backend
from orchestration.selectors.board import waiting_decisions
from orchestration.states import (
    ASSIGNMENT_LIVE,
    SKIPPED_REASON,
    AssignmentStatus,
    DecisionKind,
    LayerOutcome,
    Seat,
    TaskStatus,
)

VISIBLE_STEPS = 200
TIMELINE_ROWS = 40
MAX_SPANS = 2_000
NODE_FIELDS = (
    "project", "parent", "root", "number", "title", "status", "cancel_reason", "step_key", "phase",
    "version", "is_planned", "is_awaiting_commands", "remaining_dependencies", "is_assessed",
    "estimate_minutes", "route", "rank",
)  # fmt: skip
T = TaskStatus
ALARMING = (T.WAITING_HUMAN.value, T.FAILED.value, T.FATAL.value, T.BLOCKED.value)


@dataclass(slots=True)
class Step:
    """One step on the board, with the facts that its node chooses from."""

    task: Task
    needs: list[str] = field(default_factory=list)
    blocked_by: list[str] = field(default_factory=list)
    started_at: datetime | None = None
    finished_at: datetime | None = None
    waiting_since: datetime | None = None
    seat: str = ""
    needs_agent: bool = False
    next_keys: list[str] = field(default_factory=list)
    previous_keys: list[str] = field(default_factory=list)

    @property
    def is_finished(self) -> bool:
        """Whether what depends on it may go on."""
        return _is_finished(self.task.status, self.task.cancel_reason)

    @property
    def waits_for_sir(self) -> bool:
        """Whether an open decision holds this step up."""
        return self.waiting_since is not None or self.task.status == T.WAITING_HUMAN


@dataclass(frozen=True, slots=True)
class StepEdge:
    """A dependency, or a blocker, between two steps of one plan, by step key."""

    source: str
    target: str
    is_met: bool = False
    is_blocker: bool = False


@dataclass(slots=True)
class PhaseSteps:
    """One phase: counts by status and cancel reason, and its steps where they were read."""

    phase: int
    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    alarming: list[Step] = field(default_factory=list)
    is_read: bool = False

    @property
    def total(self) -> int:
        """How many steps the phase has."""
        return sum(self.counts.values())

    @property
    def finished(self) -> int:
        """How many of them are done or skipped."""
        return sum(n for (status, why), n in self.counts.items() if _is_finished(status, why))


def _is_finished(status: str, cancel_reason: str) -> bool:
    return status == T.DONE or (status == T.CANCELLED and cancel_reason == SKIPPED_REASON)


@dataclass(slots=True)
class StepGraph:
    """A root's phases and the edges between the steps that were read."""

    root: Task
    phases: list[PhaseSteps]
    edges: list[StepEdge]

    @property
    def total(self) -> int:
        """How many steps the plan has."""
        return sum(one.total for one in self.phases)

    @property
    def finished(self) -> int:
        """How many of them are done or skipped."""
        return sum(one.finished for one in self.phases)

    @property
    def steps(self) -> list[Step]:
        """Every step that was read, phase by phase."""
        return [step for phase in self.phases for step in phase.steps]


def read_graph(root: Task, *, open_phase: int | None = None) -> StepGraph:
    """Read a root's plan. Above 200 steps only one phase is read, the others as counts."""
    steps = Task.objects.filter(parent=root, is_superseded=False)
    phases: dict[int, PhaseSteps] = {}
    counted = steps.order_by("phase").values_list("phase", "status", "cancel_reason")
    for phase, status, why, n in counted.annotate(n=Count("pk")):
        phases.setdefault(phase, PhaseSteps(phase)).counts[status, why] = n
    graph = StepGraph(root, list(phases.values()), [])
    if graph.total > VISIBLE_STEPS:
        steps = steps.filter(phase=open_phase if open_phase in phases else -1)
        _add_alarming(root, phases)
    found = _read_steps(root, steps)
    for one in found:
        phases[one.task.phase].steps.append(one)
    for phase in graph.phases:
        phase.is_read = len(phase.steps) == phase.total
    graph.edges = _add_links(root, found)
    _add_times(root, found)
    return graph


def _read_steps(root: Task, rows: Iterable[Task]) -> list[Step]:
    if not isinstance(rows, list):
        rows = rows.only(*NODE_FIELDS).order_by("phase", "pk")  # type: ignore[attr-defined]
    found = []
    for task in rows:
        task.project, task.parent = root.project, root
        task.root = root.root or root
        found.append(Step(task))
    return found


def _add_alarming(root: Task, phases: Mapping[int, PhaseSteps]) -> None:
    """Add the amber and red steps of folded phases: they are listed by name."""
    rows = Task.objects.filter(parent=root, is_superseded=False).filter(
        Q(status__in=ALARMING) | Q(pk__in=waiting_decisions().values("task"))
    )
    for one in _read_steps(root, rows):
        phases[one.task.phase].alarming.append(one)


def read_step(step_id: int) -> Step:
    """Read one step of a plan with what it needs, for its node alone.

    Errors: NotFound, also for a root.
    """
    task = Task.objects.select_related("project", "parent", "root").filter(pk=step_id).first()
    if task is None or task.parent is None:
        raise NotFound("There is no such step.")
    step = _read_steps(task.parent, [task])[0]
    needed = Task.objects.filter(dependents__task=task).exclude(status=T.DONE.value)
    step.needs = [
        one.step_key for one in needed.order_by("pk") if one.cancel_reason != SKIPPED_REASON
    ]
    if task.status == T.BLOCKED:
        step.blocked_by = [one.step_key or str(one) for one in task.blocked_by.order_by("pk")]
    _add_neighbours(step)
    _add_times(task.parent, [step], where=Q(task=task))
    return step


def _add_neighbours(step: Step) -> None:
    """Add the steps before and behind one, in the order in which the whole graph names them."""
    siblings = Task.objects.filter(parent=step.task.parent_id, is_superseded=False)
    ids = siblings.order_by().values("pk")
    edges = TaskDependency.objects.order_by("pk")
    behind = edges.filter(requires=step.task, task__in=ids)
    held = siblings.filter(status=T.BLOCKED.value, blocked_by=step.task).order_by("pk")
    step.next_keys = [
        *behind.values_list("task__step_key", flat=True),
        *held.values_list("step_key", flat=True),
    ]
    before = edges.filter(task=step.task, requires__in=ids)
    step.previous_keys = [
        *before.values_list("requires__step_key", flat=True), *step.blocked_by
    ]  # fmt: skip


def _add_links(root: Task, found: Sequence[Step]) -> list[StepEdge]:
    by_id = {one.task.pk: one for one in found}
    edges = []
    pairs = TaskDependency.objects.filter(task__parent=root, task__is_superseded=False)
    for needed, later in pairs.order_by("pk").values_list("requires_id", "task_id"):
        source, target = by_id.get(needed), by_id.get(later)
        if target is None or source is None:
            continue
        is_met = _is_finished(source.task.status, source.task.cancel_reason)
        edges.append(StepEdge(source.task.step_key, target.task.step_key, is_met=is_met))
        if not is_met:
            target.needs.append(source.task.step_key)
    links = Task.blocked_by.through.objects.filter(
        from_task__parent=root, from_task__status=T.BLOCKED.value
    )
    for later, needed in links.order_by("pk").values_list("from_task_id", "to_task_id"):
        source, target = by_id.get(needed), by_id.get(later)
        if source is not None and target is not None:
            target.blocked_by.append(source.task.step_key)
            edges.append(StepEdge(source.task.step_key, target.task.step_key, is_blocker=True))
    return edges


def _add_times(root: Task, found: Sequence[Step], *, where: Q | None = None) -> None:
    """Add first start, last end, the seat at work, and since when Sir is waited for."""
    by_id = {one.task.pk: one for one in found}
    mine = where or Q(task__parent=root, task__is_superseded=False)
    live = [state.value for state in ASSIGNMENT_LIVE]
    if not by_id:
        return
    rows = Assignment.objects.filter(mine).order_by("pk")
    for pk, seat, backend, status, leased_at, finished_at in rows.values_list(
        "task_id", "seat", "backend", "status", "leased_at", "finished_at"
    ):
        step = by_id.get(pk)
        if step is None:
            continue
        if leased_at is not None:
            step.started_at = min(step.started_at or leased_at, leased_at)
        if finished_at is not None:
            step.finished_at = max(step.finished_at or finished_at, finished_at)
        if status in live:
            step.seat = seat
            step.needs_agent = step.needs_agent or _needs_agent(status, backend)
    waiting = waiting_decisions().filter(mine).order_by("pk")
    for task_id, since in waiting.values_list("task_id", "created_at"):
        step = by_id.get(task_id)
        if step is not None:
            step.waiting_since = min(step.waiting_since or since, since)


def _needs_agent(status: str, backend: str) -> bool:
    return status == AssignmentStatus.QUEUED and backend == Backend.EXTERNAL


# --- Timeline -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stretch:
    """One stretch of a step. `look` is work, running, failed, waiting or suspended."""

    look: str
    start: datetime
    end: datetime


@dataclass(slots=True)
class StepTimes:
    """One row of the timeline."""

    step_key: str
    title: str
    stretches: list[Stretch] = field(default_factory=list)


def read_timeline(root: Task, now: datetime) -> list[StepTimes]:
    """Read the times of a root's steps, those that moved last, in plan order.

    Shape: at most 40 rows. Steps that never started have none.
    """
    mine = Q(task__parent=root, task__is_superseded=False)
    rows = list(
        Assignment.objects.filter(mine, leased_at__isnull=False)
        .exclude(seat__in=[Seat.SCORER.value])
        .order_by("-leased_at")
        .values_list("task_id", "leased_at", "finished_at")[:MAX_SPANS]
    )
    ids = list(dict.fromkeys(pk for pk, _, _ in rows))[:TIMELINE_ROWS]
    tasks = Task.objects.filter(pk__in=ids).order_by("phase", "pk").values_list(
        "pk", "step_key", "title"
    )  # fmt: skip
    found = {pk: StepTimes(key, title) for pk, key, title in tasks}
    for pk, start, end in rows:
        if pk in found and start is not None:
            look = "work" if end is not None else "running"
            found[pk].stretches.append(Stretch(look, start, end or now))
    _add_waits(found, now)
    _add_failures(found)
    for one in found.values():
        one.stretches.sort(key=lambda stretch: stretch.start)
    return list(found.values())


def _add_waits(found: Mapping[int, StepTimes], now: datetime) -> None:
    rows = (
        Decision.objects.filter(task__in=found)
        .exclude(kind=DecisionKind.HIGH_NOTICE.value)
        .order_by("pk")
        .values_list("task_id", "created_at", "decided_at")
    )
    for pk, start, end in rows:
        if pk is not None:
            found[pk].stretches.append(Stretch("waiting", start, end or now))


def _add_failures(found: Mapping[int, StepTimes]) -> None:
    rows = (
        Verification.objects.filter(task__in=found, outcome=LayerOutcome.FAILED.value)
        .order_by("pk")
        .values_list("task_id", "created_at", "duration_ms")
    )
    for pk, at, milliseconds in rows:
        began = at - timedelta(milliseconds=milliseconds or 0)
        found[pk].stretches.append(Stretch("failed", began, at))
