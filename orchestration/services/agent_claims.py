"""Claims by seat: give an agent the oldest work that its token, its projects and its past allow.

Independence: whoever planned, executed or fixed anything in a lineage may not audit, QA,
cross-verify or validate it. A lineage is the task, its ancestors, its earlier attempts and its
re-plans, and its descendants.
Source: DESIGN section 2 ("Backend", "Lineage"), section 4 rule 17, section 14.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from orchestration.access import visible_projects
from orchestration.models import Agent, Assignment, AuditEvent, Plan, Task
from orchestration.scopes import INDEPENDENT_SEATS, MAKING_SEATS, scope_of
from orchestration.seats.registry import EXTERNAL
from orchestration.services.assignments import has_free_slot, lease, lock_queued
from orchestration.services.lookups import hold_project
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.work import Actor, Work, unit_of_work
from orchestration.states import AssignmentStatus, ProjectStatus, Seat, TaskStatus

CANDIDATES = 50
"""Rows looked at in one go; more are asked for while none of them fits."""
MADE_EVENTS = ("task.working", "output.added", "plan.drafted", "fix.recorded", "deviation.recorded")
"""Events whose actor made something of the task they are about."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What an agent asks for. Shape: `project_ids` None means every project it sees."""

    seats: Collection[Seat]
    project_ids: Collection[int] | None = None


@retry_on_deadlock
def claim_for_agent(*, agent: Agent, wish: Wish, actor: Actor) -> Assignment | None:
    """Claim the oldest assignment an agent may take, or None when there is none.

    Locks: as `take_for_agent`.
    """
    with unit_of_work(actor) as work:
        return take_for_agent(work, agent, wish)


def take_for_agent(work: Work, agent: Agent, wish: Wish) -> Assignment | None:
    """Lease the oldest fitting assignment inside the caller's transaction, or return None.

    Locks: the project (a pause stops the clock of every lease it finds, and lets none in after
    it), for an executor its task's parent (to count the slots), the task, the assignment; tasks and
    assignments that somebody else holds are passed over. With locks of a result in hand this is out
    of order, so a deadlock is possible, and retried.
    """
    full: set[int] = set()
    is_open: dict[int, bool] = {}
    after = 0
    while True:
        rows = _candidates(agent, wish, work.now, after)
        for assignment_id, task_id, project_id, parent_id, seat in rows:
            if project_id not in is_open:
                is_open[project_id] = hold_project(project_id).status == ProjectStatus.ACTIVE
            if not is_open[project_id]:
                continue
            if seat == Seat.EXECUTOR and parent_id is not None:
                if parent_id not in full and not has_free_slot(parent_id):
                    full.add(parent_id)
                if parent_id in full:
                    continue
            taken = _take(work, agent, assignment_id, task_id)
            if taken is not None:
                return taken
        if len(rows) < CANDIDATES:
            return None
        after = rows[-1][0]


def _candidates(
    agent: Agent, wish: Wish, now: datetime, after: int
) -> Sequence[tuple[int, int, int, int | None, str]]:
    """List queued work, oldest first. Shape: (assignment, task, project, parent, seat)."""
    projects = visible_projects(agent).filter(status=ProjectStatus.ACTIVE.value)
    if wish.project_ids is not None:
        projects = projects.filter(pk__in=wish.project_ids)
    rows = Assignment.objects.filter(
        Q(not_before__isnull=True) | Q(not_before__lte=now),
        status=AssignmentStatus.QUEUED.value,
        backend=EXTERNAL,
        seat__in=[seat.value for seat in wish.seats],
        project__in=projects,
        pk__gt=after,
    )
    return list(
        rows.order_by("pk").values_list("pk", "task_id", "project_id", "task__parent_id", "seat")[
            :CANDIDATES
        ]
    )


