"""What whole trees of tasks wait for: asked for many roots at once, in two statements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db.models import Count, Q
from django.db.models.functions import Coalesce

from orchestration.models import Assignment
from orchestration.policy import Backend
from orchestration.selectors.board import trees_of, waiting_decisions
from orchestration.states import AssignmentStatus


@dataclass(slots=True)
class TreeFacts:
    """What a root and all below it wait for, and whether anything of it is leased.

    Shape: `asked` counts the decisions that wait for Sir; `needs_agent` where work is queued for
    one.
    """

    asked: int = 0
    needs_agent: bool = False
    is_leased: bool = False


def read_trees(root_ids: Iterable[int]) -> Mapping[int, TreeFacts]:
    """Read the facts of some roots. A lease whose clock stands still does not count."""
    found = {pk: TreeFacts() for pk in root_ids}
    top, trees = Coalesce("task__root", "task"), trees_of(found)
    asked = waiting_decisions().filter(task__in=trees).annotate(top=top).order_by()
    for pk, count in asked.values("top").annotate(n=Count("pk")).values_list("top", "n"):
        found[pk].asked = count
    queued = Q(status=AssignmentStatus.QUEUED.value, backend=Backend.EXTERNAL.value)
    leased = Q(status=AssignmentStatus.LEASED.value, is_clock_stopped=False)
    live = Assignment.objects.filter(queued | leased, task__in=trees).annotate(top=top).order_by()
    for pk, status in live.values_list("top", "status").distinct():
        found[pk].needs_agent |= status == AssignmentStatus.QUEUED
        found[pk].is_leased |= status == AssignmentStatus.LEASED
    return found
