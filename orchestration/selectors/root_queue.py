"""The queue of a project's planned roots: who is next, and what those at work wait for.

Source: DESIGN section 10 (order of the roots), section 4 (`queued_root`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models import Q
from django.db.models.functions import Coalesce

from orchestration.models import Assignment, Project, Task
from orchestration.models.statements import ROOT_TAKES_NO_PLACE
from orchestration.selectors.board import agent_work, trees_of, waiting_decisions
from orchestration.states import AssignmentStatus, TaskStatus

MAX_PLACES = 200
"""Places that are told; further back only that there are more."""
SHOWN_HOLDERS = 3


@dataclass(frozen=True, slots=True)
class Holder:
    """A root that takes a place. `waits_for` is `sir`, `agent` or nothing."""

    task: Task
    waits_for: str


@dataclass(frozen=True, slots=True)
class RootQueue:
    """Who waits and who is at work. Shape: places by id, from 1; the first holders by rank."""

    places: Mapping[int, int] = field(default_factory=dict)
    holders: tuple[Holder, ...] = ()


def queue_for(project: Project, roots: Sequence[Task]) -> RootQueue:
    """Read the queue where one of some roots waits in it; else it is not asked for."""
    waits = any(one.status == TaskStatus.PENDING and one.is_planned for one in roots)
    return read_root_queue(project) if waits else RootQueue()


def read_root_queue(project: Project) -> RootQueue:
    """Read the queue of a project. Shape: at most five queries, however many wait."""
    roots = Task.objects.filter(project=project, parent__isnull=True, is_planned=True)
    waiting = roots.filter(status=TaskStatus.PENDING.value, remaining_dependencies=0)
    # The order in which `waiting_roots` starts them.
    order = waiting.order_by("-attempt", "rank", "pk").values_list("pk", flat=True)[:MAX_PLACES]
    not_begun = Q(status=TaskStatus.WAITING_HUMAN.value, asked_from=TaskStatus.PENDING.value)
    # Said as what they are, not as what they are not: so an index finds them in a long list.
    busy = roots.filter(status__in=[one for one in TaskStatus if one not in ROOT_TAKES_NO_PLACE])
    running = list(busy.exclude(not_begun).order_by("rank", "pk")[:SHOWN_HOLDERS])
    for root in running:
        root.project = project
    return RootQueue({pk: n for n, pk in enumerate(order, 1)}, _holders(running))


def _holders(roots: Sequence[Task]) -> tuple[Holder, ...]:
    """Say what each root at work waits for; one of which anything is leased waits for nobody."""
    ids = [root.pk for root in roots]
    if not ids:
        return ()
    top, trees = Coalesce("task__root", "task"), trees_of(ids)
    leased = Assignment.objects.filter(status=AssignmentStatus.LEASED.value, is_clock_stopped=False)
    sets = [
        set(rows.filter(task__in=trees).annotate(top=top).values_list("top", flat=True))
        for rows in (leased, waiting_decisions(), agent_work())
    ]
    return tuple(Holder(root, _waits_for(root.pk, *sets)) for root in roots)


def _waits_for(pk: int, moving: set[int], asked: set[int], queued: set[int]) -> str:
    if pk in moving:
        return ""
    return "sir" if pk in asked else "agent" if pk in queued else ""
