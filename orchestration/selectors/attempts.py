"""Reads about the attempts of a root: their plans, what they cost, what of them still runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Min, Q

from orchestration.models import Assignment, Task
from orchestration.selectors.overview import Cost, cost_of
from orchestration.selectors.task_page import PlanRevision, compared_plans
from orchestration.states import AssignmentStatus


@dataclass(frozen=True, slots=True)
class AttemptPlan:
    """The plan that an attempt ended with. Shape: `digest` is empty unless it was locked."""

    attempt: int
    revision: PlanRevision
    digest: str


def attempt_plans(root: Task) -> list[AttemptPlan]:
    """List the last plan of each of a root's newest attempts, oldest first."""
    newest: dict[int, PlanRevision] = {}
    for one in compared_plans(root):
        newest[one.plan.attempt] = one
    return [
        AttemptPlan(attempt, one, one.blueprint.sha256 if one.blueprint is not None else "")
        for attempt, one in sorted(newest.items())
    ]


def _of_tree(root: Task) -> Q:
    return Q(task=root) | Q(task__root=root)


def first_start(root: Task) -> datetime | None:
    """When the first assignment of a root's tree was queued."""
    found = Assignment.objects.filter(_of_tree(root)).aggregate(at=Min("queued_at"))
    at: datetime | None = found["at"]
    return at


def cost_between(root: Task, began: datetime | None, ended: datetime | None) -> Cost:
    """Add up what agents reported for a root's tree in a time; None leaves that end open."""
    rows = Assignment.objects.filter(_of_tree(root))
    if began is not None:
        rows = rows.filter(queued_at__gte=began)
    if ended is not None:
        rows = rows.filter(queued_at__lt=ended)
    return cost_of(rows)


def count_running(root: Task) -> int:
    """Count the assignments of a root's tree that are leased now."""
    leased = AssignmentStatus.LEASED.value
    return Assignment.objects.filter(_of_tree(root), status=leased).count()


def failure_classes(task: Task) -> dict[int, str]:
    """Name the class of each failed attempt of a task, as far as it was recorded."""
    packages = task.validation_packages.exclude(failure_class="").order_by("pk")
    found = dict(packages.values_list("attempt", "failure_class"))
    for one in task.failure_context:
        if one.get("class") and one["class"] != "guidance":
            found[int(one.get("attempt") or 0)] = str(one["class"])
    return found


def attempt_of_blueprints(task: Task) -> dict[int, int]:
    """The attempt that each blueprint of a task was locked in, by its id."""
    return dict(task.blueprints.order_by().values_list("pk", "plan__attempt"))
