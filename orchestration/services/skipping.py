"""Skip a step: cancelled with reason `skipped`, it satisfies its dependents and its phase.

Source: DESIGN section 4 rule 6.
"""

from __future__ import annotations

from orchestration.models import Assignment, Task
from orchestration.services.blueprints import descendant_ids
from orchestration.services.completion import advance
from orchestration.services.inbox import withdraw_open
from orchestration.services.leases import cancel_live
from orchestration.services.loop import settle_ending
from orchestration.services.moves import move_task, void_defects
from orchestration.services.unblocking import unblock
from orchestration.services.work import Work, locked
from orchestration.states import SKIPPED_REASON, TASK_TERMINAL, TaskStatus

BELOW_SKIPPED = "parent_skipped"


def skip_step(work: Work, step: Task, parent: Task, *, reason: str) -> list[Assignment]:
    """Skip a step and end everything below it; what waited for it may start.

    Return the executor assignments that became ready.
    Locks: expects parent and step locked; takes what is below in id order.
    """
    below = descendant_ids([step.pk])
    # The tasks first: what is asked about one is asked under its lock.
    rows = list(locked(Task.objects.filter(pk__in=below)).order_by("pk"))
    cancel_live(work, [step.pk, *below], why=SKIPPED_REASON)
    withdraw_open(work, [step.pk, *below], why="step skipped")
    void_defects(work, [step.pk, *below], why="step skipped")
    for row in rows:
        if row.status not in TASK_TERMINAL:
            _cancel(work, row, why="its parent was skipped", reason=BELOW_SKIPPED)
    _cancel(work, step, why=reason, reason=SKIPPED_REASON)
    work.flush()
    unblock(work, step)
    ready = advance(work, step, parent)
    settle_ending(work, step)
    return ready


def _cancel(work: Work, row: Task, *, why: str, reason: str) -> None:
    move_task(work, row, TaskStatus.CANCELLED, why=why, cancel_reason=reason)
