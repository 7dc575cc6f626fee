"""What a dead blocker means for the tasks behind it: Sir is asked, nobody waits for ever.

Source: DESIGN section 4 (rule 16).
"""

from __future__ import annotations

from orchestration.models import Task
from orchestration.models.statements import tasks_blocked_by
from orchestration.services.inbox import open_decision, open_decisions
from orchestration.services.lookups import lock_task
from orchestration.services.work import Work
from orchestration.states import DecisionKind, TaskStatus


def ask_to_clear(work: Work, task: Task, detail: str) -> None:
    """Open the `clarification` of a blocked task that nothing will clear by itself."""
    open_decision(
        work,
        kind=DecisionKind.CLARIFICATION,
        project=task.project,
        task=task,
        title=task.title,
        question="This task is blocked. Can it go on?",
        content={
            "reason": "blocked",
            "detail": detail,
            "description": task.description,
            "blocked_by": [str(row) for row in task.blocked_by.all()],
        },
    )


def ask_behind(work: Work, task: Task) -> None:
    """Ask Sir about every task that is blocked by one that just died, unless he is asked already.

    Locks: the blocked tasks, in id order, after the dead one; the caller retries on deadlock.
    """
    waiting = tasks_blocked_by(task.pk)
    if waiting:
        work.flush()
    for task_id in waiting:
        blocked = lock_task(task_id)
        if blocked.status != TaskStatus.BLOCKED:
            continue
        if not open_decisions(task=blocked, kind=DecisionKind.CLARIFICATION):
            ask_to_clear(work, blocked, f"{task} is {task.status}: {blocked.status_detail}")
