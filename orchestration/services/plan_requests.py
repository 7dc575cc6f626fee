"""Ask for a plan: what the planner is handed, and what happens where nobody can plan.

Source: DESIGN section 7 ("The planner's input"), section 4 rules 1 and 4.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Q

from orchestration.models import Artifact, Plan, Task
from orchestration.models.rows import fetch_rows
from orchestration.rules.profiles import PROFILES
from orchestration.seats.base import SeatJob
from orchestration.seats.registry import pick_backend
from orchestration.services.assignments import queue_assignment
from orchestration.services.flow_boxes import draft_of_boxes
from orchestration.services.inbox import open_decision
from orchestration.services.lookups import lineage_root
from orchestration.services.moves import move_plan, move_task
from orchestration.services.work import Work
from orchestration.states import DecisionKind, PlanStatus, Seat, TaskStatus

SHOWN_OUTPUTS = 20
SHOWN_CHARACTERS = 4_000
SHOWN_ARTIFACTS = 200


def start_planning(work: Work, task: Task) -> None:
    """Move a planned task to work: audit the plan it came with, else ask for one.

    Where no backend fills the planner's seat, Sir is asked.
    Locks: expects the task's row locked.
    """
    draft = _draft_of(task)
    if draft is None and task.role:
        draft = draft_of_boxes(work, task)
    if draft is None and not _has_planner(task):
        _ask_for_planner(work, task)
        return
    move_task(work, task, TaskStatus.WORKING, why="planning starts")
    _request(work, task, draft)


def _request(work: Work, task: Task, draft: Plan | None) -> None:
    """Queue the auditor for the draft this attempt came with, else a planner."""
    policy = task.project.policy
    if draft is None:
        queue_assignment(work, task, Seat.PLANNER, policy, input=planner_input(task))
        return
    draft.task = task
    move_plan(work, draft, PlanStatus.AUDITING)
    queue_assignment(work, task, Seat.AUDITOR, policy, plan_id=draft.pk)


def _draft_of(task: Task) -> Plan | None:
    where = "task_id = %s AND attempt = %s AND status = %s ORDER BY id DESC LIMIT 1"
    rows = fetch_rows(Plan, where, [task.pk, task.attempt, PlanStatus.DRAFT.value])
    return rows[0] if rows else None


def can_plan(task: Task) -> bool:
    """Whether a plan came with this attempt, or some backend fills the planner's seat."""
    return _draft_of(task) is not None or _has_planner(task)


def _has_planner(task: Task) -> bool:
    return pick_backend(SeatJob(Seat.PLANNER, task, None, {}), task.project.policy) is not None


def _ask_for_planner(work: Work, task: Task) -> None:
    """Open `waiting_human`: the policy names no backend that can plan this task."""
    task.asked_from = TaskStatus.PENDING.value
    work.touch(task, "asked_from")
    move_task(work, task, TaskStatus.WAITING_HUMAN, detail="nobody fills the planner's seat")
    open_decision(
        work,
        kind=DecisionKind.WAITING_HUMAN,
        project=task.project,
        task=task,
        title=task.title,
        question="No backend of the policy fills the seat planner for this task. Try again?",
        content={
            "reason": "seat_unfilled",
            "seat": Seat.PLANNER.value,
            "backends": list(task.project.policy.backends(Seat.PLANNER)),
            "description": task.description,
        },
    )


def planner_input(task: Task) -> dict[str, object]:
    """Gather what a planner is handed: text, S1, earlier work and failures, what it may use.

    The plan's own revision findings are added by the caller that asks for a revision.
    """
    s1 = task.assessments.filter(stage="S1").last()
    root = lineage_root(task)
    failures = [] if root.pk == task.pk else list(root.failure_context)
    return {
        "title": task.title,
        "description": task.description,
        "specification": task.specification,
        "facts": task.facts,
        "constraints": task.constraints,
        "background": task.project.description,
        "assessment": {"total": s1.total, "dimensions": s1.dimensions, "evidence": s1.evidence}
        if s1 is not None
        else None,
        "profiles": [
            {"name": one.name, "layer": one.layer, "read_only": one.read_only}
            for one in PROFILES.values()
        ],
        "allowed_commands": [list(prefix) for prefix in task.project.policy.commands.allow],
        "outputs": _earlier_outputs(task),
        "artifacts": _locked_artifacts(task),
        "failures": [*failures, *task.failure_context],
        "attempt": task.attempt,
    }


def _earlier_outputs(task: Task) -> list[dict[str, Any]]:
    """What was handed in for this task before it was planned, late orphans too; the newest last."""
    rows = list(task.outputs.order_by("-pk")[:SHOWN_OUTPUTS])
    return [
        {
            "title": row.title,
            "type": row.type,
            "summary": row.summary,
            "path": row.path,
            "attempt": row.attempt,
            "is_orphan": row.is_orphan,
            "content": row.content[:SHOWN_CHARACTERS],
            "is_cut": len(row.content) > SHOWN_CHARACTERS,
        }
        for row in reversed(rows)
    ]


def _locked_artifacts(task: Task) -> list[dict[str, Any]]:
    """The newest locked versions of this task's steps and of what it depends on."""
    rows = (
        Artifact.objects.filter(
            Q(task__parent=task) | Q(task__dependents__task=task) | Q(task=task)
        )
        .select_related("task")
        .order_by("-pk")
        .distinct()
    )
    newest: dict[tuple[int, str], Artifact] = {}
    for row in rows[:SHOWN_ARTIFACTS]:
        newest.setdefault((row.task_id, row.name), row)
    return [
        {
            "name": row.name,
            "version": row.version,
            "sha256": row.content_id,
            "type": row.type,
            "step": row.task.step_key,
            "is_superseded": row.task.is_superseded,
        }
        for row in reversed(newest.values())
    ]
