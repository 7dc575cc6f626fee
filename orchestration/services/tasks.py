"""The blackboard: what agents and people do to one task over REST or the dashboard.

Source: DESIGN section 4 (task table, rules 6, 16), sections 12 and 14, source document 001.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestration.contracts.results import CommentInput, OutputInput
from orchestration.errors import (
    Conflict,
    IllegalTransition,
    Invalid,
    LeaseLost,
    NotReady,
)
from orchestration.models import Agent, Assignment, Comment, Output, Task
from orchestration.models.rows import fetch_rows
from orchestration.selectors.tasks import not_ready_reason
from orchestration.services.answers import about_of, question_content
from orchestration.services.assignments import has_free_slot, lease, require_claimable
from orchestration.services.blocking import block_task
from orchestration.services.cancelling import cancel_tree
from orchestration.services.clocks import stop_clock
from orchestration.services.execution import hand_in_task, start_work
from orchestration.services.handshake_gate import may_start
from orchestration.services.holding import require_not_stopped
from orchestration.services.inbox import open_decision
from orchestration.services.leases import cancel_live, extend_lease, requeue, require_token
from orchestration.services.light_plans import store_light_plan
from orchestration.services.lookups import (
    hold_project,
    lock_task,
    relock_for_claim,
    require_version,
)
from orchestration.services.loop import fail_leaf, fail_root, replan_root, settle_ending
from orchestration.services.moves import move_assignment, move_task
from orchestration.services.orphans import has_ever_held, keep_orphan
from orchestration.services.outputs import add_comment, add_output
from orchestration.services.profile_gate import require_may_hand_in
from orchestration.services.projects import require_active
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.work import Actor, Work, locked, unit_of_work
from orchestration.states import (
    TASK_HOLDS_SLOT,
    AssignmentStatus,
    DecisionKind,
    Route,
    Seat,
    TaskStatus,
)

__all__ = [
    "StatusChange",
    "add_task_comment",
    "add_task_output",
    "cancel_task",
    "change_status",
    "claim_task",
    "heartbeat_task",
    "release_task",
    "replan_task",
]

AUTHOR_CHARACTERS = 120


@retry_on_deadlock
def claim_task(*, known: Task, agent: Agent, actor: Actor) -> Assignment:
    """Claim one task for an agent: the executor's lease and the move to `claimed` in one.

    `known` was read before; of a step only its project and parent count, which never change.

    Errors: NotFound; ProjectSuspended; NotReady naming why, or who holds it.
    Locks: project (a pause stops the clock of every lease it finds, and lets none in after it),
    parent (to count its slots), task, assignment.
    """
    with unit_of_work(actor) as work:
        slot_is_free = True
        if known.parent_id is None:
            task = relock_for_claim(known)
        else:
            project = hold_project(known.project_id)
            slot_is_free = has_free_slot(known.parent_id)
            task = lock_task(known.pk, project=project)
        require_active(task.project)
        require_claimable(task, not_ready_reason(task))
        if not slot_is_free:
            raise NotReady("every parallel slot of this plan is taken", reason="slots")
        queued = _lock_queued_executor(task)
        return lease(work, queued, task.project.policy, worker=agent.name, agent=agent)


def _lock_queued_executor(task: Task) -> Assignment:
    """Lock what an agent claims when it claims a task. Errors: NotReady where we run it."""
    rows = fetch_rows(
        Assignment,
        "task_id = %s AND seat = %s AND status = %s ORDER BY id LIMIT 1",
        [task.pk, Seat.EXECUTOR.value, AssignmentStatus.QUEUED.value],
        lock=True,
    )
    if not rows or rows[0].backend != "external":
        raise NotReady("this task is run by the system", reason="system_backend")
    rows[0].task, rows[0].project = task, task.project
    return rows[0]


def held_lease(task: Task, agent: Agent | None, lease_token: str = "") -> Assignment:
    """Lock the lease under which an agent writes on a task; fence by token when one is sent.

    Errors: LeaseLost naming the present holder; Conflict in safe stop.
    """
    require_not_stopped(task.project)
    return _lease_of(task, agent, lease_token)


def _lease_of(task: Task, agent: Agent | None, lease_token: str) -> Assignment:
    row: Assignment | None = locked(
        Assignment.objects.filter(
            task=task, seat=Seat.EXECUTOR.value, status=AssignmentStatus.LEASED.value
        )
    ).first()
    if row is None or agent is None or row.agent_id != agent.pk:
        last = task.assignments.filter(seat=Seat.EXECUTOR.value, agent=agent).last()
        upgraded = last is not None and last.error == "upgraded"
        raise LeaseLost(
            "this agent holds no lease on the task",
            holder=row.worker if row is not None else None,
            code="upgraded" if upgraded else "lease_lost",
        )
    if lease_token:
        require_token(row, lease_token)
    row.task, row.project = task, task.project
    return row


def lock_with_parent(task_id: int) -> Task:
    """Lock a task after its parent, and attach the parent. Errors: NotFound."""
    parent_id = Task.objects.filter(pk=task_id).values_list("parent_id", flat=True).first()
    parent = lock_task(parent_id) if parent_id is not None else None
    task = lock_task(task_id)
    if parent is not None:
        parent.project = task.project
        task.parent = parent
    return task


def heartbeat_task(
    *, task_id: int, agent: Agent, actor: Actor, lease_token: str = ""
) -> Assignment:
    """Extend the executor's lease of a task. Errors: LeaseLost."""
    with unit_of_work(actor) as work:
        held = _lease_of(lock_task(task_id), agent, lease_token)
        return extend_lease(work, held)


