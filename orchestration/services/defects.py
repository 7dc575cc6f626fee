"""Defects: graded findings, the gate their severity sets, and the rounds of fixes.

Critical and High are fixed by rule (High tells Sir), Medium waits for Sir, Low is QA's to decide.
Each fix is verified and reviewed again; one that does not verify meets its gate again.
Source: DESIGN section 8 ("Defects"), section 4 rule 2, section 9 (`medium_defect`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Q

from orchestration.models import Assignment, Decision, Defect, QAReview, Task
from orchestration.rules.commands import command_digest
from orchestration.rules.dag import canonical_digest
from orchestration.rules.severity import Approver, gate
from orchestration.rules.test_guides import loosened_tests
from orchestration.selectors.consumers import dependents_of
from orchestration.services.assignments import queue_assignment
from orchestration.services.claim_findings import keys_of
from orchestration.services.inbox import open_decision
from orchestration.services.loop import fail_leaf
from orchestration.services.moves import move_defect
from orchestration.services.work import Work
from orchestration.states import DecisionKind, DecisionStatus, DefectStatus, Seat, Severity

_FROM_COMMAND = ("run:", "verify:")
"""How the source key of a defect begins that a command of the step showed."""
_PROPOSED = frozenset({DefectStatus.AWAITING_SIR.value, DefectStatus.FIX_APPROVED.value})
_WAITS = frozenset({DefectStatus.AWAITING_SIR.value, DefectStatus.REPROPOSING.value})


def open_defect(
    work: Work,
    task: Task,
    review: QAReview | None,
    document: Mapping[str, Any],
    *,
    raised_by: str,
    low: str = "accept",
) -> Defect:
    """Open one defect and pass it through its severity's gate."""
    impact = dependents_of(task)
    defect = Defect.objects.create(
        task=task,
        review=review,
        severity=document["severity"],
        category=document.get("category", "defect"),
        title=str(document["title"])[:300],
        description=document.get("description", ""),
        evidence=document.get("evidence") or {},
        proposed_fix=document.get("proposed_fix"),
        source_key=document.get("source_key", ""),
        fix_round=task.fix_round,
        impact=impact.listed,
        impact_total=impact.total,
        raised_by=raised_by,
        created_at=work.now,
        updated_at=work.now,
    )
    work.record(
        "defect.open",
        subject=f"defect:{defect.pk}",
        project_id=task.project_id,
        task_id=task.pk,
        after={"status": "open", "severity": defect.severity, "title": defect.title},
    )
    pass_gate(work, task, defect, low=low)
    return defect


def pass_gate(work: Work, task: Task, defect: Defect, *, low: str = "accept") -> None:
    """Decide who approves the fix of an open defect, by its severity (also after a failed fix)."""
    rule = gate(Severity(defect.severity))
    is_accepted = rule.approver is Approver.QA and low == "accept"
    if rule.waits_for_sir or (weakens_tests(defect) and not is_accepted):
        move_defect(work, defect, DefectStatus.AWAITING_SIR)
        # What he rejected is not asked again: `take_next_step` fails the step over it.
        if not was_rejected(task, defect):
            ask_about_defect(work, task, defect)
    elif is_accepted:
        move_defect(work, defect, DefectStatus.ACCEPTED_AS_IS, why="QA accepts a Low defect")
    else:
        move_defect(work, defect, DefectStatus.FIX_APPROVED, why="approved by rule")
        if rule.notifies_sir:
            notify_sir(work, task, defect)


def weakens_tests(defect: Defect) -> bool:
    """Whether the proposed fix deletes, disables or loosens a test: no rule approves that."""
    return bool(loosened_tests(str((defect.proposed_fix or {}).get("patch") or "")))


