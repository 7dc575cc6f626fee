"""One transition function a state machine. Nothing else sets `status`.

Each checks the table, sets the state on a row the caller has locked, bumps its version, records
one audit event in the same unit of work and queues the hint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from orchestration.models import (
    Assignment,
    Conversation,
    Decision,
    Defect,
    Handshake,
    Plan,
    Project,
    Task,
)
from orchestration.services.notices import note_closed
from orchestration.services.work import Work, locked
from orchestration.states import (
    ASSIGNMENT_LIVE,
    ASSIGNMENT_MOVES,
    CONVERSATION_MOVES,
    DECISION_MOVES,
    DEFECT_MOVES,
    DEFECT_UNFINISHED,
    HANDSHAKE_MOVES,
    HANDSHAKE_OPEN,
    PLAN_MOVES,
    PROJECT_MOVES,
    SUPERSEDED_REASON,
    TASK_MOVES,
    TASK_TERMINAL,
    AssignmentStatus,
    ConversationStatus,
    DecisionKind,
    DecisionStatus,
    DefectStatus,
    HandshakeStatus,
    PlanStatus,
    ProjectStatus,
    Seat,
    TaskStatus,
    require_move,
)

UNHELD = (TaskStatus.PENDING, TaskStatus.BLOCKED, TaskStatus.FAILED, TaskStatus.CANCELLED)
"""Nobody works on a task in one of these; who did is with its assignments."""


def move_task(
    work: Work,
    task: Task,
    target: TaskStatus,
    *,
    why: str = "",
    detail: str | None = None,
    cancel_reason: str = "",
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Move a locked task. `detail` becomes its status detail, `facts` go into the event.

    Errors: IllegalTransition with the allowed moves.
    Locks: expects the task's row locked.
    """
    source = TaskStatus(task.status)
    require_move(TASK_MOVES, source, target, noun="task")
    task.status = target.value
    task.version += 1
    task.updated_at = work.now
    fields = ["status", "version", "updated_at"]
    if task.status_detail != (detail or ""):
        task.status_detail = detail or ""
        fields.append("status_detail")
    if cancel_reason:
        task.cancel_reason = cancel_reason
        fields.append("cancel_reason")
    if target in UNHELD and task.assignee_id is not None:
        task.assignee = None
        fields.append("assignee")
    work.touch(task, *fields)
    after: dict[str, Any] = {"status": target.value, "attempt": task.attempt}
    if cancel_reason:
        after["cancel_reason"] = cancel_reason
    if task.is_superseded:
        after["is_superseded"] = True
    if facts:
        after.update(facts)
    work.record(
        f"task.{target}",
        subject=f"task:{task.pk}",
        project_id=task.project_id,
        task_id=task.pk,
        before={"status": source.value},
        after=after,
        why=why or detail or "",
    )
    hint_task(work, task)


def supersede_task(work: Work, task: Task, *, why: str) -> None:
    """Mark a locked task as superseded: an open one is cancelled, an ended one only marked.

    Locks: expects the task's row locked.
    """
    task.is_superseded = True
    work.touch(task, "is_superseded")
    if task.status not in TASK_TERMINAL:
        move_task(work, task, TaskStatus.CANCELLED, why=why, cancel_reason=SUPERSEDED_REASON)
        return
    work.record(
        "task.superseded",
        subject=f"task:{task.pk}",
        project_id=task.project_id,
        task_id=task.pk,
        after={"status": task.status, "is_superseded": True},
        why=why,
    )


def hint_task(work: Work, task: Task) -> None:
    """Announce that a task changed, to its own topic and to its project's board."""
    work.hint(f"task:{task.pk}", task.project_id, task.version)
    work.hint(f"project:{task.project_id}", task.project_id)


