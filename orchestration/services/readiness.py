"""From pending to work: assess, guard, route and queue tasks whose turn has come.

`make_ready` is the one gate. It runs the red lines, S0 and S1 (only when a task is otherwise ready,
rule 1) and then queues an executor or starts planning.
Source: DESIGN section 4 (`ready`, rules 1, 12, 13), sections 5 and 6.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestration.models import Assessment, Assignment, Project, Task
from orchestration.models.statements import running_roots, waiting_roots
from orchestration.rules.prefilter import PrefilterResult, prefilter
from orchestration.rules.scoring import Score, score
from orchestration.seats.base import SeatJob
from orchestration.seats.registry import EXTERNAL, pick_backend
from orchestration.services.assignments import (
    build_assignment,
    queue_assignment,
    record_queued,
    record_taken,
    take_on_the_way,
)
from orchestration.services.integrity import stop_if_broken
from orchestration.services.lookups import lock_lineage_root
from orchestration.services.moves import hint_task
from orchestration.services.plan_requests import start_planning
from orchestration.services.red_lines import meets_red_line
from orchestration.services.work import Work
from orchestration.states import (
    ASSIGNMENT_LIVE,
    Complexity,
    ProjectStatus,
    RiskLevel,
    Route,
    Seat,
    TaskStatus,
)

PLANNED_ROUTES = frozenset({Route.THREE_STEP.value, Route.WORKFLOW.value})


def make_ready(work: Work, tasks: Sequence[Task]) -> list[Assignment]:
    """Let pending tasks whose dependencies and phase allow start; return the executors queued.

    A task that meets a red line goes to Sir instead; one with a three-step route starts planning.
    Roots that need planning wait their turn (`start_roots`).
    Locks: expects the tasks' rows locked or unseen by others.
    """
    leaves: list[Task] = []
    for task in tasks:
        if not _may_start(task) or meets_red_line(work, task):
            continue
        if not task.is_assessed and not _assess(work, task):
            continue
        if task.route not in PLANNED_ROUTES:
            leaves.append(task)
        elif task.parent_id is not None:
            start_planning(work, task)
    return _queue_executors(work, leaves)


def _may_start(task: Task) -> bool:
    if task.status != TaskStatus.PENDING or task.remaining_dependencies:
        return False
    if task.is_awaiting_commands or task.project.status == ProjectStatus.SAFE_STOP:
        return False
    root = task.root if task.root_id else None
    return root is None or not (root.is_ending or root.is_replanning)


def _queue_executors(work: Work, tasks: Sequence[Task]) -> list[Assignment]:
    """Queue one executor assignment a task, in one statement."""
    rows = []
    for task in tasks:
        policy = task.project.policy
        backend = pick_backend(SeatJob(Seat.EXECUTOR, task, None, {}), policy)
        name = backend.name if backend is not None else EXTERNAL
        rows.append(build_assignment(work, task, Seat.EXECUTOR, policy, backend=name, input={}))
    if not rows:
        return []
    taken = take_on_the_way(work, rows)
    work.insert(rows)
    for row in rows:
        if row is taken:
            record_taken(work, row)
        else:
            record_queued(work, row)
            hint_task(work, row.task)
    return rows


def _assess(work: Work, task: Task) -> bool:
    """Run S0 and, where a signal hit, S1. Return whether the route is known now."""
    text = assessed_text(task)
    policy = task.project.policy
    first = prefilter(text, policy)
    record_prefilter(work, task, first)
    if first.outcome == "direct":
        set_route(work, task, Route.DIRECT, Complexity.LOW, RiskLevel.LOW, total=None)
        return True
    backend = pick_backend(SeatJob(Seat.SCORER, task, None, {}), policy)
    if backend is None or not backend.is_system:
        live = [state.value for state in ASSIGNMENT_LIVE]
        waiting = task.assignments.filter(seat=Seat.SCORER.value, status__in=live)
        if not waiting.exists():
            queue_assignment(work, task, Seat.SCORER, policy, input={"text": text})
        return False
    apply_score(work, task, score(text, policy, depth=task.depth), backend=backend.name)
    return True


def assessed_text(task: Task) -> str:
    """The text that S0 and S1 read: the description as the user wrote it, else the title."""
    if not task.description:
        return task.title
    if task.description.startswith(task.title.rstrip("…")):
        return task.description
    return f"{task.title}\n{task.description}"


def record_prefilter(
    work: Work, task: Task, result: PrefilterResult, *, waits: bool = False
) -> Assessment:
    """Store an S0 record and its event: what Sir was not asked is in the trail too.

    One that `waits` is of a message that cannot start yet; S0 looks again when it can.
    """
    signals = [{"kind": one.kind, "text": one.text, "offset": one.offset} for one in result.signals]
    row = Assessment.objects.create(
        task=task,
        traffic_of_id=traffic_of(task),
        stage="S0",
        outcome=result.outcome,
        rule=result.rule,
        signals=signals,
        elapsed_us=result.elapsed_us,
        created_at=work.now,
    )
    work.record(
        "assessment.s0",
        subject=f"task:{task.pk}",
        project_id=task.project_id,
        task_id=task.pk,
        after={"outcome": result.outcome, "rule": result.rule, "signals": len(signals)}
        | ({"waits": True} if waits else {}),
    )
    return row


def traffic_of(task: Task) -> int | None:
    """The project whose traffic a first look at a task counts to; steps are not traffic."""
    return task.project_id if task.parent_id is None else None


def apply_score(
    work: Work,
    task: Task,
    result: Score,
    *,
    backend: str,
    agent_id: int | None = None,
    trigger: str = "",
) -> None:
    """Store an S1 record and set the task's route, complexity and risk from it.

    A complex task that is never planned takes the light plan.
    """
    route = result.route
    if route is Route.THREE_STEP and is_never_planned(task):
        route = Route.LIGHT_PLAN
    risk = RiskLevel(task.risk_level) if task.risk_level else result.risk_level
    set_route(work, task, route, result.complexity, risk, total=result.total)
    record_score(work, task, result, backend=backend, agent_id=agent_id, trigger=trigger)


def is_never_planned(task: Task) -> bool:
    """Whether a task is done as it is, however complex.

    At depth 3, where nothing may be planned below it; spawned by an agent; done by a profile.
    Source: docs/decisions/0012-spawned-children-are-not-planned.md.
    """
    return task.is_spawned or bool(task.role) or task.depth >= task.project.policy.limits.depth


def record_score(
    work: Work,
    task: Task,
    result: Score,
    *,
    backend: str,
    agent_id: int | None = None,
    trigger: str = "",
) -> None:
    """Store an S1 record and its event. Shape: the event names the route that the task takes."""
    scored = result.as_json()
    Assessment.objects.create(
        task=task,
        traffic_of_id=None if trigger else traffic_of(task),
        stage="S1",
        backend=backend,
        agent_id=agent_id,
        outcome=result.route.value,
        trigger=trigger,
        dimensions=scored["dimensions"],
        evidence=scored["evidence"],
        total=result.total,
        rationale=result.rationale,
        created_at=work.now,
    )
    work.record(
        "assessment.s1",
        subject=f"task:{task.pk}",
        project_id=task.project_id,
        task_id=task.pk,
        after={
            "total": result.total,
            "route": str(task.route),
            "dimensions": scored["dimensions"],
        },
        why=trigger,
    )


def set_route(
    work: Work,
    task: Task,
    route: Route,
    complexity: Complexity,
    risk: RiskLevel,
    *,
    total: int | None,
) -> None:
    """Set what the method decided about a task; a direct one is estimated at one step.

    What its spawner hinted, or an earlier score found, is the least that a spawned task is.
    """
    task.risk_level = task.risk_level or risk.value
    if task.risk_level in (RiskLevel.HIGH, RiskLevel.CRITICAL):
        complexity = Complexity.HIGH
    if task.is_spawned and task.complexity:
        complexity = max(complexity, Complexity(task.complexity), key=list(Complexity).index)
    task.route, task.complexity, task.score = route.value, complexity.value, total
    task.is_assessed = True
    task.is_planned = route in (Route.THREE_STEP, Route.WORKFLOW)
    if route is Route.DIRECT and task.estimated_steps is None:
        task.estimated_steps = 1
    work.touch(
        task,
        "route", "complexity", "score", "risk_level", "is_assessed", "is_planned",
        "estimated_steps",
    )  # fmt: skip
    hint_task(work, task)


def start_roots(work: Work, project: Project) -> list[Assignment]:
    """Start planned roots, as many at a time as the policy allows: what was begun before, by rank.

    Direct and light roots never queue behind them, and one that waits for Sir before it began takes
    no place. Only a done root satisfies a dependency.
    Locks: expects the project's row locked.
    """
    work.flush()
    if project.status != ProjectStatus.ACTIVE:
        return []
    places = project.policy.limits.concurrent_roots
    chosen = waiting_roots(project.pk, limit=places)
    free = places - running_roots(project.pk) if chosen else 0
    while free > 0 and chosen:
        for root in chosen[:free]:
            root.project = project
            if stop_if_broken(work, project, root):
                return []
            if not meets_red_line(work, root):
                start_planning(work, root)
            free -= root.status == TaskStatus.WORKING
        work.flush()
        chosen = waiting_roots(project.pk, limit=free) if free > 0 else []
    return []


def ready_again(work: Work, task: Task) -> list[Assignment]:
    """Offer a task that went back to pending, root or step."""
    if task.parent_id is None:
        queued = make_ready(work, [task])
        work.flush()
        start_roots(work, task.project)
        return queued
    lock_lineage_root(task)
    return make_ready(work, [task])
