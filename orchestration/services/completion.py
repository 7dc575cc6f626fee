"""The way up from a finished step: dependents, phase, parent, root.

Finishing a step costs O(its dependents), never O(plan). A phase closes because its rows say so,
checked under the parent's lock, which the finisher takes before the step's.
Source: DESIGN sections 3, 4 and 7.
"""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from orchestration.contracts.results import CommentInput, OutputInput
from orchestration.models import Artifact, Assignment, Task
from orchestration.models.prepared import Prepared
from orchestration.models.statements import (
    first_unfinished_phase,
    is_root_stopped,
    ready_in_phase,
    release_dependents,
    waits_for_steps,
    what_a_step_frees,
)
from orchestration.services.inbox import withdraw_open
from orchestration.services.judging import settle_root
from orchestration.services.layers import ask_outer_layers
from orchestration.services.lookups import lock_task
from orchestration.services.moves import move_task
from orchestration.services.outputs import add_comment, add_output, newest_outputs
from orchestration.services.readiness import make_ready
from orchestration.services.spawned import tell_spawner
from orchestration.services.unblocking import unblock
from orchestration.services.verification import record_layers, report_layers
from orchestration.services.work import Work
from orchestration.states import (
    SKIPPED_REASON,
    CommentType,
    OutputType,
    RiskLevel,
    TaskStatus,
)


def complete_task(work: Work, task: Task, parent: Task | None) -> list[Assignment]:
    """Move a reviewed task to done and let everything behind it start; a root is judged first.

    Return the executor assignments that became ready, siblings first, for the finisher to take.
    Locks: expects parent, then task locked.
    """
    if parent is None:
        return settle_root(work, task)
    task.last_outcome = "done"
    work.touch(task, "last_outcome")
    with work.as_system():
        move_task(work, task, TaskStatus.DONE)
        if task.is_spawned or not parent.is_planned:
            unblock(work, task)
            return advance(work, task, parent)
        blocks, is_phase_open = _look(work, task, parent)
        if blocks:
            unblock(work, task)
        return _go_on(work, task, parent, is_phase_open=is_phase_open)


def _look(work: Work, task: Task, parent: Task) -> tuple[bool, bool]:
    """Say whether a step that ended blocks others, and whether its phase has another open one."""
    ended = {task.pk, *work.ended_steps()}
    return what_a_step_frees(task.pk, parent.pk, parent.open_phase, ended=sorted(ended))


def advance(work: Work, task: Task, parent: Task) -> list[Assignment]:
    """Release the dependents of a finished or skipped step, close its phase, finish its parent.

    A spawned child's end is told to its spawner, who goes on by itself.
    Locks: expects the parent locked; takes the dependents in id order.
    """
    if task.is_spawned:
        tell_spawner(work, task, parent)
    if not parent.is_planned:
        return []
    _, is_phase_open = _look(work, task, parent)
    return _go_on(work, task, parent, is_phase_open=is_phase_open)


def _go_on(work: Work, task: Task, parent: Task, *, is_phase_open: bool) -> list[Assignment]:
    ready = release_dependents(task.pk, parent.open_phase)
    if not is_phase_open:
        work.flush()
        first = first_unfinished_phase(parent.pk)
        if first is None:
            return finish_planned(work, parent)
        if first > parent.open_phase:
            parent.open_phase = first
            work.touch(parent, "open_phase")
            ready = ready_in_phase(parent.pk, parent.open_phase)
    return make_ready(work, [_attach(row, parent) for row in ready])


def _attach(row: Task, parent: Task) -> Task:
    row.parent, row.project, row.root = parent, parent.project, parent.root or parent
    return row


def check_planned(work: Work, parent: Task) -> list[Assignment]:
    """Finish a planned task whose every step is already done or skipped, as after a re-plan."""
    if parent.status != TaskStatus.WORKING:
        return []
    work.flush_rows()
    has_steps, is_unfinished = waits_for_steps(parent.pk)
    if is_unfinished or not has_steps or is_root_stopped(parent.lineage_root_id):
        return []
    work.flush()
    return finish_planned(work, parent)


def finish_planned(work: Work, task: Task) -> list[Assignment]:
    """Hand in a generated step report for a planned task, review it, and go on upwards.

    Its own review is L1 and L2 on the report (rule 10).
    Locks: expects the task locked; takes its parent's row after it (rare, and retried on deadlock).
    """
    if task.status != TaskStatus.WORKING or task.is_ending or task.is_replanning:
        return []
    report, summary = step_report(task)
    document = OutputInput(
        type=OutputType.DOCUMENT, title="Step report", content=report, summary=summary
    )
    add_output(work, task, document, assignment=None, data=report.encode())
    add_comment(
        work,
        task,
        CommentInput(comment_type=CommentType.HANDOFF, body=summary),
        author="system",
    )
    move_task(work, task, TaskStatus.REVIEW, why="every step is done or skipped")
    record_layers(work, task, report_layers(task))
    withdraw_open(work, [task.pk], why="task finished")
    work.flush()
    if task.risk_level == RiskLevel.CRITICAL and ask_outer_layers(work, task, newest_outputs(task)):
        return []
    parent = lock_task(task.parent_id) if task.parent_id is not None else None
    return complete_task(work, task, parent)


@Prepared
def _artifacts_below(parent_id: int) -> QuerySet[Any, Any]:
    rows = Artifact.objects.filter(task__parent=parent_id).order_by("pk")
    return rows.values_list("task_id", "name", "version")


@Prepared
def _steps_below(parent_id: int) -> QuerySet[Any, Any]:
    rows = Task.objects.filter(parent=parent_id, is_superseded=False).order_by("phase", "pk")
    return rows.values_list("pk", "step_key", "title", "status", "cancel_reason")


def step_report(task: Task) -> tuple[str, str]:
    """Write the report of a planned task: what each step did, from rows only.

    Shape: the report, and one line that sums it up.
    """
    lines = [f"# {task.title}", ""]
    made: dict[int, list[str]] = {}
    for task_id, name, version in _artifacts_below(task.pk):
        made.setdefault(task_id, []).append(f"{name} v{version}")
    done = skipped = 0
    for pk, key, title, status, reason in _steps_below(task.pk):
        done += status == TaskStatus.DONE
        skipped += reason == SKIPPED_REASON
        listed = f" ({', '.join(made[pk])})" if pk in made else ""
        lines.append(f"- {key} {title}: {reason or status}{listed}")
    noun = "step" if done == 1 else "steps"
    summary = f"{done} {noun} done, {skipped} skipped; every artifact is locked."
    return "\n".join(lines) + "\n", summary
