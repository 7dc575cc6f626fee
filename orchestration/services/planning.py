"""S2: plan revisions, their audit, rejection to Sir, and the lock that makes a blueprint.

Source: DESIGN section 7, section 4 rules 4, 6 and 12.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Q

from orchestration.contracts.loop import FailureClass
from orchestration.contracts.plan import Plan as PlanDocument
from orchestration.errors import Conflict, PlanInvalid
from orchestration.models import Assignment, AuditReport, Blueprint, Decision, Plan, Task
from orchestration.models.rows import new_row
from orchestration.models.statements import count_of
from orchestration.rules.dag import canonical_digest, canonical_json
from orchestration.services.assignments import queue_assignment
from orchestration.services.blueprints import create_steps, descendant_ids
from orchestration.services.drafting import draft_plan, next_revision
from orchestration.services.inbox import open_decision
from orchestration.services.lookups import lineage_root, lock_lineage_root
from orchestration.services.loop import end_attempt
from orchestration.services.moves import hint_task, move_assignment, move_plan
from orchestration.services.plan_requests import planner_input
from orchestration.services.red_line_refusals import refused_steps
from orchestration.services.work import Work, locked
from orchestration.states import (
    AssignmentStatus,
    AuditVerdict,
    DecisionKind,
    DecisionStatus,
    PlanStatus,
    Seat,
)

UNCHANGED = "the planner handed in a plan again that was rejected before, unchanged"


def record_plan(
    work: Work,
    task: Task,
    document: Mapping[str, Any],
    *,
    backend: str,
    agent_id: int | None = None,
    is_trusted: bool = False,
) -> Plan:
    """Take what the planner seat handed in: audit it, or send it back with every fault.

    A malformed plan uses up a revision; so does one with a step that asks again for what Sir
    refused. A plan that was rejected before, unchanged, is refused and ends the attempt (C-19).
    Locks: expects the task's row locked; takes the lineage's root where an attempt ends.
    """
    try:
        plan = draft_plan(
            work, task, document, backend=backend, agent_id=agent_id, is_trusted=is_trusted
        )
    except PlanInvalid as error:
        plan = Plan.objects.create(
            task=task,
            attempt=task.attempt,
            revision=next_revision(task),
            status=PlanStatus.DRAFT.value,
            backend=backend,
            agent_id=agent_id,
            body={},
            faults=list(error.errors),
        )
        findings = [f"{fault['path']}: {fault['message']}" for fault in error.errors]
        _send_back(work, task, plan, findings, why="malformed")
        return plan
    _keep_trust(work, task, plan)
    if _was_refused(task, plan):
        _end_attempt_on(work, task, plan)
        return plan
    refused = refused_steps(task, PlanDocument.from_stored(plan.body).steps)
    if refused:
        _send_back(work, task, plan, refused, why="red line refused")
        return plan
    move_plan(work, plan, PlanStatus.AUDITING)
    work.flush()
    queue_assignment(work, task, Seat.AUDITOR, task.project.policy, plan_id=plan.pk)
    return plan


def _was_refused(task: Task, plan: Plan) -> bool:
    """Whether this very plan was rejected before, or sent back because Sir refused its commands."""
    refused = Q(status=PlanStatus.REJECTED.value) | Q(
        status=PlanStatus.NEEDS_REVISION.value,
        decisions__kind=DecisionKind.COMMAND_APPROVAL.value,
        decisions__status=DecisionStatus.DECIDED.value,
    )
    same = Plan.objects.filter(refused, task=task, digest=plan.digest)
    return same.exclude(pk=plan.pk).exists()


def _end_attempt_on(work: Work, task: Task, plan: Plan) -> None:
    """Refuse a rejected plan that came back, and count an attempt: revisions would ask no end."""
    move_plan(work, plan, PlanStatus.REJECTED, why="rejected before")
    cause = {
        "attempt": task.attempt,
        "class": FailureClass.REJECTED_BY_SIR.value,
        "root_cause": UNCHANGED,
        "evidence": {"plan": str(plan.pk), "digest": plan.digest},
        "at": work.now.isoformat(),
        "step": task.step_key,
    }
    end_attempt(work, lineage_root(task), cause=cause)


def _keep_trust(work: Work, task: Task, plan: Plan) -> None:
    """A plan that comes back unchanged keeps the operator's word for exactly these commands."""
    same = task.plans.filter(digest=plan.digest, is_trusted=True).exclude(pk=plan.pk)
    if plan.backend == "rules" and same.exists():
        plan.is_trusted = True
        work.touch(plan, "is_trusted")


def record_audit(
    work: Work,
    plan: Plan,
    *,
    verdict: AuditVerdict,
    checks: Sequence[Mapping[str, Any]],
    suggestions: Sequence[str],
    backend: str,
    agent_id: int | None = None,
) -> AuditReport:
    """Record an audit: lock the blueprint, send the plan back, or reject it to Sir.

    Locks: expects the plan's task locked.
    """
    task = plan.task
    is_final = verdict is AuditVerdict.NEEDS_REVISION and _revisions_used_up(task)
    stored = AuditVerdict.REJECTED if is_final else verdict
    report = new_row(
        AuditReport,
        plan=plan,
        verdict=stored.value,
        checks=[dict(check) for check in checks],
        suggestions=list(suggestions),
        backend=backend,
        agent_id=agent_id,
        created_at=work.now,
    )
    work.insert([report])
    work.record(
        "plan.audited",
        subject=f"plan:{plan.pk}",
        project_id=task.project_id,
        task_id=task.pk,
        after={"verdict": stored.value, "backend": backend, "revision": plan.revision},
    )
    if verdict is AuditVerdict.NEEDS_REVISION:
        findings = [str(check["finding"]) for check in checks if not check.get("ok")]
        _send_back(work, task, plan, findings, why="audit")
    else:
        move_plan(work, plan, PlanStatus.APPROVED)
        lock_blueprint(work, task, plan, suggestions=suggestions)
    return report


