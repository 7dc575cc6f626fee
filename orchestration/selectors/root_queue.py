"""The queue of a project's planned roots: who is next, and what those at work wait for.

Source: DESIGN section 10 (order of the roots), section 4 (`queued_root`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models import Q, QuerySet

from orchestration.models import Project, Task
from orchestration.models.statements import ROOT_TAKES_NO_PLACE
from orchestration.selectors.master import UNREAD
from orchestration.selectors.trees import TreeFacts, read_trees
from orchestration.states import TaskStatus

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
    """Read the queue of a project. Shape: at most four queries, however many wait."""
    roots = running_roots(project)
    return make_queue(project, roots, read_trees([one.pk for one in roots]) if roots else {})


def make_queue(
    project: Project, running: Sequence[Task], trees: Mapping[int, TreeFacts]
) -> RootQueue:
    """Read who waits behind the running roots, whose trees are known."""
    waiting = _planned(project).filter(status=TaskStatus.PENDING.value, remaining_dependencies=0)
    # The order in which `waiting_roots` starts them.
    order = waiting.order_by("-attempt", "rank", "pk").values_list("pk", flat=True)[:MAX_PLACES]
    holders = tuple(Holder(root, _waits_for(trees[root.pk])) for root in running)
    return RootQueue({pk: n for n, pk in enumerate(order, 1)}, holders)


def running_roots(project: Project) -> list[Task]:
    """The first roots that take a place, by rank."""
    not_begun = Q(status=TaskStatus.WAITING_HUMAN.value, asked_from=TaskStatus.PENDING.value)
    # Said as what they are, not as what they are not: so an index finds them in a long list.
    taking = [one.value for one in TaskStatus if one not in ROOT_TAKES_NO_PLACE]
    busy = _planned(project).filter(status__in=taking).exclude(not_begun)
    running = list(busy.defer(*UNREAD).order_by("rank", "pk")[:SHOWN_HOLDERS])
    for root in running:
        root.project = project
    return running


def _planned(project: Project) -> QuerySet[Task]:
    return Task.objects.filter(project=project, parent__isnull=True, is_planned=True)


def _waits_for(tree: TreeFacts) -> str:
    """One of which anything is leased waits for nobody."""
    if tree.is_leased:
        return ""
    return "sir" if tree.asked else "agent" if tree.needs_agent else ""