def move_assignment(
    work: Work, assignment: Assignment, target: AssignmentStatus, *, why: str = ""
) -> None:
    """Move a locked assignment; a terminal move stamps its end and clears the lease.

    Errors: IllegalTransition with the allowed moves.
    """
    source = AssignmentStatus(assignment.status)
    require_move(ASSIGNMENT_MOVES, source, target, noun="assignment")
    if assignment.is_clock_stopped:
        # While an intent waits for its answer the clock stands still; what waits ends with it.
        void_handshakes(work, assignment, why=why or "its assignment ended")
    assignment.status = target.value
    fields = ["status"]
    if target is AssignmentStatus.QUEUED:
        assignment.token += 1
        assignment.lease_token = ""
        assignment.lease_expires_at = None
        assignment.is_clock_stopped = False
        fields += ["token", "lease_token", "lease_expires_at", "is_clock_stopped"]
    elif target is not AssignmentStatus.LEASED:
        assignment.finished_at = work.now
        assignment.error = why if target is not AssignmentStatus.DONE else ""
        fields += ["finished_at", "error"]
    work.touch(assignment, *fields)
    record_assignment(work, assignment, before=source, why=why)


def record_assignment(
    work: Work, assignment: Assignment, *, before: AssignmentStatus, why: str = ""
) -> None:
    """Record the move that an assignment just made."""
    work.record(
        f"assignment.{assignment.status}",
        subject=f"assignment:{assignment.pk}",
        project_id=assignment.project_id,
        task_id=assignment.task_id,
        before={"status": before.value},
        after={
            "status": assignment.status,
            "seat": assignment.seat,
            "backend": assignment.backend,
            "token": assignment.token,
            "holder": assignment.worker,
        },
        why=why,
    )


def move_project(work: Work, project: Project, target: ProjectStatus, *, why: str = "") -> None:
    """Move a locked project; `why` becomes its status reason.

    Errors: IllegalTransition with the allowed moves.
    """
    source = ProjectStatus(project.status)
    require_move(PROJECT_MOVES, source, target, noun="project")
    project.status = target.value
    project.status_reason = why[:200]
    project.version += 1
    project.updated_at = work.now
    work.touch(project, "status", "status_reason", "version", "updated_at")
    work.record(
        f"project.{target}",
        subject=f"project:{project.pk}",
        project_id=project.pk,
        before={"status": source.value},
        after={"status": target.value},
        why=why,
    )
    work.hint(f"project:{project.pk}", project.pk, project.version)


def move_plan(work: Work, plan: Plan, target: PlanStatus, *, why: str = "") -> None:
    """Move a plan revision.

    Errors: IllegalTransition with the allowed moves.
    """
    source = PlanStatus(plan.status)
    require_move(PLAN_MOVES, source, target, noun="plan")
    plan.status = target.value
    work.touch(plan, "status")
    task = plan.task
    work.record(
        f"plan.{target}",
        subject=f"plan:{plan.pk}",
        project_id=task.project_id,
        task_id=task.pk,
        before={"status": source.value},
        after={"status": target.value, "revision": plan.revision, "digest": plan.digest},
        why=why,
    )
    hint_task(work, task)


def move_defect(work: Work, defect: Defect, target: DefectStatus, *, why: str = "") -> None:
    """Move a locked defect.

    Errors: IllegalTransition with the allowed moves.
    """
    source = DefectStatus(defect.status)
    require_move(DEFECT_MOVES, source, target, noun="defect")
    defect.status = target.value
    defect.version += 1
    defect.updated_at = work.now
    work.touch(defect, "status", "version", "updated_at")
    task = defect.task
    work.record(
        f"defect.{target}",
        subject=f"defect:{defect.pk}",
        project_id=task.project_id,
        task_id=task.pk,
        before={"status": source.value},
        after={
            "status": target.value,
            "severity": defect.severity,
            "fix_round": defect.fix_round,
        },
        why=why,
    )
    hint_task(work, task)


def void_defects(
    work: Work, task_ids: Iterable[int], *, why: str, with_locked: bool = False
) -> None:
    """Void every unfinished defect of tasks that end. Locks: the defects, in id order.

    One of a locked artifact outlives the attempt; with it go the tasks that fix it.
    """
    unfinished = [state.value for state in DEFECT_UNFINISHED]
    rows = Defect.objects.select_related("task").filter(
        task_id__in=list(task_ids), status__in=unfinished
    )
    if not with_locked:
        rows = rows.filter(artifact__isnull=True)
    for defect in locked(rows).order_by("pk"):
        move_defect(work, defect, DefectStatus.VOID, why=why)


