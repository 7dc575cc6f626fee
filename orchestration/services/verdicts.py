"""What each verdict of each kind does. Called by `decide_decision` under its locks.

Source: DESIGN section 9 (table of kinds), section 4 rules 12, 16 and 18.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from orchestration.contracts.options import LOOP
from orchestration.contracts.results import CommentInput
from orchestration.errors import Conflict
from orchestration.models import Assignment, Decision, Defect, Plan, Task
from orchestration.models.rows import fetch_rows
from orchestration.services.assignments import queue_assignment
from orchestration.services.cancelling import cancel_open_below, cancel_roots, cancel_tree
from orchestration.services.clocks import renew_lease, suspend_project
from orchestration.services.completion import check_planned
from orchestration.services.control import ask_if_stalled
from orchestration.services.cross_checks import resume_review
from orchestration.services.defects import ask_for_proposal
from orchestration.services.fix_ends import give_up_fix, judge_behind
from orchestration.services.handshake import HANDSHAKE, answer_intent
from orchestration.services.handshake_gate import may_start
from orchestration.services.inbox import open_decision
from orchestration.services.integrity import is_asked, require_intact, require_sound
from orchestration.services.judging import after_done, free_dependents
from orchestration.services.leases import WORKER_LEASE_SECONDS, requeue
from orchestration.services.locked_defects import decide_locked
from orchestration.services.lookups import lock_project
from orchestration.services.loop import fail_leaf, replan_root
from orchestration.services.moves import hint_task, move_defect, move_project, move_task
from orchestration.services.negotiation import NEGOTIATION, answer_negotiation
from orchestration.services.outputs import add_comment
from orchestration.services.planning import (
    ask_for_revision,
    override_plan,
    refuse_plan,
    return_plan,
)
from orchestration.services.projects import activate
from orchestration.services.readiness import make_ready, ready_again, start_roots
from orchestration.services.red_line_verdicts import RED_LINE, is_about_command, refuse_request
from orchestration.services.review import continue_review, reject_step
from orchestration.services.seat_verdicts import budget_exceeded, final_review
from orchestration.services.work import Work, locked
from orchestration.states import (
    MAX_RETRIES_REASON,
    AssignmentStatus,
    DecisionKind,
    DecisionStatus,
    DefectStatus,
    ProjectStatus,
    Seat,
    TaskStatus,
)

Handler = Callable[[Work, Decision, str], None]


def apply_verdict(work: Work, decision: Decision, verdict: str) -> None:
    """Do what a verdict says, in the transaction that records it."""
    HANDLERS[DecisionKind(decision.kind)](work, decision, verdict)
    work.flush()


def _task(decision: Decision) -> Task:
    if decision.task is None:
        raise Conflict("this item has no task any more")
    return decision.task


def medium_defect(work: Work, decision: Decision, verdict: str) -> None:
    """Approve, request changes, accept as is or reject: on the defect, then on its task."""
    task = _task(decision)
    defect = fetch_rows(Defect, "id = %s", [decision.defect_id], lock=True)[0]
    defect.task = task
    if defect.artifact_id is not None:
        decide_locked(work, defect, verdict, reason=decision.reason)
        judge_behind(work, defect.pk)
        return
    if verdict == "request_changes":
        ask_for_proposal(work, task, defect, guidance=decision.reason)
        return
    target = {
        "approve": DefectStatus.FIX_APPROVED,
        "accept_as_is": DefectStatus.ACCEPTED_AS_IS,
        "reject": DefectStatus.REJECTED,
    }[verdict]
    move_defect(work, defect, target, why=decision.reason)
    work.flush()
    if verdict == "reject":
        reject_step(work, task, defect, reason=decision.reason)
    else:
        continue_review(work, task, task.parent)


def waiting_human(work: Work, decision: Decision, verdict: str) -> None:
    """Answer, approve, reject or abort a task that waits for Sir."""
    if decision.content.get("reason") == LOOP:
        loop_stopped(work, decision, verdict)
        return
    task = _task(decision)
    if verdict == "abort":
        cancel_tree(work, task, why=decision.reason, reason="cancelled_by_sir")
        return
    if verdict == "reject" and not is_about_command(decision):
        refuse_request(work, task, decision)
        return
    if decision.reason:
        _tell(work, task, decision)
    resume_task(work, task, decision)


def loop_stopped(work: Work, decision: Decision, verdict: str) -> None:
    """Look again for a root that can start, or cancel those that cannot (rule 18)."""
    if verdict == "abort":
        keys = [one["id"] for one in decision.content["blockers"]]
        ended = [state.value for state in (TaskStatus.DONE, TaskStatus.CANCELLED)]
        rows = Task.objects.filter(project=decision.project, pk__in=keys)
        found = list(locked(rows.exclude(status__in=ended)).order_by("pk"))
        cancel_roots(work, decision.project_id, found, why=decision.reason)
        return
    start_roots(work, decision.project)
    ask_if_stalled(work, decision.project)


def resume_task(work: Work, task: Task, decision: Decision) -> None:
    """Send a waiting task back to where it was asked.

    Back to `working` with a full lease when an agent's lease still stands, else to `pending`; so
    too where it was asked before the executor's intent was confirmed.
    """
    held = locked(
        Assignment.objects.filter(task=task, status=AssignmentStatus.LEASED.value)
    ).first()
    digest = decision.content.get("digest")
    is_yes = decision.verdict != "reject"
    if is_yes and decision.content.get("reason") == RED_LINE and digest:
        task.approved_digests = [*task.approved_digests, digest]
        work.touch(task, "approved_digests")
    asked_from = TaskStatus(task.asked_from)
    if decision.content.get("reason") == "seat_failed" and asked_from != TaskStatus.PENDING:
        move_task(work, task, asked_from, why="Sir answered")
        _refill_seat(work, task, decision)
    elif asked_from == TaskStatus.REVIEW:
        move_task(work, task, TaskStatus.REVIEW, why="Sir answered")
        if held is not None:
            _renew(work, task, held)
        resume_review(work, task, task.parent)
    elif held is not None and asked_from == TaskStatus.CLAIMED and not may_start(task, held):
        # It asked before its intent was confirmed: `working` is not open to it yet.
        held.task, held.project = task, task.project
        move_task(work, task, TaskStatus.PENDING, why="Sir answered")
        requeue(work, held, why="Sir answered")
    elif held is not None:
        _renew(work, task, held)
        move_task(work, task, TaskStatus.WORKING, why="Sir answered")
    else:
        move_task(work, task, TaskStatus.PENDING, why="Sir answered")
        work.flush()
        ready_again(work, task)


def _renew(work: Work, task: Task, held: Assignment) -> None:
    held.task, held.project = task, task.project
    seconds = task.project.policy.limits.lease_seconds if held.agent_id else 0
    renew_lease(work, held, seconds=seconds or WORKER_LEASE_SECONDS)


def _refill_seat(work: Work, task: Task, decision: Decision) -> None:
    """Queue the assignment again whose seat could not be filled."""
    wanted = decision.content.get("assignment")
    row = Assignment.objects.filter(pk=int(wanted)).first() if wanted else None
    if row is None:
        return
    queue_assignment(
        work, task, Seat(row.seat), task.project.policy,
        input=row.input, plan_id=row.plan_id, defect_id=row.defect_id, backend=row.backend,
    )  # fmt: skip


def _tell(work: Work, task: Task, decision: Decision) -> None:
    """Put Sir's words where the agent reads them: a comment on the task."""
    add_comment(work, task, CommentInput(body=decision.reason), author=work.actor.name)