def _revisions_used_up(task: Task) -> bool:
    return task.revisions_used >= task.project.policy.thresholds.s2_max_revision_rounds


def _send_back(work: Work, task: Task, plan: Plan, findings: Sequence[str], *, why: str) -> None:
    """Ask for the next revision, or, when they are used up, reject the plan to Sir."""
    if _revisions_used_up(task):
        move_plan(work, plan, PlanStatus.REJECTED, why=why)
        ask_about_plan(work, task, plan, findings)
        return
    task.revisions_used += 1
    work.touch(task, "revisions_used")
    move_plan(work, plan, PlanStatus.NEEDS_REVISION, why=why)
    ask_for_revision(work, task, plan, findings)


def ask_for_revision(
    work: Work, task: Task, plan: Plan, findings: Sequence[str], *, guidance: str = ""
) -> None:
    """Queue the planner again with the findings and, where Sir gave it, his guidance."""
    asked = {
        **planner_input(task),
        "previous_plan": plan.body,
        "findings": list(findings),
        "guidance": guidance,
    }
    queue_assignment(work, task, Seat.PLANNER, task.project.policy, input=asked)


def ask_about_plan(work: Work, task: Task, plan: Plan, findings: Sequence[str]) -> None:
    """Open `plan_rejected`: the third refused revision goes to Sir.

    The task waits in `working`: nothing of it can start before he decides.
    """
    open_decision(
        work,
        kind=DecisionKind.PLAN_REJECTED,
        project=task.project,
        task=task,
        plan=plan,
        title=task.title,
        question="The plan did not pass its audit. What now?",
        content={
            "plan_digest": plan.digest,
            "plan": plan.body,
            "findings": list(findings),
            "faults": plan.faults,
            "revision": plan.revision,
        },
    )


def lock_blueprint(
    work: Work,
    task: Task,
    plan: Plan,
    *,
    suggestions: Sequence[str] = (),
) -> Blueprint:
    """Freeze an approved plan and make its steps child tasks.

    Errors: Conflict when the plan is not approved.
    Locks: expects the task's row locked; takes its project's row.
    """
    if plan.status != PlanStatus.APPROVED:
        raise Conflict(f"only an approved plan is locked; this one is {plan.status}")
    parsed = PlanDocument.from_stored(plan.body)
    canonical = canonical_json(plan.body).decode()
    blueprint = new_row(
        Blueprint,
        task=task,
        plan=plan,
        number=count_of(Blueprint, task.pk) + 1,
        canonical=canonical,
        sha256=canonical_digest(plan.body),
        suggestions=list(suggestions),
        locked_at=work.now,
    )
    work.insert([blueprint])
    work.record(
        "blueprint.locked",
        subject=f"blueprint:{blueprint.pk}",
        project_id=task.project_id,
        task_id=task.pk,
        after={
            "number": blueprint.number,
            "sha256": blueprint.sha256,
            "steps": len(parsed.steps),
            "is_override": plan.is_override,
        },
    )
    hint_task(work, task)
    create_steps(work, task, blueprint, plan, parsed)
    return blueprint


def override_plan(work: Work, plan: Plan) -> None:
    """Lock a rejected plan on Sir's signed word; it is shown as overridden ever after."""
    plan.is_override = True
    work.touch(plan, "is_override")
    move_plan(work, plan, PlanStatus.APPROVED, why="audit overridden by Sir")
    work.flush()
    lock_blueprint(work, plan.task, plan)


def return_plan(
    work: Work, task: Task, decision: Decision, *, struck: Sequence[Mapping[str, Any]]
) -> None:
    """Return a locked plan as needing revision: some of its commands were refused (rule 12).

    Its other steps go on meanwhile; the next blueprint keeps what is done, running or untouched.
    """
    plan = Plan.objects.get(decisions=decision)
    plan.task = task
    move_plan(work, plan, PlanStatus.NEEDS_REVISION, why=decision.reason)
    findings = [f"Sir refused {' '.join(one['argv'])} of step {one['step']}" for one in struck]
    work.flush()
    guidance = decision.reason or str(decision.content.get("amended", ""))
    ask_for_revision(work, task, plan, findings, guidance=guidance)


def refuse_plan(work: Work, task: Task, decision: Decision) -> None:
    """Return a plan whose commands Sir refused: nothing of it starts any more.

    What is leased may finish; the next blueprint keeps it where its step is unchanged.
    Locks: the lineage's root after the task, then the queued assignments in id order.
    """
    root = lock_lineage_root(task)
    root.is_replanning = True
    work.touch(root, "is_replanning")
    work.flush()
    queued = Assignment.objects.select_related("task").filter(
        task_id__in=descendant_ids([task.pk]),
        status=AssignmentStatus.QUEUED.value,
        seat=Seat.EXECUTOR.value,
    )
    for row in locked(queued).order_by("pk"):
        move_assignment(work, row, AssignmentStatus.CANCELLED, why="commands refused")
    return_plan(work, task, decision, struck=decision.content["commands"])
