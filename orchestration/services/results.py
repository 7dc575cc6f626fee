"""One door for what comes back from a seat, from our own workers and from agents over REST.

`record_result` fences by token, dispatches by seat, and lets the caller's worker take a successor
in the same transaction.
Source: DESIGN sections 2, 3 and 14 ("Results by seat").
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestration.contracts.documents import Document
from orchestration.contracts.results import (
    AuditorResult,
    CrossVerifierResult,
    ExecutorResult,
    FixerResult,
    IntentResult,
    OutputInput,
    QaResult,
    ScorerResult,
    parse_document,
)
from orchestration.errors import Invalid
from orchestration.models import Assignment, Output, Task
from orchestration.rules.scoring import parse_external_score
from orchestration.seats.registry import EXTERNAL
from orchestration.services.completion import check_planned
from orchestration.services.cross_checks import record_cross_check
from orchestration.services.execution import HandIn, record_executor, require_recordable
from orchestration.services.fixes import (
    finished_diff,
    record_fix,
    record_proposal,
    show_asked_fixes,
)
from orchestration.services.handshake import HANDSHAKE, answer_as_auditor
from orchestration.services.lookups import lock_project
from orchestration.services.moves import move_assignment
from orchestration.services.outputs import (
    add_comment,
    add_output,
    add_tool_calls,
    command_calls,
    newest_outputs,
    read_output,
)
from orchestration.services.planning import record_audit, record_plan
from orchestration.services.profile_gate import settle_fixed_work
from orchestration.services.readiness import apply_score, make_ready, start_roots
from orchestration.services.review import (
    LOCK,
    judge,
    lock_reviewed,
    record_qa_result,
)
from orchestration.services.validation import record_validator_result
from orchestration.services.verification import Evidence
from orchestration.services.work import Work
from orchestration.states import (
    AssignmentStatus,
    AuditVerdict,
    OutputType,
    PlanStatus,
    Seat,
    TaskStatus,
)


@dataclass(frozen=True, slots=True)
class WorkerResult:
    """What one of our own backends answers: a document by seat, or what it gathered or did.

    Shape: `raw` is the answer as the backend gave it, where it can be kept as it is.
    """

    document: Mapping[str, Any] | None = None
    hand_in: HandIn | None = None
    evidence: Evidence | None = None
    fix: Mapping[str, Any] | None = None
    raw: Mapping[str, Any] | None = None


def record_worker_result(
    work: Work, assignment: Assignment, parent: Task | None, result: WorkerResult
) -> list[Assignment]:
    """Record what one of our own backends did. Return assignments its worker may take next.

    Locks: expects parent, task and assignment locked, and the lease checked.
    """
    task, seat = assignment.task, Seat(assignment.seat)
    author = f"{assignment.backend} executor"
    if result.hand_in is not None:
        return record_executor(work, assignment, parent, result.hand_in, author=author)
    move_assignment(work, assignment, AssignmentStatus.DONE)
    if result.evidence is not None:
        return _record_evidence(work, task, parent, assignment, result.evidence)
    if result.fix is not None:
        return _record_worker_fix(work, task, parent, assignment, result.fix)
    document = dict(result.document or {})
    assignment.result = document
    work.touch(assignment, "result")
    return _record_thought(work, seat, assignment, document, backend=assignment.backend)


def _record_evidence(
    work: Work, task: Task, parent: Task | None, assignment: Assignment, evidence: Evidence
) -> list[Assignment]:
    if task.status != TaskStatus.REVIEW:
        return []
    if assignment.input.get("stage") == LOCK:
        return lock_reviewed(work, task, parent, newest_outputs(task), evidence)
    outputs = refresh_outputs(work, task, assignment, evidence)
    return judge(work, task, parent, outputs, evidence)


def refresh_outputs(
    work: Work, task: Task, assignment: Assignment, evidence: Evidence
) -> list[Output]:
    """After a fix, store the changed files as new output versions; the newest run counts."""
    outputs = newest_outputs(task)
    if not task.fix_round:
        return outputs
    for output in outputs:
        data = evidence.files.get(output.path) if output.path else None
        if data is None or hashlib.sha256(data).hexdigest() == output.sha256:
            continue
        renewed = OutputInput.model_construct(
            type=OutputType(output.type),
            title=output.title,
            summary=output.summary,
            content=None,
            path=output.path,
            assertions=(),
        )
        note = f"fix round {task.fix_round}"
        add_output(work, task, renewed, assignment=assignment, data=data, change_note=note)
    return newest_outputs(task)


def _record_worker_fix(
    work: Work, task: Task, parent: Task | None, assignment: Assignment, fix: Mapping[str, Any]
) -> list[Assignment]:
    if task.status != TaskStatus.REVIEW:
        return []
    if fix["runs"]:
        add_tool_calls(work, assignment, command_calls(fix["runs"]))
    return record_fix(
        work,
        task,
        parent,
        defect_ids=fix["defects"],
        change_note=fix["change_note"],
        problems=fix["problems"],
    )


def _record_thought(
    work: Work, seat: Seat, assignment: Assignment, document: Mapping[str, Any], *, backend: str
) -> list[Assignment]:
    """Record a planner's, auditor's or scorer's answer; the task may have moved on meanwhile."""
    task = assignment.task
    agent_id = assignment.agent_id
    if seat is Seat.SCORER:
        return _record_score(work, task, document, backend=backend, agent_id=agent_id)
    if task.status != TaskStatus.WORKING:
        return []
    if seat is Seat.PLANNER:
        record_plan(work, task, document, backend=backend, agent_id=agent_id)
        return []
    plan = assignment.plan
    if plan is None or plan.status != PlanStatus.AUDITING:
        return []
    plan.task = task
    record_audit(
        work,
        plan,
        verdict=AuditVerdict(document["verdict"]),
        checks=list(document.get("checks", ())),
        suggestions=list(document.get("suggestions", ())),
        backend=backend,
        agent_id=agent_id,
    )
    return check_planned(work, task)


