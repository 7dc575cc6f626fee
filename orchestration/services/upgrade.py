"""Dynamic upgrade: a direct or light task that turns out complex moves to three-step mid-run.

The re-score is by rules, inline, before a failure counts (rule 15).
Source: DESIGN section 6 ("Dynamic upgrade").
"""

from __future__ import annotations

from orchestration.models import Task
from orchestration.rules.scoring import RunRecord, Score, rescore, upgrade_due
from orchestration.services.leases import cancel_live
from orchestration.services.lookups import lock_project
from orchestration.services.moves import move_task
from orchestration.services.plan_requests import start_planning
from orchestration.services.readiness import (
    apply_score,
    assessed_text,
    is_never_planned,
    record_score,
    start_roots,
)
from orchestration.services.work import Work
from orchestration.states import Route, TaskStatus

UPGRADED = "upgraded"


def run_record(task: Task, *, failures: int | None = None) -> RunRecord:
    """What happened while the task ran, as the re-score reads it."""
    return RunRecord(
        actual_steps=task.actual_steps,
        estimated_steps=task.estimated_steps or 1,
        failure_count=task.tries if failures is None else failures,
        unexpected_blockers=task.unexpected_blockers,
        reported_domains=tuple(task.reported_domains),
        is_uncertain=task.is_uncertain,
    )


def upgrade_if_due(work: Work, task: Task, *, failures: int | None = None) -> bool:
    """Re-score a direct or light task whose run says so; return whether it moved to three-step.

    One that is not over the threshold, or that is never planned, stays as it is, with its route;
    the score is on record.
    From claimed, working, blocked or failed, never from review. The executor's assignment is
    cancelled with code `upgraded`; its outputs stay and become planning input.
    Locks: expects the task locked.
    """
    policy = task.project.policy
    if task.route not in (Route.DIRECT, Route.LIGHT_PLAN) or task.run:
        return False
    if task.status == TaskStatus.REVIEW:
        return False
    record = run_record(task, failures=failures)
    trigger = upgrade_due(record, policy)
    if trigger is None:
        return False
    result = rescore(assessed_text(task), record, policy, depth=task.depth)
    if result.route is not Route.THREE_STEP or is_never_planned(task):
        _note_stay(work, task, result, trigger)
        return False
    apply_score(work, task, result, backend="rules", trigger=trigger)
    cancel_live(work, [task.pk], why=UPGRADED)
    task.tries = 0
    task.attempt += 1
    work.touch(task, "tries", "attempt")
    move_task(work, task, TaskStatus.PENDING, why=UPGRADED)
    work.flush()
    if task.parent_id is None:
        start_roots(work, lock_project(task.project_id))
    else:
        start_planning(work, task)
    return True


def _note_stay(work: Work, task: Task, result: Score, trigger: str) -> None:
    """Record a score that changes nothing, once: each further step would say the same again."""
    last = task.assessments.filter(stage="S1").last()
    if last is None or (last.trigger, last.total) != (trigger, result.total):
        record_score(work, task, result, backend="rules", trigger=trigger)