def plan_rejected(work: Work, decision: Decision, verdict: str) -> None:
    """Accept over the audit, guide the planner, or cancel the task."""
    task = _task(decision)
    plan = Plan.objects.get(decisions=decision)
    plan.task = task
    if verdict == "cancel":
        cancel_tree(work, task, why=decision.reason, reason="cancelled_by_sir")
    elif verdict == "guide":
        task.revisions_used = 0
        work.touch(task, "revisions_used")
        findings = list(decision.content.get("findings", ()))
        ask_for_revision(work, task, plan, findings, guidance=decision.reason)
    else:
        if plan.faults:
            raise Conflict("a malformed plan cannot be accepted", code="plan_malformed")
        override_plan(work, plan)
        work.flush()
        check_planned(work, task)


def command_approval(work: Work, decision: Decision, verdict: str) -> None:
    """Approve the commands by digest, ask again with fewer, or send the plan back."""
    task = _task(decision)
    listed = list(decision.content["commands"])
    if verdict == "amend":
        _amend_commands(work, task, decision, listed)
    elif verdict == "reject":
        refuse_plan(work, task, decision)
    else:
        task.approved_digests = [*task.approved_digests, *(one["digest"] for one in listed)]
        work.touch(task, "approved_digests")
        _free_steps(work, task, list(decision.content["steps"]))
        if decision.content.get("struck"):
            return_plan(work, task, decision, struck=list(decision.content["struck"]))


