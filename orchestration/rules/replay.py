"""Rebuild a project's board at any past event from its audit events alone: a pure fold.

Events come in order of their position. What they do not say is not known here: nothing is read
from the present.
Source: DESIGN section 13, UI.md section 5.4 (Replay).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from orchestration.states import (
    SKIPPED_REASON,
    DecisionKind,
    ProjectStatus,
    Route,
    TaskKind,
    TaskStatus,
)

REPLAYED_NOUNS = ("task", "project", "assignment", "decision", "assessment")
NOTICE = DecisionKind.HIGH_NOTICE.value
LEASED, QUEUED = "leased", "queued"
PLANNED_ROUTES = (Route.THREE_STEP.value, Route.WORKFLOW.value)


class PastEvent(NamedTuple):
    """One sealed event. Shape: `subject` is `noun:id`; `after` is what the event says of it."""

    position: int
    kind: str
    subject: str
    task_id: int | None
    after: Mapping[str, Any]
    why: str
    at: datetime


@dataclass(slots=True)
class PastTask:
    """A root or a step as it stood. `needs` are step keys of the same plan."""

    id: int
    created_at: datetime
    number: int = 0
    parent_id: int | None = None
    kind: str = TaskKind.TASK.value
    title: str = ""
    step_key: str = ""
    phase: int = 1
    rank: int = 0
    status: str = TaskStatus.PENDING.value
    cancel_reason: str = ""
    attempt: int = 1
    needs: tuple[str, ...] = ()
    is_superseded: bool = False
    is_assessed: bool = False
    is_self_initiated: bool = False
    route: str = ""

    @property
    def is_finished(self) -> bool:
        """Whether its plan no longer waits for it."""
        return self.status == TaskStatus.DONE or (
            self.status == TaskStatus.CANCELLED and self.cancel_reason == SKIPPED_REASON
        )

    @property
    def is_planned(self) -> bool:
        """Whether its route gives it a plan of steps."""
        return self.route in PLANNED_ROUTES


@dataclass(slots=True)
class PastWork:
    """An assignment as it stood. `start` and `end` are those of its newest lease."""

    id: int
    task_id: int
    seat: str
    backend: str
    status: str
    spans: list[tuple[datetime, datetime | None]] = field(default_factory=list)


@dataclass(slots=True)
class PastDecision:
    """A question to Sir; open while it has no `closed_at`."""

    id: int
    kind: str
    task_id: int | None
    opened_at: datetime
    closed_at: datetime | None = None

    @property
    def waits(self) -> bool:
        """Whether it is open and holds something up."""
        return self.closed_at is None and self.kind != NOTICE


@dataclass(slots=True)
class PastTraffic:
    """How much method the messages got, as tasks by outcome. Shape: ids by stage and outcome."""

    first: dict[str, set[int]] = field(default_factory=dict)
    second: dict[str, set[int]] = field(default_factory=dict)


@dataclass(slots=True)
class PastBoard:
    """The board of one project after the event at `position`."""

    position: int = 0
    at: datetime | None = None
    project_status: str = ProjectStatus.ACTIVE.value
    tasks: dict[int, PastTask] = field(default_factory=dict)
    work: dict[int, PastWork] = field(default_factory=dict)
    decisions: dict[int, PastDecision] = field(default_factory=dict)
    traffic: PastTraffic = field(default_factory=PastTraffic)

    def roots(self) -> list[PastTask]:
        """The tasks of the master list, in the list's order."""
        found = [
            one
            for one in self.tasks.values()
            if one.parent_id is None and one.kind == TaskKind.TASK
        ]
        return sorted(found, key=_list_order)

    def steps(self, root_id: int) -> list[PastTask]:
        """The steps that the plan of a root has now, phase by phase."""
        found = [
            one for one in self.tasks.values() if one.parent_id == root_id and not one.is_superseded
        ]
        return sorted(found, key=lambda one: (one.phase, one.id))

    def root_of(self, task_id: int) -> int:
        """The root above a task."""
        task = self.tasks.get(task_id)
        while task is not None and task.parent_id is not None:
            task_id = task.parent_id
            task = self.tasks.get(task_id)
        return task_id

    def open_phase(self, root_id: int) -> int:
        """The first phase of a plan with a step to wait for."""
        unfinished = [one.phase for one in self.steps(root_id) if not one.is_finished]
        return min(unfinished, default=1)


IN_PROGRESS = frozenset(
    {"claimed", "working", "review", "blocked", "waiting_human", "failed", "fatal"}
)


