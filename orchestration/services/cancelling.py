"""Cancel a task with everything below it, or one step with what cannot start without it.

Source: DESIGN section 4 rules 5, 6 and 7.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestration.models import Task
from orchestration.selectors.fixes import open_fixes, unfinished_locked
from orchestration.services.blockers import ask_behind
from orchestration.services.blueprints import descendant_ids
from orchestration.services.control import ask_if_stalled
from orchestration.services.fix_ends import give_up_fix, judge_behind
from orchestration.services.inbox import withdraw_open
from orchestration.services.leases import cancel_live
from orchestration.services.lookups import lineage_root, lock_project, lock_task
from orchestration.services.loop import complete_project_if_done, end_attempt
from orchestration.services.moves import move_task, void_defects
from orchestration.services.readiness import start_roots
from orchestration.services.spawned import tell_spawner
from orchestration.services.work import Work, locked
from orchestration.states import TASK_TERMINAL, TaskStatus

BY_SIR = "cancelled_by_sir"


def cancel_tree(work: Work, task: Task, *, why: str, reason: str = BY_SIR) -> None:
    """Cancel a task and everything below it; its leases, decisions and defects end with it.

    With what it locked go the tasks that fix it. A cancelled step ends its root's attempt, counting
    nothing (rule 7); a cancelled root lets the next one start.
    Locks: expects the task locked; takes everything below in id order.
    """
    work.flush()
    _cancel_rows(work, _tree_of(task), why=why, reason=reason)
    work.flush()
    if task.parent_id is None:
        judge_behind(work, task.fixes_id)
        work.flush()
        _go_on(work, task.project_id)
        return
    if task.is_spawned:
        # The row in hand is as it was before it was cancelled.
        tell_spawner(work, lock_task(task.pk), lock_task(task.parent_id))
        return
    _cancel_dependents(work, task, why=why, reason=reason)
    root = lineage_root(task)
    if reason == BY_SIR and root.status == TaskStatus.WORKING:
        cause = {
            "class": BY_SIR,
            "step": task.step_key,
            "attempt": root.attempt,
            "root_cause": f"step {task.step_key} cancelled by Sir: {why}",
        }
        end_attempt(work, root, cause=cause)


def cancel_roots(work: Work, project_id: int, roots: Sequence[Task], *, why: str) -> None:
    """Cancel roots of a project as Sir says; the loop goes on after the last of them.

    Locks: expects the project locked, then the roots, in id order.
    """
    for root in roots:
        _cancel_rows(work, _tree_of(root), why=why, reason=BY_SIR)
        work.flush()
    _go_on(work, project_id)


def cancel_open_tasks(work: Work, project_id: int, *, why: str) -> None:
    """Cancel every task of a project that has not ended; nothing goes on after it.

    What is asked or fixed about locked artifacts of done tasks ends as well.
    Locks: expects the project locked; takes the tasks in id order.
    """
    ended = [state.value for state in TASK_TERMINAL]
    rows = Task.objects.filter(project=project_id).exclude(status__in=ended).order_by("pk")
    _cancel_rows(work, list(rows.values_list("pk", flat=True)), why=why, reason=BY_SIR)
    work.flush()
    open_defects = unfinished_locked().filter(task__project=project_id)
    void_defects(work, open_defects.values_list("task_id", flat=True), why=why, with_locked=True)


def cancel_open_below(work: Work, task: Task, *, why: str) -> None:
    """Cancel what below a task has not ended, as nothing starts it any more; what failed stays so.

    Locks: expects the task locked; takes what is below in id order.
    """
    ended = [*(state.value for state in TASK_TERMINAL), TaskStatus.FAILED.value]
    rows = Task.objects.filter(pk__in=descendant_ids([task.pk])).exclude(status__in=ended)
    left = list(rows.order_by("pk").values_list("pk", flat=True))
    _cancel_rows(work, left, why=why, reason=BY_SIR)


def _tree_of(task: Task) -> list[int]:
    """List a task, all below it, and the tasks that fix what any of them locked."""
    ids = [task.pk, *descendant_ids([task.pk])]
    fixes = open_fixes(ids)
    return [*ids, *fixes, *descendant_ids(fixes)]


def _go_on(work: Work, project_id: int) -> None:
    """Complete the project of a cancelled root, start the next one, or ask Sir (rule 18)."""
    project = lock_project(project_id)
    complete_project_if_done(work, project)
    work.flush()
    start_roots(work, project)
    ask_if_stalled(work, project)


def _cancel_rows(work: Work, ids: list[int], *, why: str, reason: str) -> None:
    # The tasks first: a step that just finished may have queued its dependents.
    rows = list(locked(Task.objects.filter(pk__in=ids)).order_by("pk"))
    cancel_live(work, ids, why=why or reason)
    withdraw_open(work, ids, why="task cancelled", with_locked=True)
    void_defects(work, ids, why="task cancelled", with_locked=True)
    for row in rows:
        if row.status not in TASK_TERMINAL:
            move_task(work, row, TaskStatus.CANCELLED, why=why, cancel_reason=reason)
            if row.fixes_id is not None and not row.run:
                give_up_fix(work, row.fixes_id, why=why)
    for row in rows:
        ask_behind(work, row)


def _cancel_dependents(work: Work, task: Task, *, why: str, reason: str) -> None:
    """Cancel the not yet started steps that depend on a cancelled one, however far away."""
    level = [task.pk]
    while level:
        rows = locked(
            Task.objects.filter(
                requirements__requires_id__in=level, status=TaskStatus.PENDING.value
            )
        ).order_by("pk")
        level = sorted({row.pk for row in rows})
        if level:
            _cancel_rows(work, level, why=why, reason=reason)
            work.flush()