def _free_steps(work: Work, task: Task, keys: list[str]) -> None:
    """Let the steps start whose every command is approved."""
    steps = list(
        locked(task.children.filter(step_key__in=keys, is_superseded=False)).order_by("pk")
    )
    for step in steps:
        step.parent, step.project, step.root = task, task.project, task.root or task
        step.is_awaiting_commands = False
        work.touch(step, "is_awaiting_commands")
        hint_task(work, step)
    work.flush()
    make_ready(work, [step for step in steps if step.phase <= task.open_phase])


def _amend_commands(
    work: Work, task: Task, decision: Decision, listed: list[dict[str, Any]]
) -> None:
    """Drop the commands Sir struck out (by digest) and ask again; nothing runs before that.

    A step that lost a command cannot run as planned: it stays waiting, and the plan goes back for
    it once the rest is decided, at once where no step is left whole.
    """
    struck = set(decision.payload.get("remove", ()))
    gone = [
        *decision.content.get("struck", ()),
        *(one for one in listed if one["digest"] in struck),
    ]
    broken = {one["step"] for one in gone}
    kept = [one for one in listed if one["step"] not in broken]
    if not kept:
        return_plan(work, task, decision, struck=gone)
        return
    steps = sorted({one["step"] for one in kept})
    open_decision(
        work,
        kind=DecisionKind.COMMAND_APPROVAL,
        project=task.project,
        task=task,
        plan=decision.plan,
        title=f"{len(kept)} commands outside the allow-list",
        question=f"May these {len(kept)} commands run on this machine?",
        content={"commands": kept, "steps": steps, "struck": gone, "amended": decision.reason},
        params={"count": len(kept), "frees": len(steps)},
    )


def clarification(work: Work, decision: Decision, verdict: str) -> None:
    """Answer an intent or a negotiation, or clear a blocked task; a correction goes with it."""
    answer = ANSWERS.get(str(decision.content.get("reason")))
    if answer is not None:
        answer(work, decision, verdict)
        return
    task = _task(decision)
    if verdict == "rejected":
        fail_leaf(
            work, task, why=f"rejected by Sir: {decision.reason}",
            failure_class="rejected_by_sir", no_more_tries=True,
        )  # fmt: skip
        return
    if decision.reason:
        _tell(work, task, decision)
    task.blocked_by.clear()
    move_task(work, task, TaskStatus.PENDING, why="cleared by Sir")
    work.flush()
    ready_again(work, task)