def _record_score(
    work: Work, task: Task, document: Mapping[str, Any], *, backend: str, agent_id: int | None
) -> list[Assignment]:
    if task.status != TaskStatus.PENDING or task.is_assessed:
        return []
    result = parse_external_score(dict(document), task.project.policy, depth=task.depth)
    apply_score(work, task, result, backend=backend, agent_id=agent_id)
    work.flush()
    ready = make_ready(work, [task])
    if task.parent_id is None and task.is_planned:
        start_roots(work, lock_project(task.project_id))
    return ready


def record_agent_result(
    work: Work, assignment: Assignment, parent: Task | None, document: Mapping[str, Any]
) -> list[Assignment]:
    """Record an agent's result of any seat.

    Errors: Invalid listing every fault of the document; MissingOutput, MissingHandoff.
    Locks: expects parent, task and assignment locked, and the lease checked.
    """
    seat, task = Seat(assignment.seat), assignment.task
    if HANDSHAKE in assignment.input:
        answer_as_auditor(work, assignment, parse_document(IntentResult, document))
        return []
    agent = assignment.agent
    name = agent.name if agent is not None else ""
    if seat is not Seat.EXECUTOR:
        assignment.result = dict(document)
        work.touch(assignment, "result")
    if seat is Seat.EXECUTOR:
        result = parse_document(ExecutorResult, document)
        hand_in = agent_hand_in(task, result)
        return record_executor(work, assignment, parent, hand_in, author=name, agent=agent)
    if seat is Seat.QA:
        verdict = parse_document(QaResult, document)
        move_assignment(work, assignment, AssignmentStatus.DONE)
        return record_qa_result(
            work, task, parent, verdict,
            asked=assignment.input, agent_id=assignment.agent_id, raised_by=name,
        )  # fmt: skip
    if seat is Seat.CROSS_VERIFIER:
        checked = parse_document(CrossVerifierResult, document)
        move_assignment(work, assignment, AssignmentStatus.DONE)
        return record_cross_check(
            work, task, parent, checked, agent_id=assignment.agent_id, by=name
        )
    if seat is Seat.VALIDATOR:
        return record_validator_result(work, assignment, document)
    if seat is Seat.FIXER:
        return _record_agent_fix(work, assignment, parent, parse_document(FixerResult, document))
    if seat is Seat.SCORER:
        parse_document(ScorerResult, document)
    elif seat is Seat.AUDITOR:
        audited = parse_document(AuditorResult, document)
        document = audited.to_document()
    move_assignment(work, assignment, AssignmentStatus.DONE)
    return _record_thought(work, seat, assignment, document, backend=EXTERNAL)


