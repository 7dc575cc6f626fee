"""Reads of the past: a project's sealed events up to a position, folded into its board then.

Nothing but the audit trail is read. The board as the graph, the timeline and the figures take it
is made of what the fold knows.
Source: DESIGN section 13, UI.md section 5.4 (Replay).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from django.db.models import Max, Min, Q

from orchestration.models import AuditSeal, Project, Task
from orchestration.policy import Backend
from orchestration.rules.replay import (
    LEASED,
    QUEUED,
    REPLAYED_NOUNS,
    PastBoard,
    PastEvent,
    PastTask,
    PastWork,
    replay,
)
from orchestration.selectors.board import Running, Traffic
from orchestration.selectors.graph import (
    ALARMING,
    VISIBLE_STEPS,
    PhaseSteps,
    Step,
    StepEdge,
    StepGraph,
    StepTimes,
    Stretch,
)
from orchestration.selectors.master import MasterTask
from orchestration.selectors.replay_checkpoints import EVERY, Checkpoints, checkpoints
from orchestration.states import Route, Seat, TaskStatus

BATCH = 2_000


@dataclass(frozen=True, slots=True)
class Span:
    """Where a moment stands in a project's history. Shape: positions; None at an end."""

    first: int
    last: int
    at: int
    earlier: int | None
    later: int | None


def span_of(project: Project, wanted: int | None) -> Span | None:
    """Find the event nearest before a wanted position, its neighbours and both ends.

    None while nothing of the project is sealed.
    """
    rows = AuditSeal.objects.filter(event__project=project)
    ends = rows.aggregate(first=Min("position"), last=Max("position"))
    first, last = ends["first"], ends["last"]
    if first is None:
        return None
    wanted = last if wanted is None else min(max(wanted, first), last)
    newest = rows.order_by("-position").values_list("position", flat=True)
    at = newest.filter(position__lte=wanted)[0]
    earlier = newest.filter(position__lt=at).first()
    later = newest.filter(position__gt=at).reverse().first()
    return Span(first, last, at, earlier, later)


def read_past(
    project_id: int, position: int, *, held: Checkpoints = checkpoints, every: int = EVERY
) -> PastBoard:
    """Rebuild a project's board after the event at a position.

    Shape: one query. The first request folds the whole trail up to there; the next ones begin at a
    checkpoint, if its seal is still what it was, and fold at most `every` events.
    """
    found = held.nearest(project_id, position)
    board, digest = found if found is not None else (PastBoard(), "")
    events = _events(project_id, board.position, position)
    if found is not None and next(events, (None, ""))[1] != digest:
        held.forget(project_id)
        board, events = PastBoard(), _events(project_id, 0, position)
    while batch := list(islice(events, every)):
        replay((event for event, _ in batch), board)
        held.keep(project_id, batch[-1][1], board)
    return board


def _events(project_id: int, first: int, position: int) -> Iterator[tuple[PastEvent, str]]:
    """Read the events from one position to another, each with the hash of its seal."""
    nouns = Q()
    for noun in REPLAYED_NOUNS:
        nouns |= Q(event__kind__startswith=f"{noun}.")
    rows = AuditSeal.objects.filter(
        nouns, event__project=project_id, position__gte=first, position__lte=position
    )
    fields = ("position", "event__kind", "event__subject", "event__task_id", "event__after",
              "event__why", "event__at", "hash")  # fmt: skip
    for number, kind, subject, task_id, said, why, at, digest in (
        rows.order_by("position").values_list(*fields).iterator(BATCH)
    ):
        known = said if isinstance(said, dict) else {}
        yield PastEvent(number, kind, subject, task_id, known, why, at), digest


# --- The board then, as today's parts take it -----------------------------------------------------


def past_traffic(board: PastBoard) -> Traffic:
    """Count the outcomes of S0 and S1 among the messages of that time."""

    def count(held: dict[str, set[int]], outcome: str | None = None) -> int:
        sets = held.values() if outcome is None else [held.get(outcome, set())]
        return sum(board.tasks[pk].parent_id is None for one in sets for pk in one)

    first, second = board.traffic.first, board.traffic.second
    return Traffic(
        messages=count(first),
        direct_by_rule=count(first, "direct"),
        scored=count(second),
        direct_by_score=count(second, Route.DIRECT.value),
        light=count(second, Route.LIGHT_PLAN.value),
        three_step=count(second, Route.THREE_STEP.value),
    )


def past_running(board: PastBoard) -> Running:
    """Count the leaves that ran then and what waited for Sir."""
    leaves = [one for one in board.tasks.values() if not one.is_superseded and not one.is_planned]
    return Running(
        working=sum(one.status in ("claimed", "working") for one in leaves),
        review=sum(one.status == TaskStatus.REVIEW for one in leaves),
        waiting=sum(one.waits for one in board.decisions.values()),
    )