def max_retries(work: Work, decision: Decision, verdict: str) -> None:
    """Retry, amend, waive or abort a root that failed three times in a row (rule 18)."""
    task = _task(decision)
    if verdict == "abort":
        cancel_tree(work, task, why=decision.reason, reason="cancelled_by_sir")
    elif verdict == "waive":
        _waive(work, task, decision)
    else:
        if verdict == "amend" and decision.payload.get("text"):
            task.description = str(decision.payload["text"])
            work.touch(task, "description")
        guidance = {"class": "guidance", "root_cause": decision.reason, "attempt": task.attempt}
        task.failure_count = 0
        task.tries = 0
        task.failure_context = [*task.failure_context, guidance]
        work.touch(task, "failure_count", "failure_context", "tries")
        replan_root(work, task)
    work.flush()
    _resume_project(work, decision)
    ask_if_stalled(work, lock_project(decision.project_id))


def _waive(work: Work, task: Task, decision: Decision) -> None:
    """Call a fatal root done on Sir's word; what waits for it is freed only where he ticked so.

    Errors: TreeBroken, as the loop would not move it either.
    """
    require_sound(task)
    task.last_outcome = f"waived: {decision.reason}"[:300]
    task.withholds_dependents = decision.payload.get("release_dependents") is not True
    work.touch(task, "last_outcome", "withholds_dependents")
    move_task(work, task, TaskStatus.DONE, why=f"waived: {decision.reason}")
    cancel_open_below(work, task, why=f"waived: {decision.reason}")
    if task.fixes_id is not None:
        give_up_fix(work, task.fixes_id, why=f"waived: {decision.reason}")
    work.flush()
    # Before the project goes on: what is freed may stand before what would be begun.
    free_dependents(work, task, decision.project)
    _resume_project(work, decision)
    work.flush()
    after_done(work, task, None, has_freed=True)
    judge_behind(work, task.fixes_id)


def _resume_project(work: Work, decision: Decision) -> None:
    """Make the project active again unless another stop stands or Sir paused it."""
    project = decision.project
    others = Decision.objects.filter(
        project=project, kind=DecisionKind.MAX_RETRIES.value, status=DecisionStatus.OPEN.value
    ).exclude(pk=decision.pk)
    if project.status != ProjectStatus.SUSPENDED or project.is_paused_by_sir or others.exists():
        return
    activate(work, project, why="Sir decided")


def acknowledge(work: Work, decision: Decision, verdict: str) -> None:
    """A notice that is read blocks nothing and changes nothing."""
    hint_task(work, _task(decision))


def safe_stop(work: Work, decision: Decision, verdict: str) -> None:
    """Let a project go on that stood in safe stop, if nothing is wrong with it any more.

    Where Sir paused it, or is still asked about too many failures, it stands suspended again. A
    completed one never stopped, and takes work again.
    Errors: Conflict naming what is still wrong.
    """
    project = decision.project
    require_intact(project)
    if project.status != ProjectStatus.SAFE_STOP:
        return
    is_stopped = is_asked(project, DecisionKind.MAX_RETRIES)
    if is_stopped or project.is_paused_by_sir:
        move_project(work, project, ProjectStatus.ACTIVE, why="Sir resumed it after repair")
        suspend_project(work, project, why=MAX_RETRIES_REASON if is_stopped else "paused by Sir")
    else:
        activate(work, project, why="Sir resumed it after repair")


ANSWERS: Mapping[str, Handler] = {
    HANDSHAKE: answer_intent,
    NEGOTIATION: answer_negotiation,
}
"""Clarifications that are about something else than a blocked task, by their reason."""

HANDLERS: Mapping[DecisionKind, Handler] = {
    DecisionKind.MEDIUM_DEFECT: medium_defect,
    DecisionKind.WAITING_HUMAN: waiting_human,
    DecisionKind.PLAN_REJECTED: plan_rejected,
    DecisionKind.COMMAND_APPROVAL: command_approval,
    DecisionKind.CLARIFICATION: clarification,
    DecisionKind.MAX_RETRIES: max_retries,
    DecisionKind.FINAL_REVIEW: final_review,
    DecisionKind.HIGH_NOTICE: acknowledge,
    DecisionKind.BUDGET_EXCEEDED: budget_exceeded,
    DecisionKind.SAFE_STOP: safe_stop,
}