SHAPES: Mapping[Seat, type[Document]] = {
    Seat.EXECUTOR: ExecutorResult,
    Seat.FIXER: FixerResult,
    Seat.QA: QaResult,
    Seat.CROSS_VERIFIER: CrossVerifierResult,
    Seat.SCORER: ScorerResult,
    Seat.AUDITOR: AuditorResult,
}
"""What each seat hands in; a plan is read with every fault by `record_plan`."""


def require_readable(assignment: Assignment, document: Mapping[str, Any]) -> None:
    """Raise where a result could not be recorded, before it is held back.

    Errors: Invalid listing every fault; for an executor those of its hand-in; for a file those of
    reading it.
    """
    shape = SHAPES.get(Seat(assignment.seat))
    if HANDSHAKE in assignment.input:
        shape = IntentResult
    parsed = parse_document(shape, document) if shape is not None else None
    if assignment.seat == Seat.EXECUTOR and isinstance(parsed, ExecutorResult):
        require_recordable(assignment, agent_hand_in(assignment.task, parsed))
    elif isinstance(parsed, FixerResult) and parsed.output is not None:
        read_output(assignment.task, parsed.output)


def agent_hand_in(task: Task, result: ExecutorResult) -> HandIn:
    """Read an agent's output (a path is read by us) into what an executor hands in."""
    outputs = []
    if result.output is not None:
        data, _ = read_output(task, result.output)
        outputs.append((result.output, data))
    return HandIn(
        status=result.status,
        detail=result.detail,
        outputs=outputs,
        comment=result.comment,
    )


def _record_agent_fix(
    work: Work, assignment: Assignment, parent: Task | None, result: FixerResult
) -> list[Assignment]:
    """Take a fixer's fix or, when it was asked for one, its proposal."""
    task = assignment.task
    asked = assignment.input
    ids = [str(one["id"]) for one in asked.get("defects", ())]
    if asked.get("mode") == "propose":
        if result.proposed_fix is None or result.proposed_fix.is_empty:
            raise Invalid("a fixer that was asked to propose hands in `proposed_fix`")
        move_assignment(work, assignment, AssignmentStatus.DONE)
        proposal = result.proposed_fix.to_document()
        return record_proposal(work, task, defect_id=ids[0], proposal=proposal)
    if result.status == "failed":
        move_assignment(work, assignment, AssignmentStatus.FAILED, why=result.detail)
        problems = dict.fromkeys(ids, result.detail)
        note = result.detail
    else:
        move_assignment(work, assignment, AssignmentStatus.DONE)
        problems, note = {}, result.change_note or "fixed by an agent"
        diff = _store_fix(work, assignment, result, note)
        show_asked_fixes(work, task, defect_ids=ids, note=note, diff=diff)
    return record_fix(work, task, parent, defect_ids=ids, change_note=note, problems=problems)


def _store_fix(work: Work, assignment: Assignment, result: FixerResult, note: str) -> str:
    """Store what a fixer hands in. Return the diff that it shows, its own where we know none."""
    task, agent = assignment.task, assignment.agent
    diff = result.proposed_fix.patch if result.proposed_fix is not None else ""
    if result.output is not None:
        data, _ = read_output(task, result.output)
        diff = finished_diff(task, result.output, data) or diff
        add_output(work, task, result.output, assignment=assignment, data=data, change_note=note)
        if task.role:
            settle_fixed_work(work, task, assignment)
    if result.comment is not None:
        name = agent.name if agent is not None else ""
        add_comment(work, task, result.comment, author=name, agent=agent, assignment=assignment)
    return diff