def past_roots(board: PastBoard, project: Project) -> list[MasterTask]:
    """The master list of that time, in its order."""
    found: dict[int, MasterTask] = {}
    for one in board.roots():
        found[one.id] = MasterTask(_task(one, project))
    for step in board.tasks.values():
        row = found.get(step.parent_id) if step.parent_id is not None else None
        if row is not None and not step.is_superseded:
            row.steps_total += 1
            row.steps_done += step.is_finished
    for decision in board.decisions.values():
        row = found.get(board.root_of(decision.task_id)) if decision.task_id is not None else None
        if row is not None:
            row.waiting += decision.waits
    for work in board.work.values():
        row = found.get(board.root_of(work.task_id))
        if row is not None and _needs_agent(work):
            row.needs_agent = True
    return list(found.values())


def _needs_agent(work: PastWork) -> bool:
    return work.status == QUEUED and work.backend == Backend.EXTERNAL


def _task(past: PastTask, project: Project) -> Task:
    """A task as it stood, never saved."""
    return Task(
        pk=past.id, project=project, number=past.number, kind=past.kind, title=past.title,
        step_key=past.step_key, phase=past.phase, rank=past.rank, status=past.status,
        cancel_reason=past.cancel_reason, attempt=past.attempt, route=past.route,
        is_assessed=past.is_assessed, is_planned=past.is_planned,
        is_self_initiated=past.is_self_initiated,
    )  # fmt: skip


def past_graph(
    board: PastBoard, project: Project, root_id: int, *, open_phase: int | None = None
) -> StepGraph:
    """One root's plan as it stood. Above 200 steps only one phase holds its steps."""
    root = _task(board.tasks[root_id], project)
    root.open_phase = board.open_phase(root_id)
    steps = board.steps(root_id)
    is_folded = len(steps) > VISIBLE_STEPS
    by_key = {one.step_key: one for one in steps}
    made = {one.id: _step(one, root, project, by_key) for one in steps}
    _add_work(board, made)
    phases: dict[int, PhaseSteps] = {}
    for one in steps:
        phase = phases.setdefault(one.phase, PhaseSteps(one.phase))
        state = (one.status, one.cancel_reason)
        phase.counts[state] = phase.counts.get(state, 0) + 1
        if not is_folded or one.phase == open_phase:
            phase.steps.append(made[one.id])
        elif one.status in ALARMING or made[one.id].waits_for_sir:
            phase.alarming.append(made[one.id])
    for phase in phases.values():
        phase.is_read = len(phase.steps) == phase.total
    shown = [step.task.step_key for phase in phases.values() for step in phase.steps]
    return StepGraph(root, list(phases.values()), _edges(by_key, shown))


def _step(past: PastTask, root: Task, project: Project, by_key: dict[str, PastTask]) -> Step:
    task = _task(past, project)
    task.parent = task.root = root
    unmet = [key for key in past.needs if key in by_key and not by_key[key].is_finished]
    return Step(task, needs=unmet)


def _edges(by_key: dict[str, PastTask], shown: Sequence[str]) -> list[StepEdge]:
    known = set(shown)
    return [
        StepEdge(needed, key, is_met=by_key[needed].is_finished)
        for key in shown
        for needed in by_key[key].needs
        if needed in known
    ]


def _add_work(board: PastBoard, made: dict[int, Step]) -> None:
    """Add first start, last end, the seat at work, and since when Sir was waited for."""
    for work in board.work.values():
        step = made.get(work.task_id)
        if step is None:
            continue
        for start, end in work.spans:
            step.started_at = min(step.started_at or start, start)
            if end is not None:
                step.finished_at = max(step.finished_at or end, end)
        if work.status in (QUEUED, LEASED):
            step.seat = work.seat
            step.needs_agent = step.needs_agent or _needs_agent(work)
    for decision in board.decisions.values():
        step = made.get(decision.task_id) if decision.task_id is not None else None
        if step is not None and decision.waits:
            since = decision.opened_at
            step.waiting_since = min(step.waiting_since or since, since)


def past_timeline(board: PastBoard, root_id: int, now: datetime, *, limit: int) -> list[StepTimes]:
    """The times of a root's steps up to then, those that moved last, in plan order."""
    rows = {one.id: StepTimes(one.step_key, one.title) for one in board.steps(root_id)}
    moved: dict[int, datetime] = {}
    for work in board.work.values():
        row = rows.get(work.task_id)
        if row is None or work.seat == Seat.SCORER:
            continue
        for start, end in work.spans:
            moved[work.task_id] = max(moved.get(work.task_id, start), start)
            row.stretches.append(Stretch("work" if end else "running", start, end or now))
    for decision in board.decisions.values():
        row = rows.get(decision.task_id) if decision.task_id is not None else None
        if row is not None and decision.kind != "high_notice":
            end = decision.closed_at or now
            row.stretches.append(Stretch("waiting", decision.opened_at, end))
    newest = set(sorted(moved, key=lambda pk: moved[pk])[-limit:])
    for row in rows.values():
        row.stretches.sort(key=lambda one: one.start)
    return [row for pk, row in rows.items() if pk in newest]