def move_decision(work: Work, decision: Decision, target: DecisionStatus, *, why: str = "") -> None:
    """Move a locked decision out of the open inbox.

    Errors: IllegalTransition with the allowed moves.
    """
    source = DecisionStatus(decision.status)
    require_move(DECISION_MOVES, source, target, noun="decision")
    decision.status = target.value
    decision.decided_at = work.now
    work.touch(decision, "status", "decided_at")
    note_closed(work, decision, target)
    work.record(
        f"decision.{target}",
        subject=f"decision:{decision.pk}",
        project_id=decision.project_id,
        task_id=decision.task_id,
        before={"status": source.value},
        after={
            "status": target.value,
            "kind": decision.kind,
            "verdict": decision.verdict,
            "digest": decision.digest,
            "version": decision.version,
        },
        why=why,
    )
    work.hint("inbox", None)
    work.hint(f"decision:{decision.pk}", None, decision.version)
    if decision.task_id is not None:
        work.hint(f"task:{decision.task_id}", decision.project_id)
    work.hint(f"project:{decision.project_id}", decision.project_id)


def move_handshake(
    work: Work, handshake: Handshake, target: HandshakeStatus, *, why: str = ""
) -> None:
    """Move a handshake. Locks: expects its task's row locked.

    Errors: IllegalTransition with the allowed moves.
    """
    source = HandshakeStatus(handshake.status)
    require_move(HANDSHAKE_MOVES, source, target, noun="handshake")
    handshake.status = target.value
    work.touch(handshake, "status")
    task = handshake.task
    work.record(
        f"handshake.{target}",
        subject=f"handshake:{handshake.pk}",
        project_id=task.project_id,
        task_id=task.pk,
        before={"status": source.value},
        after={
            "status": target.value,
            "assignment": handshake.assignment_id,
            "message_id": handshake.mail.message_id,
            "corrections": handshake.corrections,
        },
        why=why,
    )
    hint_task(work, task)


def void_handshakes(work: Work, assignment: Assignment, *, why: str) -> None:
    """Void the intent of an assignment that waits for an answer, and withdraw what was asked.

    Locks: expects the task's row locked.
    """
    rows = Handshake.objects.select_related("mail").filter(
        assignment=assignment, status__in=[state.value for state in HANDSHAKE_OPEN]
    )
    for row in rows:
        row.task = assignment.task
        move_handshake(work, row, HandshakeStatus.VOID, why=why)
        close_question(work, row, why=why)


def close_question(work: Work, handshake: Handshake, *, why: str) -> None:
    """Withdraw the `clarification` of a handshake that no longer waits, and free its auditor.

    Locks: the assignment and the decision, after the task.
    """
    auditors = Assignment.objects.select_related("task").filter(
        task_id=handshake.task_id,
        seat=Seat.AUDITOR.value,
        status__in=[state.value for state in ASSIGNMENT_LIVE],
        input__handshake=str(handshake.pk),
    )
    for auditor in locked(auditors).order_by("pk"):
        move_assignment(work, auditor, AssignmentStatus.CANCELLED, why=why)
    rows = Decision.objects.filter(
        task_id=handshake.task_id,
        kind=DecisionKind.CLARIFICATION.value,
        status=DecisionStatus.OPEN.value,
        content__handshake=str(handshake.pk),
    )
    for decision in locked(rows).order_by("pk"):
        decision.closed_reason = why[:80]
        work.touch(decision, "closed_reason")
        move_decision(work, decision, DecisionStatus.WITHDRAWN, why=why)
        # Whoever withdraws what else is open of the task reads it next.
        work.flush()


def move_conversation(
    work: Work, conversation: Conversation, target: ConversationStatus, *, why: str = ""
) -> None:
    """Move a locked conversation. Errors: IllegalTransition with the allowed moves."""
    source = ConversationStatus(conversation.status)
    require_move(CONVERSATION_MOVES, source, target, noun="conversation")
    conversation.status = target.value
    work.touch(conversation, "status")
    work.record(
        f"conversation.{target}",
        subject=f"conversation:{conversation.pk}",
        project_id=conversation.project_id,
        task_id=conversation.task_id,
        before={"status": source.value},
        after={
            "status": target.value,
            "mode": conversation.mode,
            "round": conversation.round,
            "outcome": conversation.outcome,
        },
        why=why,
    )
    if conversation.task_id is not None:
        work.hint(f"task:{conversation.task_id}", conversation.project_id)
    work.hint(f"project:{conversation.project_id}", conversation.project_id)
