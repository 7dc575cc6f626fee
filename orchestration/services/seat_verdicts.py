"""What Sir's word does to work that waits for it outside its plan: a last look, a spent budget.

Called by `decide_decision` under its locks.
Source: DESIGN section 9 (`final_review`, `budget_exceeded`).
"""

from __future__ import annotations

from orchestration.errors import Conflict
from orchestration.models import Assignment, Decision, Task
from orchestration.models.rows import fetch_rows
from orchestration.services.agent_results import take_held_result
from orchestration.services.budgets import raised_limits
from orchestration.services.clocks import renew_lease
from orchestration.services.completion import complete_task
from orchestration.services.cross_checks import resume_review
from orchestration.services.layers import final_review_layer
from orchestration.services.loop import fail_leaf
from orchestration.services.moves import move_task
from orchestration.services.outputs import newest_outputs
from orchestration.services.verification import record_layers
from orchestration.services.work import Work
from orchestration.states import AssignmentStatus, TaskStatus

BACK_TO = {
    TaskStatus.PENDING: TaskStatus.PENDING,
    TaskStatus.REVIEW: TaskStatus.REVIEW,
}
"""Where work goes on that was asked about there; from anywhere else it is at work again."""


def _task(decision: Decision) -> Task:
    if decision.task is None:
        raise Conflict("this item has no task any more")
    return decision.task


def final_review(work: Work, decision: Decision, verdict: str) -> None:
    """Approve (L5 is passed and QA goes on), redo with Sir's text, or reject the step."""
    task = _task(decision)
    if verdict != "approve":
        fail_leaf(
            work, task, why=f"{verdict}: {decision.reason}", failure_class="rejected_by_sir",
            no_more_tries=verdict == "reject" or task.is_planned,
        )  # fmt: skip
        return
    move_task(work, task, TaskStatus.REVIEW, why="approved by Sir")
    outputs = newest_outputs(task)
    layer = final_review_layer(work.actor.name.partition(":")[2])
    record_layers(work, task, [layer], outputs[-1] if outputs else None)
    work.flush()
    if task.is_planned:
        complete_task(work, task, task.parent if task.parent_id is not None else None)
    else:
        resume_review(work, task, task.parent)


def budget_exceeded(work: Work, decision: Decision, verdict: str) -> None:
    """Raise the limit and let the work go on under a full lease, or end it.

    A result that came with the figures is recorded then, as it was handed in.
    """
    task = _task(decision)
    rows = fetch_rows(Assignment, "id = %s", [int(decision.content["assignment"])], lock=True)
    row = rows[0] if rows and rows[0].status == AssignmentStatus.LEASED else None
    if verdict == "abort":
        fail_leaf(
            work, task, why=f"over budget, aborted by Sir: {decision.reason}",
            failure_class="budget", no_more_tries=True,
        )  # fmt: skip
        return
    if row is None:
        raise Conflict("the assignment that was over its limit has ended", code="assignment_ended")
    row.task, row.project = task, task.project
    row.limits = raised_limits(row, decision.payload)
    work.touch(row, "limits")
    move_task(
        work, task, BACK_TO.get(TaskStatus(task.asked_from), TaskStatus.WORKING),
        why="Sir raised the limit",
    )  # fmt: skip
    renew_lease(work, row, seconds=task.project.policy.limits.lease_seconds)
    take_held_result(work, row)
