"""S3's second half: verify a handed-in step, review it, then lock it or open defects.

`start_review` either judges inline (nothing to run) or queues the QA seat, whose worker gathers
evidence first. The defect loop keeps the task in `review` (rule 2).
Source: DESIGN section 8, section 4 rule 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestration.contracts.results import QaResult
from orchestration.errors import Conflict
from orchestration.models import Assignment, Defect, Output, QAReview, Task
from orchestration.models.rows import new_row
from orchestration.models.statements import defects_in
from orchestration.rules.flow_stages import TASK_CHECK, judge_of
from orchestration.seats.claim_checks import has_checks
from orchestration.seats.independent import spoken_claims_of
from orchestration.seats.registry import EXTERNAL
from orchestration.services.artifacts import lock_artifacts
from orchestration.services.assignments import queue_assignment
from orchestration.services.claim_findings import unsettled
from orchestration.services.completion import complete_task
from orchestration.services.defects import open_defect, settle_fixed, take_next_step
from orchestration.services.findings import found_defects
from orchestration.services.fix_ends import judge_behind
from orchestration.services.flow_documents import keep_documents, tick_box
from orchestration.services.inbox import withdraw_open
from orchestration.services.layers import ask_outer_layers, last_change
from orchestration.services.locked_fixes import end_fix, is_recheck, settle_recheck
from orchestration.services.loop import fail_leaf, retry_leaf
from orchestration.services.marks import calls_of, contradicted, is_denied_by_record, mark_outputs
from orchestration.services.moves import void_defects
from orchestration.services.outputs import newest_outputs
from orchestration.services.profile_gate import profile_findings
from orchestration.services.task_check import judge_input, require_task_checks
from orchestration.services.verification import (
    Evidence,
    failed_early,
    layer_facts,
    record_layers,
    step_layers,
)
from orchestration.services.work import Work
from orchestration.states import ASSIGNMENT_LIVE, DEFECT_UNFINISHED, DefectStatus, Seat

INSTANT = Evidence()
RULES = "rules"
LOCK = "lock"
"""The stage of a rules QA that reads what was reviewed once more and locks it."""


def start_review(
    work: Work, task: Task, parent: Task | None, outputs: Sequence[Output]
) -> list[Assignment]:
    """Verify and review a task that was just handed in, or queue the worker that has to.

    Locks: expects parent and task locked.
    """
    if needs_evidence(task, outputs):
        due: dict[str, Any] = {"stage": "verification", "fix_round": task.fix_round}
        if is_denied_by_record(task, outputs):
            due["is_contradicted"] = True
        row = queue_assignment(work, task, Seat.QA, task.project.policy, input=due, backend="rules")
        return [row]
    return judge(work, task, parent, outputs, INSTANT)


def needs_evidence(task: Task, outputs: Sequence[Output]) -> bool:
    """Whether a command has to run, or a file has to be read, before the step can be judged."""
    if task.verify or task.expected_artifacts or any(one.path for one in outputs):
        return True
    if any(has_checks(task, one.assertions) for one in outputs):
        return True
    if bool(task.run) and (task.fix_round > 0 or task.on_failure is not None):
        return True
    return bool(task.project.workspace) and bool(spoken_claims_of(task, outputs))


def judge(
    work: Work,
    task: Task,
    parent: Task | None,
    outputs: Sequence[Output],
    evidence: Evidence,
) -> list[Assignment]:
    """Record the layers, mark the work, then go outwards: a cross-check, Sir, and QA.

    What the rules found stops the way out: QA opens it as defects first.
    """
    calls = calls_of(task)
    said = unsettled(task, contradicted(task, outputs, calls), evidence)
    layers = step_layers(task, outputs, evidence, said)
    record_layers(work, task, layers, outputs[-1] if outputs else None)
    mark_outputs(work, task, outputs, evidence, calls)
    unusable = failed_early(layers)
    if unusable:
        return redo(work, task, unusable)
    found = found_defects(task, evidence, said)
    if task.role:
        found = [*found, *profile_findings(task, outputs)]
    if not found and ask_outer_layers(work, task, outputs, refusal=evidence.refusal):
        return []
    return pass_to_qa(
        work, task, parent, outputs, evidence, found=found, layers=layer_facts(layers)
    )


def pass_to_qa(
    work: Work,
    task: Task,
    parent: Task | None,
    outputs: Sequence[Output],
    evidence: Evidence,
    *,
    found: Sequence[Mapping[str, Any]] = (),
    layers: Sequence[Sequence[str]] = (),
) -> list[Assignment]:
    """Let QA decide on work whose layers are through: an agent, or the rules.

    Locks: expects parent and task locked.
    """
    if is_judged_outside(task):
        asked = {
            "stage": "review",
            "fix_round": task.fix_round,
            "findings": list(found),
            "refusal": evidence.refusal,
        }
        if task.role:
            asked |= judge_input(task)
        queue_assignment(work, task, Seat.QA, task.project.policy, input=asked, backend=EXTERNAL)
        return []
    return record_review(
        work, task, parent, outputs, evidence,
        found=found, backend=RULES, low_defects="accept", layers=layers,
    )  # fmt: skip


def is_judged_outside(task: Task) -> bool:
    """Whether an agent fills the QA seat: by the project's policy, or as the stage's own judge."""
    if task.role and judge_of(task.role, task.step_key):
        return True
    return task.project.policy.backends(Seat.QA)[0] == EXTERNAL


def redo(work: Work, task: Task, findings: Sequence[str]) -> list[Assignment]:
    """Send unusable work back to pending with the findings; beyond the tries the step fails.

    The defects of this attempt end with it: the next one is judged afresh.
    """
    why = "; ".join(findings)[:2000]
    task.tries += 1
    task.failure_context = [
        *task.failure_context,
        {"attempt": task.attempt, "class": "check_failed", "root_cause": why},
    ]
    work.touch(task, "tries", "failure_context")
    if task.tries >= task.project.policy.thresholds.step_attempts:
        task.tries -= 1
        return fail_leaf(work, task, why=why, failure_class="check_failed", no_more_tries=True)
    withdraw_open(work, [task.pk], why="the work is redone")
    void_defects(work, [task.pk], why="the work is redone")
    return retry_leaf(work, task)


def record_review(
    work: Work,
    task: Task,
    parent: Task | None,
    outputs: Sequence[Output],
    evidence: Evidence,
    *,
    found: Sequence[Mapping[str, Any]],
    backend: str,
    low_defects: str,
    agent_id: int | None = None,
    layers: Sequence[Sequence[str]] = (),
) -> list[Assignment]:
    """Store one QA verdict, settle earlier fixes, open new defects, and take the next step.

    Return assignments that became ready for the caller's worker.
    Locks: expects parent and task locked.
    """
    verdict = "fail" if found else "pass"
    review = new_row(
        QAReview,
        task=task,
        attempt=task.attempt,
        fix_round=task.fix_round,
        verdict=verdict,
        backend=backend,
        agent_id=agent_id,
        artifact_digests=[one.sha256 for one in outputs if one.sha256],
        low_defects=low_defects,
        created_at=work.now,
    )
    work.insert([review])
    work.record(
        f"review.{verdict}",
        subject=f"review:{review.pk}",
        project_id=task.project_id,
        task_id=task.pk,
        after={
            "backend": backend,
            "defects": len(found),
            "fix_round": task.fix_round,
            "layers": list(layers),
        },
    )
    if found and is_recheck(task):
        settle_recheck(work, task, found)
        return complete_task(work, task, parent)
    if found or task.fix_round:
        standing = settle_fixed(work, task, found, refusal=evidence.refusal)
        for document in found:
            if document.get("source_key") not in standing:
                raised_by = document.get("raised_by", backend)
                open_defect(work, task, review, document, raised_by=raised_by, low=low_defects)
        work.flush()
    is_clean = not found and task.attempt == 1 and not task.fix_round
    return continue_review(work, task, parent, outputs, evidence, is_clean=is_clean)


def continue_review(
    work: Work,
    task: Task,
    parent: Task | None,
    outputs: Sequence[Output] | None = None,
    evidence: Evidence | None = None,
    *,
    is_clean: bool = False,
) -> list[Assignment]:
    """Go on with a reviewed task: wait for Sir, start the approved fixes, fail, or lock and finish.

    `is_clean` says that it never had a defect: its first review just passed.
    Locks: expects parent and task locked.
    """
    defects = [] if is_clean else unfinished_defects(task)
    if defects:
        return take_next_step(work, task, defects)
    rows = list(outputs) if outputs is not None else newest_outputs(task)
    if not is_clean and ask_outer_layers(work, task, rows):
        return []
    if not is_clean and _waits_for_agent(work, task):
        return []
    held = evidence if evidence is not None else INSTANT
    if any(one.path and one.path not in held.files for one in rows):
        # The verdict came without the files: read them again before they are locked.
        queued = queue_assignment(
            work, task, Seat.QA, task.project.policy,
            input={"stage": LOCK, "fix_round": task.fix_round}, backend=RULES,
        )  # fmt: skip
        return [queued]
    return _lock(work, task, parent, rows, held, is_clean=is_clean)


def lock_reviewed(
    work: Work, task: Task, parent: Task | None, outputs: Sequence[Output], evidence: Evidence
) -> list[Assignment]:
    """Lock what was reviewed without its files at hand, if they are still what was reviewed.

    Locks: expects parent and task locked.
    """
    unfinished = unfinished_defects(task)
    if unfinished:
        return take_next_step(work, task, unfinished)
    findings = [f"missing or empty since its review: {path}" for path in evidence.missing]
    findings += [f"changed since its review: {path}" for path in evidence.changed]
    if findings:
        return redo(work, task, findings)
    return _lock(work, task, parent, outputs, evidence)


def _lock(
    work: Work,
    task: Task,
    parent: Task | None,
    outputs: Sequence[Output],
    evidence: Evidence,
    *,
    is_clean: bool = False,
) -> list[Assignment]:
    if task.fixes_id is not None:
        why = end_fix(work, task, outputs, evidence.files)
        if why:
            return redo(work, task, [why])
        ready = complete_task(work, task, parent)
        judge_behind(work, task.fixes_id)
        return ready
    note = "" if is_clean else _exceptions(task)
    artifacts = lock_artifacts(work, task, outputs, evidence.files, exception_note=note)
    if task.role:
        keep_documents(work, task, artifacts)
        tick_box(work, task, parent)
    return complete_task(work, task, parent)


def _waits_for_agent(work: Work, task: Task) -> bool:
    """Whether an agent's QA is still due for the work as it is; ask again where that was lost.

    Sir's word on a defect, or on a seat that nobody filled, is not QA's verdict.
    """
    if task.is_planned or not is_judged_outside(task):
        return False
    seats = task.assignments.filter(attempt=task.attempt)
    fixed_in = last_change(task)
    judged = QAReview.objects.filter(
        task=task, attempt=task.attempt, backend=EXTERNAL, fix_round__gte=fixed_in
    )
    if judged.exists():
        return False
    asked = seats.filter(seat=Seat.QA.value, backend=EXTERNAL)
    if not asked.filter(status__in=[state.value for state in ASSIGNMENT_LIVE]).exists():
        last = asked.last()
        again = last.input if last is not None else {"stage": "review"}
        queue_assignment(work, task, Seat.QA, task.project.policy, input=again, backend=EXTERNAL)
    return True


def unfinished_defects(task: Task) -> list[Defect]:
    """The defects a task still has to see through; most steps never had one."""
    return defects_in(task.pk, [state.value for state in DEFECT_UNFINISHED])


def _exceptions(task: Task) -> str:
    """Name the defects of this attempt that were accepted as they are."""
    rows = defects_in(task.pk, [DefectStatus.ACCEPTED_AS_IS.value])
    return "; ".join(f"{row.severity}: {row.title}" for row in rows)


def record_qa_result(
    work: Work,
    task: Task,
    parent: Task | None,
    result: QaResult,
    *,
    asked: Mapping[str, Any],
    agent_id: int | None,
    raised_by: str,
) -> list[Assignment]:
    """Take an external QA's verdict on a task in review.

    What the rules found before it was asked stands beside what it found, whatever its verdict.
    Errors: Conflict when it judged other outputs than those that are there.
    """
    outputs = newest_outputs(task)
    _require_judged(result, outputs)
    if asked.get("profile") == TASK_CHECK:
        require_task_checks(result)
    found = [{**one, "raised_by": RULES} for one in asked.get("findings", ())]
    found += [
        {
            "severity": one.severity.value,
            "category": one.category.value,
            "title": one.title,
            "description": one.description,
            "evidence": {"text": one.evidence, "by": raised_by},
            "proposed_fix": one.proposed_fix.to_document() if one.proposed_fix else None,
            "source_key": f"qa:{one.title}"[:64],
        }
        for one in result.defects
    ]
    evidence = Evidence(refusal=asked.get("refusal", ""))
    return record_review(
        work, task, parent, outputs, evidence,
        found=found, backend=EXTERNAL, low_defects=result.low_defects, agent_id=agent_id,
    )  # fmt: skip


def _require_judged(result: QaResult, outputs: Sequence[Output]) -> None:
    """Raise when QA names a digest that is no output's: it judged something else."""
    digests = {one.sha256 for one in outputs}
    unknown = sorted({one.lower() for one in result.artifact_digests} - digests)
    if unknown:
        raise Conflict(
            f"the outputs are not what was judged: no output has the digest {unknown[0]}",
            code="outputs_changed",
            expected=sorted(digests),
        )


def reject_step(work: Work, task: Task, defect: Defect, *, reason: str) -> list[Assignment]:
    """Fail a step because Sir rejected it; its tries are used up."""
    return fail_leaf(
        work,
        task,
        why=f"rejected by Sir: {reason}",
        failure_class="rejected_by_sir",
        evidence={"defect": str(defect.pk), "title": defect.title},
        no_more_tries=True,
    )