@retry_on_deadlock
def release_task(
    *, task_id: int, agent: Agent, actor: Actor, reason: str = "", lease_token: str = ""
) -> Task:
    """Give a claimed task back; it counts nothing. Errors: LeaseLost."""
    with unit_of_work(actor) as work:
        task = lock_with_parent(task_id)
        held = held_lease(task, agent, lease_token)
        require_at_work(task)
        requeue(work, held, why=reason or "released")
        settle_ending(work, task)
    return task


@dataclass(frozen=True, slots=True)
class StatusChange:
    """A status call of the blackboard. Shape: as DESIGN section 14."""

    status: str
    detail: str = ""
    blocked_by: tuple[str, ...] = ()
    light_plan: tuple[str, ...] = ()


def require_at_work(task: Task) -> None:
    """Raise unless a task is where its assignee works on it.

    From waiting_human only Sir's decision moves it, from review only verification and QA.
    Errors: IllegalTransition naming what an agent may do instead.
    """
    if task.status not in TASK_HOLDS_SLOT:
        raise IllegalTransition(
            f"the task is {task.status}; its assignee does not move it from there",
            allowed=[TaskStatus.CLAIMED.value] if task.status == TaskStatus.PENDING else [],
            current=task.status,
        )


@retry_on_deadlock
def change_status(
    *,
    task_id: int,
    change: StatusChange,
    agent: Agent,
    actor: Actor,
    lease_token: str = "",
    seen_version: int | None = None,
) -> Task:
    """Move a task as its assignee: working, review, failed, blocked or waiting_human.

    The identical repeat of the report that ended the lease changes nothing.
    Errors: LeaseLost, IllegalTransition, HandshakeRequired, MissingOutput, MissingHandoff, Invalid
    without a detail, Stale.
    """
    if change.status in ("failed", "blocked", "waiting_human") and not change.detail.strip():
        raise Invalid(
            f"{change.status} needs a detail",
            errors=[{"path": "detail", "message": "is required"}],
        )
    with unit_of_work(actor) as work:
        task = lock_with_parent(task_id)
        if is_standing_report(task, agent, change):
            return task
        held = held_lease(task, agent, lease_token)
        require_version(task, seen_version)
        require_at_work(task)
        held.has_progress = True
        work.touch(held, "has_progress")
        _apply_change(work, task, held, change)
        work.flush()
    return task


def is_standing_report(task: Task, agent: Agent, change: StatusChange) -> bool:
    """Whether this very report ended the agent's lease before, and nobody took the task since."""
    last = task.assignments.filter(seat=Seat.EXECUTOR.value).last()
    if last is None or last.agent_id != agent.pk:
        return False
    if change.status == "failed":
        return last.status == AssignmentStatus.FAILED and last.error == change.detail
    return change.status == "review" and last.status == AssignmentStatus.DONE


def _apply_change(work: Work, task: Task, held: Assignment, change: StatusChange) -> None:
    if change.status == "working":
        start_work(work, task, held)
        if change.light_plan:
            store_light_plan(work, task, held, change.light_plan)
    elif change.status == "review":
        start_work(work, task, held)
        hand_in_task(work, held, task.parent)
    elif change.status == "failed":
        move_assignment(work, held, AssignmentStatus.FAILED, why=change.detail)
        fail_leaf(work, task, why=change.detail, failure_class="agent_failed")
        settle_ending(work, task)
    elif change.status == "blocked":
        block_task(work, task, held, detail=change.detail, blocked_by=change.blocked_by)
    elif change.status == "waiting_human":
        ask_sir(work, task, held, change.detail)
    else:
        raise Invalid(
            f"an assignee cannot set {change.status!r}",
            errors=[
                {"path": "status", "message": "working, review, failed, blocked, waiting_human"}
            ],
        )