def _take(work: Work, agent: Agent, assignment_id: int, task_id: int) -> Assignment | None:
    """Lock task and assignment and lease it, unless somebody was first or the agent is not free."""
    assignment = lock_queued(assignment_id, task_id)
    if assignment is None or not _may_start(assignment, assignment.task):
        return None
    task = assignment.task
    if not is_independent(agent, task, Seat(assignment.seat)):
        return None
    return lease(work, assignment, task.project.policy, worker=agent.name, agent=agent)


def _may_start(assignment: Assignment, task: Task) -> bool:
    """Whether the task is still where this seat's work begins."""
    if assignment.seat == Seat.EXECUTOR:
        return task.status == TaskStatus.PENDING
    return task.status not in (TaskStatus.DONE, TaskStatus.CANCELLED, TaskStatus.WAITING_HUMAN)


def is_independent(agent: Agent, task: Task, seat: Seat) -> bool:
    """Whether an agent may fill a seat: the judging ones are closed to whoever made something."""
    return seat not in INDEPENDENT_SEATS or not has_made_in_lineage(agent, task)


def eligible_agents(task: Task, seat: Seat, now: datetime) -> list[Agent]:
    """List the agents that could fill a judging seat now: in scope, independent, seen lately."""
    seen = timedelta(seconds=task.project.policy.limits.agent_seen_seconds)
    rows = Agent.objects.filter(revoked_at__isnull=True, last_seen_at__gte=now - seen)
    rows = rows.filter(Q(projects__isnull=True) | Q(projects=task.project)).distinct()
    scope = scope_of(seat).value
    return [one for one in rows if scope in one.scopes and is_independent(one, task, seat)]


def has_made_in_lineage(agent: Agent, task: Task) -> bool:
    """Whether an agent planned, executed or fixed anything in a task's lineage.

    A lease that was given back leaves no assignment of the agent's, so its events count as well.
    """
    lineage = lineage_of(task).values("pk")
    held = Assignment.objects.filter(
        task__in=lineage, agent=agent, seat__in=[seat.value for seat in MAKING_SEATS]
    ).exclude(status=AssignmentStatus.QUEUED.value)
    if held.exists() or Plan.objects.filter(task__in=lineage, agent=agent).exists():
        return True
    made = AuditEvent.objects.filter(
        task__in=lineage, actor=f"agent:{agent.name}", kind__in=MADE_EVENTS
    )
    # Only the engine takes a pending task to work, in whoever's request its turn comes.
    turns = Q(kind="task.working", before__status=TaskStatus.PENDING.value)
    return made.exclude(turns).exists()


def lineage_of(task: Task) -> QuerySet[Task]:
    """List a task's lineage: itself, what it replaced, its ancestors, all below them, and fixes.

    A fix of what was locked is a root of its own; it and what it fixes are one lineage.
    """
    family = _family_of(task)
    fixed = task.fixes if task.root is None else task.root.fixes
    if fixed is not None:
        family |= _family_of(fixed.task)
    fixing = Task.objects.filter(fixes__task__in=Task.objects.filter(family).values("pk"))
    made = fixing.values("pk")
    return Task.objects.filter(family | Q(pk__in=made) | Q(root__in=made))


def _family_of(task: Task) -> Q:
    """Find a task, what it replaced, its ancestors, and all below them.

    What it replaced are the superseded steps of the same key under the same parent. Depth ends at
    3, so below a step there are two levels.
    """
    same = [task.pk]
    if task.parent_id is not None and task.step_key:
        earlier = Task.objects.filter(
            parent_id=task.parent_id, step_key=task.step_key, is_superseded=True
        )
        same += earlier.exclude(pk=task.pk).values_list("pk", flat=True)
    above: list[int] = []
    parent_id = task.parent_id
    while parent_id is not None:
        above.append(parent_id)
        parent_id = Task.objects.values_list("parent_id", flat=True).get(pk=parent_id)
    below = Q(root=task.pk)
    if task.parent_id is not None:
        below = Q(parent__in=same) | Q(parent__parent__in=same)
    return Q(pk__in=[*same, *above]) | below