def _list_order(task: PastTask) -> tuple[int, int, int]:
    if task.status in IN_PROGRESS:
        return (0, task.rank, task.id)
    if task.status == TaskStatus.PENDING:
        return (1, task.rank, task.id)
    return (2 if task.status == TaskStatus.DONE else 3, -task.number, task.id)


def replay(events: Iterable[PastEvent], board: PastBoard | None = None) -> PastBoard:
    """Fold events, in order of position, into a board (a fresh one, or one rebuilt so far)."""
    board = board or PastBoard()
    for event in events:
        noun = event.kind.partition(".")[0]
        fold = FOLDS.get(noun)
        if fold is not None:
            fold(board, event)
        board.position, board.at = event.position, event.at
    return board


def _id_of(event: PastEvent) -> int:
    return int(event.subject.partition(":")[2])


def _fold_project(board: PastBoard, event: PastEvent) -> None:
    status = event.after.get("status")
    if status in {one.value for one in ProjectStatus}:
        board.project_status = str(status)


COPIED = {
    "number": "number",
    "title": "title",
    "parent": "parent_id",
    "kind": "kind",
    "step": "step_key",
    "phase": "phase",
    "rank": "rank",
    "status": "status",
    "attempt": "attempt",
    "is_superseded": "is_superseded",
    "self_initiated": "is_self_initiated",
    "route": "route",
    "is_assessed": "is_assessed",
}
"""What a task's event says, and the field it is kept in."""


def _fold_task(board: PastBoard, event: PastEvent) -> None:
    if event.kind == "task.replaced":
        _rewire(board, event)
        return
    if event.kind == "task.progress":
        return
    pk = _id_of(event)
    task = board.tasks.setdefault(pk, PastTask(pk, event.at))
    for name, kept in COPIED.items():
        if name in event.after:
            setattr(task, kept, event.after[name])
    if "needs" in event.after:
        task.needs = tuple(event.after["needs"])
    if "status" in event.after:
        task.cancel_reason = str(event.after.get("cancel_reason", _kept_reason(task)))


def _kept_reason(task: PastTask) -> str:
    """A task that was cancelled before keeps why; any other state has no such reason."""
    return task.cancel_reason if task.status == TaskStatus.CANCELLED else ""


def _rewire(board: PastBoard, event: PastEvent) -> None:
    """A step took another's place: what waited for the old one waits for the new one."""
    old = board.tasks.get(_id_of(event))
    if old is None:
        return
    for pk in event.after["dependents"]:
        task = board.tasks.get(pk)
        if task is not None:
            new = event.after["by"]
            task.needs = tuple(new if key == old.step_key else key for key in task.needs)


def _fold_assignment(board: PastBoard, event: PastEvent) -> None:
    status = event.after.get("status")
    if status is None or event.task_id is None:
        return
    pk = _id_of(event)
    work = board.work.get(pk)
    if work is None:
        work = PastWork(pk, event.task_id, event.after["seat"], event.after["backend"], QUEUED)
        board.work[pk] = work
    if status == LEASED:
        work.spans.append((event.at, None))
    elif work.spans and work.spans[-1][1] is None:
        work.spans[-1] = (work.spans[-1][0], event.at)
    work.status = str(status)


def _fold_decision(board: PastBoard, event: PastEvent) -> None:
    pk = _id_of(event)
    if event.kind == "decision.opened":
        kind = str(event.after["kind"])
        board.decisions[pk] = PastDecision(pk, kind, event.task_id, event.at)
        return
    decision = board.decisions.get(pk)
    if decision is not None and "status" in event.after:
        decision.closed_at = event.at


def _fold_assessment(board: PastBoard, event: PastEvent) -> None:
    if event.task_id is None:
        return
    task = board.tasks.setdefault(event.task_id, PastTask(event.task_id, event.at))
    task.is_assessed = task.is_assessed or event.kind == "assessment.s1"
    if event.kind == "assessment.s0":
        outcome = str(event.after["outcome"])
        board.traffic.first.setdefault(outcome, set()).add(event.task_id)
        # A message that waits is looked at again when it starts; its route is open till then.
        is_decided = outcome == "direct" and not event.after.get("waits")
        task.is_assessed = task.is_assessed or is_decided
        return
    task.route = str(event.after["route"])
    if not event.why:  # A later re-score of an upgrade is not traffic.
        board.traffic.second.setdefault(task.route, set()).add(event.task_id)


FOLDS: Mapping[str, Callable[[PastBoard, PastEvent], None]] = {
    "project": _fold_project,
    "task": _fold_task,
    "assignment": _fold_assignment,
    "decision": _fold_decision,
    "assessment": _fold_assessment,
}