def ask_sir(work: Work, task: Task, held: Assignment, question: str) -> None:
    """Put an agent's question to Sir: the lease clock stops until he answers."""
    # Before its intent is confirmed it cannot go on working when the answer comes.
    began = task.status != TaskStatus.CLAIMED or may_start(task, held)
    task.asked_from = (TaskStatus.WORKING if began else TaskStatus.CLAIMED).value
    work.touch(task, "asked_from")
    move_task(work, task, TaskStatus.WAITING_HUMAN, detail=question)
    stop_clock(work, held)
    content = question_content(work, held, task, question)
    open_decision(
        work,
        kind=DecisionKind.WAITING_HUMAN,
        project=task.project,
        task=task,
        title=task.title,
        question=question,
        content=content,
        params=about_of(content),
    )


def add_task_output(
    *,
    task_id: int,
    document: OutputInput,
    data: bytes,
    agent: Agent | None,
    actor: Actor,
    lease_token: str = "",
) -> Output:
    """Store an output of the task's assignee; under a lost lease it is kept as an orphan.

    Errors: LeaseLost, with the content kept as an orphan attachment.
    """
    try:
        with unit_of_work(actor) as work:
            task = lock_task(task_id)
            held = held_lease(task, agent, lease_token)
            if task.role:
                require_may_hand_in(task, document, held)
            held.has_progress = True
            work.touch(held, "has_progress")
            return add_output(work, task, document, assignment=held, data=data)
    except LeaseLost:
        if agent is not None and has_ever_held(Task.objects.get(pk=task_id), agent):
            keep_orphan(task_id=task_id, document=document, data=data, actor=actor)
        raise


def add_task_comment(
    *, task_id: int, document: CommentInput, agent: Agent | None, actor: Actor
) -> Comment:
    """Comment on a task; whoever may see it may. A holder's comment counts as progress."""
    with unit_of_work(actor) as work:
        task = lock_task(task_id)
        require_not_stopped(task.project)
        held = task.assignments.filter(agent=agent, status=AssignmentStatus.LEASED.value).last()
        if held is not None and agent is not None:
            held.has_progress = True
            work.touch(held, "has_progress")
        name = (actor.name.partition(":")[2] or actor.name)[:AUTHOR_CHARACTERS]
        return add_comment(
            work, task, document, author=name, agent=agent,
            assignment=held if agent is not None else None,
        )  # fmt: skip


@retry_on_deadlock
def cancel_task(
    *, task_id: int, actor: Actor, reason: str, seen_version: int | None = None
) -> Task:
    """Cancel a task and its tree on Sir's word.

    Errors: IllegalTransition when it has ended already; Invalid without a reason; Stale.
    """
    if not reason.strip():
        raise Invalid(
            "cancelling needs a reason", errors=[{"path": "reason", "message": "required"}]
        )
    with unit_of_work(actor) as work:
        task = lock_with_parent(task_id)
        require_not_stopped(task.project)
        require_version(task, seen_version)
        if task.status in (TaskStatus.DONE, TaskStatus.CANCELLED):
            raise Conflict(
                f"the task is {task.status} already", code="illegal_transition", allowed=[]
            )
        cancel_tree(work, task, why=reason)
        work.flush()
        task.refresh_from_db()
    return task


@retry_on_deadlock
def replan_task(
    *, task_id: int, actor: Actor, reason: str, seen_version: int | None = None
) -> Task:
    """End a planned root's attempt and plan it again; it counts nothing.

    Errors: Conflict for a step, a task without a plan, or one that is not working or failed; Stale.
    """
    with unit_of_work(actor) as work:
        task = lock_task(task_id)
        require_not_stopped(task.project)
        require_version(task, seen_version)
        if task.parent_id is not None or task.route not in (Route.THREE_STEP, Route.WORKFLOW):
            raise Conflict("only a planned root is planned again", code="not_replannable")
        cause = {"class": "cancelled_by_sir", "root_cause": f"re-plan: {reason}",
                 "attempt": task.attempt}  # fmt: skip
        if task.status == TaskStatus.FAILED:
            fail_root(work, task, cause)
        elif task.status == TaskStatus.WORKING:
            _restart(work, task, cause)
        else:
            raise Conflict(f"the task is {task.status}", code="not_replannable")
    return task


def _restart(work: Work, task: Task, cause: dict[str, object]) -> None:
    cancel_live(work, [task.pk], why="re-plan")
    task.failure_context = [*task.failure_context, cause]
    work.touch(task, "failure_context")
    if task.blueprints.exists():
        task.is_ending = True
        work.touch(task, "is_ending")
        work.flush()
        settle_ending(work, task)
        return
    move_task(work, task, TaskStatus.FAILED, detail=str(cause["root_cause"]))
    replan_root(work, task)
