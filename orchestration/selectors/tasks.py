"""Reads about tasks that services, API and dashboard share."""

from __future__ import annotations

from orchestration.models import Task
from orchestration.states import (
    TASK_HOLDS_SLOT,
    NotReadyReason,
    ProjectStatus,
    Route,
    TaskStatus,
)


def not_ready_reason(task: Task) -> NotReadyReason | None:
    """Say why a pending task is not offered, or None when it is ready.

    Errors: none; a task that is not pending has no reason either.
    """
    if task.status != TaskStatus.PENDING:
        return None
    if task.project.status not in (ProjectStatus.ACTIVE, ProjectStatus.COMPLETED):
        return NotReadyReason.SUSPENDED
    if task.remaining_dependencies:
        return NotReadyReason.DEPENDENCIES
    if task.is_awaiting_commands:
        return NotReadyReason.AWAITING_COMMAND_APPROVAL
    reason = _reason_in_plan(task) if task.parent_id is not None else None
    if reason is not None:
        return reason
    if not task.is_assessed:
        return NotReadyReason.ASSESSING
    if task.route in (Route.THREE_STEP, Route.WORKFLOW):
        return NotReadyReason.QUEUED_ROOT
    return None


def _reason_in_plan(task: Task) -> NotReadyReason | None:
    parent = task.parent
    if parent is None:
        return None
    root = task.root or parent
    if task.phase > parent.open_phase or parent.status != TaskStatus.WORKING or root.is_ending:
        return NotReadyReason.PHASE
    held = [state.value for state in TASK_HOLDS_SLOT]
    running = parent.children.filter(status__in=held, is_planned=False).count()
    if running >= task.project.policy.limits.parallel_children:
        return NotReadyReason.SLOTS
    return None