def ask_about_defect(work: Work, task: Task, defect: Defect) -> Decision:
    """Open the `medium_defect` item: what is wrong, the evidence, the proposed fix, the rounds."""
    fix = defect.proposed_fix or {}
    rounds = task.project.policy.thresholds.fix_rounds
    return open_decision(
        work,
        kind=DecisionKind.MEDIUM_DEFECT,
        project=task.project,
        task=task,
        defect=defect,
        title=defect.title,
        question=f"Apply the proposed fix to step {task.step_key or task}?"
        if fix
        else f"Have step {task.step_key or task} fixed?",
        content={
            "description": defect.description,
            "evidence": defect.evidence,
            "fix": fix or None,
            "fix_digest": canonical_digest(fix) if fix else "",
            "severity": defect.severity,
            "round": task.fix_round + 1,
            "rounds": rounds,
        },
        params={
            "round": task.fix_round + 1,
            "rounds": rounds,
            "step": task.step_key or str(task),
            "blocks": defect.impact_total,
        },
        evidence=[defect.evidence],
    )


def notify_sir(work: Work, task: Task, defect: Defect, *, diff: str = "") -> None:
    """Tell Sir of a High defect that is fixed by rule; the notice blocks nothing."""
    open_decision(
        work,
        kind=DecisionKind.HIGH_NOTICE,
        project=task.project,
        task=task,
        defect=defect,
        title=defect.title,
        question="A High defect is being fixed by rule.",
        content={
            "description": defect.description,
            "evidence": defect.evidence,
            "fix": defect.proposed_fix or ({"patch": diff} if diff else None),
            "severity": defect.severity,
        },
    )


def settle_fixed(
    work: Work, task: Task, found: Sequence[Mapping[str, Any]], *, refusal: str = ""
) -> frozenset[str]:
    """Verify fixed defects whose check now passes; reopen those that still fail.

    A fix whose command could not be run again (`refusal` says why) is not verified: it meets its
    gate again. Return the source keys of findings that belong to a defect that already stands.
    """
    failing = {
        key: one
        for one in found
        for key in keys_of(str(one.get("source_key")), one.get("evidence") or {})
    }
    standing: set[str] = set()
    for defect in task.defects.filter(status=DefectStatus.FIXED.value).order_by("pk"):
        defect.task = task
        _use_up(work, task, defect)
        known = keys_of(defect.source_key, defect.evidence)
        again = next((failing[key] for key in known if key in failing), None)
        if again is None and refusal and defect.source_key.startswith(_FROM_COMMAND):
            unknown = {"outcome": "not_possible", "exit_code": None, "grade": "none"}
            again = {"evidence": {**defect.evidence, **unknown, "output_tail": refusal}}
        note = {
            "round": task.fix_round,
            "tried": (defect.proposed_fix or {}).get("description", "") or defect.guidance,
            "outcome": "verified" if again is None else "did_not_verify",
            "at": work.now.isoformat(),
        }
        if again is not None:
            note["exit_code"] = again["evidence"].get("exit_code")
        defect.rounds = [*defect.rounds, note]
        work.touch(defect, "rounds")
        if again is None:
            move_defect(work, defect, DefectStatus.VERIFIED)
            continue
        standing.update((defect.source_key, str(again.get("source_key", ""))))
        _reopen(work, task, defect, again["evidence"], why=refusal or "the fix did not verify")
    return frozenset(standing)


def _use_up(work: Work, task: Task, defect: Defect) -> None:
    """Take back Sir's approval of the commands of a fix that was applied: it was for one use.

    A command that the step also runs or verifies with stays approved.
    """
    planned = task.parent
    used = {command_digest(one) for one in (defect.proposed_fix or {}).get("commands") or ()}
    used -= {command_digest(one) for one in (*task.run, *task.verify)}
    if planned is None or not used.intersection(planned.approved_digests):
        return
    planned.approved_digests = [one for one in planned.approved_digests if one not in used]
    work.touch(planned, "approved_digests")


def _reopen(
    work: Work, task: Task, defect: Defect, evidence: Mapping[str, Any], *, why: str
) -> None:
    defect.evidence = dict(evidence)
    work.touch(defect, "evidence")
    move_defect(work, defect, DefectStatus.OPEN, why=why)
    if not _rounds_used_up(task):
        pass_gate(work, task, defect)


def _rounds_used_up(task: Task) -> bool:
    return task.fix_round >= task.project.policy.thresholds.fix_rounds


