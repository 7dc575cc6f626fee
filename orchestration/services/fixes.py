"""What comes back from the fixer seat: a fix that was applied, or another proposal.

Source: DESIGN section 8 ("Defects"), section 9 (`medium_defect`, request_changes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestration.models import Assignment, Defect, Task
from orchestration.services.defects import ask_about_defect, was_rejected
from orchestration.services.loop import fail_leaf
from orchestration.services.moves import move_defect
from orchestration.services.outputs import newest_outputs
from orchestration.services.review import start_review
from orchestration.services.work import Work
from orchestration.states import DefectStatus


def record_fix(
    work: Work,
    task: Task,
    parent: Task | None,
    *,
    defect_ids: Sequence[str],
    change_note: str,
    problems: Mapping[str, str],
) -> list[Assignment]:
    """Note a round's fixes as applied (or why one could not be), then verify and review again.

    Locks: expects parent and task locked.
    """
    for defect in _round(task, defect_ids):
        problem = problems.get(str(defect.pk), "")
        if problem:
            defect.rounds = [
                *defect.rounds,
                {"round": task.fix_round, "tried": change_note, "outcome": "not_applied",
                 "detail": problem, "at": work.now.isoformat()},
            ]  # fmt: skip
            work.touch(defect, "rounds")
        move_defect(work, defect, DefectStatus.FIXED, why=problem or change_note)
    work.record(
        "fix.recorded",
        subject=f"task:{task.pk}",
        project_id=task.project_id,
        task_id=task.pk,
        after={
            "fix_round": task.fix_round,
            "defects": list(defect_ids),
            "problems": dict(problems),
        },
        why=change_note,
    )
    work.flush()
    return start_review(work, task, parent, newest_outputs(task))


def record_proposal(
    work: Work, task: Task, *, defect_id: str, proposal: Mapping[str, Any]
) -> list[Assignment]:
    """Show a new proposal to Sir as a new item; a proposal he rejected before fails the step."""
    defect = _round(task, [defect_id]).pop()
    is_same = (defect.proposed_fix or {}) == dict(proposal)
    defect.proposed_fix = dict(proposal)
    if is_same or was_rejected(task, defect):
        why = "the fixer proposed the same fix again"
        return fail_leaf(work, task, why=why, failure_class="rejected_by_sir", no_more_tries=True)
    work.touch(defect, "proposed_fix")
    move_defect(work, defect, DefectStatus.AWAITING_SIR, why="another fix was proposed")
    work.flush()
    ask_about_defect(work, task, defect)
    return []


def _round(task: Task, defect_ids: Sequence[str]) -> list[Defect]:
    rows = list(task.defects.filter(pk__in=[int(pk) for pk in defect_ids]).order_by("pk"))
    for row in rows:
        row.task = task
    return rows
