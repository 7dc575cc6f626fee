"""What Sir's "no" to a red line does: it answers the question, and is not asked for twice.

Source: docs/decisions/0009-refused-red-lines.md, DESIGN section 4 rule 13 and section 9.
"""

from __future__ import annotations

from orchestration.models import Decision, Task
from orchestration.services.cancelling import cancel_tree
from orchestration.services.leases import cancel_live
from orchestration.services.lookups import lock_lineage_root
from orchestration.services.loop import fail_leaf
from orchestration.services.red_line_refusals import comes_back_unchanged
from orchestration.services.work import Work
from orchestration.states import TaskStatus

RED_LINE = "red_line"


def is_about_command(decision: Decision) -> bool:
    """Whether an agent asks for one command: without it, its work goes on."""
    return decision.content.get("reason") == RED_LINE and bool(decision.content.get("asked_by"))


def refuse_request(work: Work, task: Task, decision: Decision) -> None:
    """Fail a task whose request Sir rejects, or end it where failing could change nothing.

    A plan that its agent made may be made otherwise: it counts as one try. A step of a plan that
    would come back as it is ends its root; so does the red line in a root's own text.
    """
    is_red_line = decision.content.get("reason") == RED_LINE
    is_plan = is_red_line and task.asked_from == TaskStatus.WORKING
    if is_red_line and not is_plan and not task.is_spawned and comes_back_unchanged(task):
        root = lock_lineage_root(task)
        root.project = task.project
        cancel_tree(work, root, why=f"red line refused: {decision.reason}")
        return
    cancel_live(work, [task.pk], why="rejected by Sir")
    fail_leaf(
        work,
        task,
        why=f"{'red line refused' if is_red_line else 'rejected by Sir'}: {decision.reason}",
        failure_class="rejected_by_sir",
        no_more_tries=not is_plan,
    )