def take_next_step(work: Work, task: Task, defects: Sequence[Defect]) -> list[Assignment]:
    """Wait while Sir or a fixer has an item; else fix what is approved, or fail the step.

    One review's approved fixes run as one round, once its Medium items are decided.
    """
    refused = [row for row in defects if row.status in _PROPOSED and was_rejected(task, row)]
    if refused:
        return _refuse(work, task, refused)
    if any(row.status in _WAITS for row in defects):
        return []
    approved = [row for row in defects if row.status == DefectStatus.FIX_APPROVED]
    stuck = [row for row in defects if row.status == DefectStatus.OPEN]
    if stuck or (approved and _rounds_used_up(task)):
        why = f"{task.fix_round} fix rounds did not clear: {(stuck or approved)[0].title}"
        return fail_leaf(work, task, why=why, failure_class="check_failed", no_more_tries=True)
    return start_round(work, task, approved) if approved else []


def _refuse(work: Work, task: Task, refused: Sequence[Defect]) -> list[Assignment]:
    """Fail a step whose fix Sir rejected before; nobody is asked again and nothing runs."""
    why = f"the same fix was rejected before: {refused[0].title}"
    for row in refused:
        if row.status == DefectStatus.AWAITING_SIR:
            row.task = task
            move_defect(work, row, DefectStatus.REJECTED, why=why)
    work.flush()
    return fail_leaf(work, task, why=why, failure_class="rejected_by_sir", no_more_tries=True)


def was_rejected(task: Task, defect: Defect) -> bool:
    """Whether Sir rejected a step over this very fix before, anywhere in the task's lineage."""
    if not defect.proposed_fix:
        return False
    rows = Decision.objects.filter(
        Q(task_id=task.lineage_root_id) | Q(task__root_id=task.lineage_root_id),
        kind=DecisionKind.MEDIUM_DEFECT.value,
        status=DecisionStatus.DECIDED.value,
        verdict="reject",
    ).exclude(defect=defect)
    return rows.filter(content__fix_digest=canonical_digest(defect.proposed_fix)).exists()


def start_round(work: Work, task: Task, approved: Sequence[Defect]) -> list[Assignment]:
    """Queue one fixer for all approved fixes of a review."""
    task.fix_round += 1
    work.touch(task, "fix_round")
    asked = {
        "mode": "fix",
        "fix_round": task.fix_round,
        "defects": [describe_defect(row) for row in approved],
    }
    for row in approved:
        row.task = task
        row.fix_round = task.fix_round
        work.touch(row, "fix_round")
        move_defect(work, row, DefectStatus.FIXING)
    work.flush()
    return [queue_assignment(work, task, Seat.FIXER, task.project.policy, input=asked)]


def ask_for_proposal(work: Work, task: Task, defect: Defect, *, guidance: str) -> None:
    """Have the fixer propose another fix as a new item; it uses up one fix round.

    Where that is the last one, the step fails: no round would be left to apply the proposal.
    """
    task.fix_round += 1
    work.touch(task, "fix_round")
    if _rounds_used_up(task):
        why = f"changes requested in the last fix round: {guidance}"
        fail_leaf(work, task, why=why, failure_class="rejected_by_sir", no_more_tries=True)
        return
    defect.guidance = guidance
    defect.rounds = [
        *defect.rounds,
        {
            "round": task.fix_round,
            "tried": guidance,
            "outcome": "changes_requested",
            "at": work.now.isoformat(),
        },
    ]
    work.touch(defect, "guidance", "rounds")
    move_defect(work, defect, DefectStatus.REPROPOSING, why=guidance)
    work.flush()
    asked = {
        "mode": "propose",
        "guidance": guidance,
        "fix_round": task.fix_round,
        "defects": [describe_defect(defect)],
    }
    queue_assignment(work, task, Seat.FIXER, task.project.policy, input=asked, defect_id=defect.pk)


def describe_defect(defect: Defect) -> dict[str, Any]:
    """What a fixer is handed about one defect."""
    return {
        "id": str(defect.pk),
        "severity": defect.severity,
        "title": defect.title,
        "description": defect.description,
        "evidence": defect.evidence,
        "proposed_fix": defect.proposed_fix,
        "rounds": defect.rounds,
        "guidance": defect.guidance,
    }
