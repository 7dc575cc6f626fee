"""Send tasks that were blocked only by one that is done back to pending, at once.

Source: DESIGN section 4 (`blocked`), CASES A-19.
"""

from __future__ import annotations

from orchestration.models import Task
from orchestration.models.statements import tasks_blocked_by
from orchestration.services.blueprints import is_satisfied
from orchestration.services.inbox import withdraw_open
from orchestration.services.lookups import lock_task
from orchestration.services.moves import move_task
from orchestration.services.readiness import ready_again
from orchestration.services.work import Work
from orchestration.states import TaskStatus


def unblock(work: Work, task: Task) -> None:
    """Send tasks that were blocked only by this one back to pending, at once."""
    waiting = tasks_blocked_by(task.pk)
    if waiting:
        work.flush()
    for task_id in waiting:
        blocked = lock_task(task_id)
        if blocked.status == TaskStatus.BLOCKED and all(
            is_satisfied(one) for one in blocked.blocked_by.all()
        ):
            move_task(work, blocked, TaskStatus.PENDING, why=f"{task} is done")
            withdraw_open(work, [task_id], why="its blockers are done")
            work.flush()
            ready_again(work, blocked)
