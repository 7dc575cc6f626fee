"""What comes back from the fixer seat: a fix that was applied, or another proposal.

Source: DESIGN section 8 ("Defects"), section 9 (`medium_defect`, request_changes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestration.contracts.results import OutputInput
from orchestration.models import ArtifactContent, Assignment, Defect, Task
from orchestration.rules.made_diffs import is_showable, made_diff
from orchestration.services.defects import ask_about_defect, was_rejected
from orchestration.services.inbox import open_decision
from orchestration.services.loop import fail_leaf
from orchestration.services.moves import move_defect
from orchestration.services.outputs import newest_outputs
from orchestration.services.review import start_review
from orchestration.services.work import Work
from orchestration.states import DecisionKind, DefectStatus, Severity


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


def finished_diff(task: Task, document: OutputInput, data: bytes) -> str:
    """Write what a fixer's output changed, before it is stored; empty where that is not known."""
    name = document.path or document.title
    known = [one for one in newest_outputs(task) if (one.path or one.title) == name]
    if not known:
        return made_diff(name, None, data)
    if not known[-1].path:
        return made_diff(name, known[-1].content.encode(), data)
    locked = ArtifactContent.objects.filter(sha256=known[-1].sha256).first()
    return made_diff(name, bytes(locked.data), data) if locked is not None else ""


def show_asked_fixes(
    work: Work, task: Task, *, defect_ids: Sequence[str], note: str, diff: str
) -> None:
    """Show Sir the finished fix of a Medium defect that he had fixed without seeing one."""
    fix = {"description": note, **({"patch": diff} if is_showable(diff) else {})}
    for defect in _round(task, defect_ids):
        if defect.severity != Severity.MEDIUM or defect.proposed_fix:
            continue
        open_decision(
            work,
            kind=DecisionKind.HIGH_NOTICE,
            project=task.project,
            task=task,
            defect=defect,
            title=defect.title,
            question="The fix that you asked for was handed in; it is verified now.",
            content={
                "reason": "asked_fix",
                "description": defect.description,
                "evidence": defect.evidence,
                "fix": fix,
                "severity": defect.severity,
            },
        )


def _round(task: Task, defect_ids: Sequence[str]) -> list[Defect]:
    rows = list(task.defects.filter(pk__in=[int(pk) for pk in defect_ids]).order_by("pk"))
    for row in rows:
        row.task = task
    return rows
