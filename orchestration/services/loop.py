"""The master loop: what a root's end means for its project and for the next attempt.

Sense, compare, act for one root at a time. What is here decides failed, re-plan and fatal, and
completes the project; `services.judging` decides done.
Source: DESIGN section 4 rules 3, 4 and 7, section 10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from orchestration.contracts.loop import FailureClass, Verdict
from orchestration.models import Assignment, Handshake, Project, Task, ValidationPackage
from orchestration.models.statements import are_roots_done, is_root_ending
from orchestration.seats.registry import EXTERNAL
from orchestration.services.blockers import ask_behind
from orchestration.services.blueprints import descendant_ids
from orchestration.services.clocks import suspend_project
from orchestration.services.control import command_end, command_failure
from orchestration.services.experiences import learn_from_failure
from orchestration.services.inbox import open_decision, withdraw_open
from orchestration.services.leases import cancel_live
from orchestration.services.lookups import lineage_root, lock_project, lock_task
from orchestration.services.moves import (
    hint_task,
    move_assignment,
    move_project,
    move_task,
    void_defects,
)
from orchestration.services.packages import (
    TRANSIENT,
    failure_entry,
    failure_package,
    package_of,
    store_package,
)
from orchestration.services.plan_requests import can_plan
from orchestration.services.readiness import make_ready, start_roots
from orchestration.services.red_lines import own_approvals
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.spawned import cancel_children, tell_spawner
from orchestration.services.upgrade import upgrade_if_due
from orchestration.services.work import SYSTEM, Work, locked, unit_of_work
from orchestration.states import (
    MAX_RETRIES_REASON,
    AssignmentStatus,
    DecisionKind,
    HandshakeStatus,
    ProjectStatus,
    Seat,
    TaskKind,
    TaskStatus,
)

BATCH = 50
BACK_OFF_SECONDS = 300
"""The longest wait before a re-plan after a passing cause."""


def complete_project_if_done(
    work: Work,
    project: Project,
    *,
    root: Task | None = None,
    package: ValidationPackage | None = None,
) -> None:
    """Move an active project to completed when every root that is not cancelled is done.

    The end of the loop is commanded with it, once, whatever `root` ended last and how.
    Locks: expects the project's row locked.
    """
    if project.status != ProjectStatus.ACTIVE:
        return
    if are_roots_done(project.pk):
        move_project(work, project, ProjectStatus.COMPLETED, why="every root is done")
        command_end(work, project, root, package)


def fail_leaf(
    work: Work,
    task: Task,
    *,
    why: str,
    failure_class: str,
    evidence: Mapping[str, Any] | None = None,
    no_more_tries: bool = False,
) -> list[Assignment]:
    """Fail a leaf: try once more in place, upgrade it, or end the attempt up to the root.

    Return the executor assignments this made ready.
    Locks: expects the task locked (and its parent before it).
    """
    context = {
        "attempt": task.attempt,
        "class": failure_class,
        "root_cause": why,
        "evidence": dict(evidence or {}),
        "at": work.now.isoformat(),
    }
    task.tries += 1
    task.failure_context = [*task.failure_context, context]
    task.last_outcome = f"failed: {why}"[:300]
    work.touch(task, "tries", "failure_context", "last_outcome")
    # A result is recorded before its task fails; what still lives then works for nothing.
    work.flush()
    cancel_live(work, [task.pk], why="the task failed")
    withdraw_open(work, [task.pk], why="the task failed")
    void_defects(work, [task.pk], why="the task failed")
    cancel_children(work, task, why="the task failed")
    move_task(work, task, TaskStatus.FAILED, detail=why, facts={"class": failure_class})
    if not no_more_tries and upgrade_if_due(work, task, failures=task.tries):
        return []
    if task.parent_id is None:
        return fail_root(work, task, context)
    if not no_more_tries and task.tries < task.project.policy.thresholds.step_attempts:
        return retry_leaf(work, task)
    if task.is_spawned:
        tell_spawner(work, task, lock_task(task.parent_id))
    else:
        end_attempt(work, lineage_root(task), cause=context | {"step": task.step_key})
    ask_behind(work, task)
    return []


def retry_leaf(work: Work, task: Task) -> list[Assignment]:
    """Put a failed leaf back to pending, with its failure context, for the next attempt."""
    task.attempt += 1
    task.fix_round = 0
    task.actual_steps = 0
    work.touch(task, "attempt", "fix_round", "actual_steps")
    move_task(work, task, TaskStatus.PENDING, why="one more try with its failure context")
    work.flush()
    return make_ready(work, [task])


def end_attempt(work: Work, root: Task, *, cause: Mapping[str, Any]) -> None:
    """Stop a root's attempt: nothing new starts, running siblings finish, then it is concluded.

    Locks: the root, after the step; the caller retries on deadlock.
    """
    root = lock_task(root.pk)
    if not root.is_ending:
        root.is_ending = True
        root.failure_context = [*root.failure_context, dict(cause)]
        work.touch(root, "is_ending", "failure_context")
    work.flush()
    # A revision that is still planned or audited would lock a blueprint into the next attempt.
    cancel_live(work, [root.pk], why="attempt ends")
    tree = descendant_ids([root.pk])
    hint_task(work, root)
    conclude_if_drained(work, root, tree)


def conclude_if_drained(work: Work, root: Task, tree: Sequence[int]) -> None:
    """Cancel what is queued in a stopped attempt; conclude it once nothing is leased any more."""
    live = Assignment.objects.filter(task_id__in=tree)
    queued = live.filter(status=AssignmentStatus.QUEUED.value).exclude(seat=Seat.QA.value)
    for row in locked(queued).order_by("pk"):
        move_assignment(work, row, AssignmentStatus.CANCELLED, why="attempt ends")
    work.flush()
    running = live.filter(
        Q(status=AssignmentStatus.LEASED.value) & ~Q(task__status=TaskStatus.WAITING_HUMAN.value)
        | Q(status=AssignmentStatus.QUEUED.value, seat=Seat.QA.value) & ~Q(backend=EXTERNAL)
    ).exclude(pk__in=_intents_before_sir(tree))
    if root.is_ending and not running.exists():
        conclude_attempt(work, root, tree)


def _intents_before_sir(tree: Sequence[int]) -> QuerySet[Any]:
    """List the assignments whose intent waits for Sir: nothing of theirs runs."""
    rows = Handshake.objects.filter(task_id__in=tree, status=HandshakeStatus.AWAITING_SIR.value)
    return rows.values("assignment_id")


def settle_ending(work: Work, task: Task) -> None:
    """After any assignment of a tree ended: conclude its attempt if that was the last one."""
    parent = task.parent if task.parent_id is not None else None
    if parent is not None and parent.pk == task.root_id and not parent.is_ending:
        # The caller holds the parent's lock, and it is the root.
        return
    if not is_root_ending(task.lineage_root_id):
        return
    work.flush()
    root = lock_task(task.lineage_root_id)
    if root.is_ending and root.status == TaskStatus.WORKING:
        conclude_if_drained(work, root, descendant_ids([root.pk]))


def conclude_attempt(
    work: Work, root: Task, tree: Sequence[int], *, package: ValidationPackage | None = None
) -> None:
    """End the failed attempt of every planned ancestor and of the root (rule 3).

    Steps that wait for Sir are cancelled with their decisions; pending ones stay for the re-plan.
    """
    # The tasks first: what is asked about one is asked under its lock.
    rows = list(locked(Task.objects.filter(pk__in=tree, is_superseded=False)).order_by("pk"))
    withdraw_open(work, [root.pk, *tree], why="attempt ended")
    cancel_live(work, tree, why="attempt ended")
    root.is_ending, root.is_replanning = False, True
    work.touch(root, "is_ending", "is_replanning")
    void_defects(work, tree, why="attempt ended")
    for row in rows:
        row.project = root.project
        if row.status in (TaskStatus.WAITING_HUMAN, TaskStatus.BLOCKED, TaskStatus.CLAIMED):
            # A claimed one is left only where Sir had not confirmed its executor's intent yet.
            move_task(work, row, TaskStatus.CANCELLED, why="attempt ended",
                      cancel_reason="superseded")  # fmt: skip
        elif row.status == TaskStatus.REVIEW:
            move_task(work, row, TaskStatus.FAILED, detail="its review ended with the attempt")
        elif row.is_planned and row.status == TaskStatus.WORKING:
            move_task(work, row, TaskStatus.FAILED, detail="a step failed")
    cause = dict(root.failure_context[-1]) if root.failure_context else {}
    words = str(cause.get("root_cause", "a step failed"))
    verdict = package.verdict if package is not None else Verdict.NO_GO.value
    root.last_outcome = f"{verdict}: {words}"[:300]
    work.touch(root, "last_outcome")
    detail = package_of(package).reason if package is not None else words
    move_task(work, root, TaskStatus.FAILED, detail=detail)
    work.flush()
    fail_root(work, root, cause, package=package)


def fail_judged(work: Work, root: Task, package: ValidationPackage) -> None:
    """End a root's attempt on a package that is not GO: it stands beside the earlier failures.

    Locks: expects the root locked, in review or at work without open children.
    """
    root.failure_context = [*root.failure_context, failure_entry(package)]
    root.awaits_verdict = False
    work.touch(root, "failure_context", "awaits_verdict")
    work.flush()
    cancel_live(work, [root.pk], why="attempt ended")
    void_defects(work, [root.pk], why="attempt ended")
    conclude_attempt(work, root, descendant_ids([root.pk]), package=package)


def fail_root(
    work: Work,
    root: Task,
    cause: Mapping[str, Any],
    *,
    package: ValidationPackage | None = None,
) -> list[Assignment]:
    """Count a root's failed attempt: plan it again, or end it as fatal at the limit.

    The package is built by rules where none was handed in. A message only stays failed. A cause of
    class `cancelled_by_sir` counts nothing (rule 7), a passing one that was handed in backs off.
    """
    if root.kind == TaskKind.MESSAGE:
        return _fail_message(work, root)
    learn_from_failure(work, root, cause)
    row = package or store_package(work, root, failure_package(root, cause, work.now))
    _note_package(work, root, cause, row)
    delay = _back_off(work, root, row) if package is not None else None
    if delay is None and cause.get("class") != FailureClass.CANCELLED_BY_SIR.value:
        root.failure_count += 1
        root.transient_failures = 0
    work.touch(root, "failure_count", "transient_failures")
    is_fatal = root.failure_count >= root.project.policy.thresholds.max_retries
    if is_fatal:
        end_fatal(work, root)
    project = lock_project(root.project_id)
    command_failure(work, project, root, row, is_fatal=is_fatal)
    if is_fatal:
        return []
    if not root.is_planned and package is None:
        return replan_root(work, root)
    # The re-plan is a transaction of its own, and starts from what this one recorded.
    root.replan_at = work.now + (delay or timedelta())
    work.touch(root, "replan_at")
    work.wake()
    return []


def _fail_message(work: Work, root: Task) -> list[Assignment]:
    """Count the failure of a message; outside the loop (section 2) it stays failed at the limit."""
    root.failure_count += 1
    work.touch(root, "failure_count")
    if root.failure_count < root.project.policy.thresholds.max_retries:
        return replan_root(work, root)
    ask_behind(work, root)
    return []


def _note_package(work: Work, root: Task, cause: Mapping[str, Any], row: ValidationPackage) -> None:
    """Name the package in the entry of its failure; one that is not in the context is added."""
    entry = {**cause, **failure_entry(row)}
    entry["class"] = cause.get("class") or entry["class"]
    earlier = list(root.failure_context)
    if earlier and earlier[-1].get("root_cause") == cause.get("root_cause"):
        earlier.pop()
    root.failure_context = [*earlier, entry]
    work.touch(root, "failure_context")


def _back_off(work: Work, root: Task, row: ValidationPackage) -> timedelta | None:
    """How long a passing cause delays the re-plan; None when it counts: its cap is reached."""
    cap = root.project.policy.limits.transient_retries
    is_passing = row.verdict == Verdict.INDETERMINATE and row.failure_class in TRANSIENT
    if not is_passing or root.transient_failures >= cap:
        return None
    root.transient_failures += 1
    return timedelta(seconds=min(2**root.transient_failures, BACK_OFF_SECONDS))


def replan_root(work: Work, root: Task) -> list[Assignment]:
    """Send a failed root back to pending for its next attempt, with every failure as context.

    Commands are approved for one attempt. A failed root that nobody can plan is fatal (rule 4).
    """
    root.attempt += 1
    root.revisions_used = 0
    root.fix_round = 0
    root.replan_at = None
    root.approved_digests = own_approvals(root)
    work.touch(root, "attempt", "revisions_used", "fix_round", "approved_digests", "replan_at")
    if root.is_planned and root.status == TaskStatus.FAILED and not can_plan(root):
        end_fatal(work, root, question="Nobody can plan this task again. What now?")
        return []
    move_task(work, root, TaskStatus.PENDING, why="re-plan with its failure context")
    work.flush()
    if root.is_planned:
        start_roots(work, lock_project(root.project_id))
        return []
    return make_ready(work, [root])


def replan_due_roots(project_id: int | None = None) -> int:
    """Plan failed roots again whose time has come. Return how many.

    Shape: one bounded query, for the sweep and for a worker that wakes up.
    """
    rows = Task.objects.filter(
        replan_at__lte=timezone.now(),
        status=TaskStatus.FAILED.value,
        project__status=ProjectStatus.ACTIVE.value,
    )
    if project_id is not None:
        rows = rows.filter(project=project_id)
    due = list(rows.order_by("rank", "pk").values_list("pk", flat=True)[:BATCH])
    return sum(_replan(pk) for pk in due)


@retry_on_deadlock
def _replan(task_id: int) -> bool:
    with unit_of_work(SYSTEM) as work:
        root = lock_task(task_id)
        is_due = root.replan_at is not None and root.replan_at <= work.now
        is_active = root.project.status == ProjectStatus.ACTIVE
        if root.status != TaskStatus.FAILED or not is_due or not is_active:
            return False
        replan_root(work, root)
    return True


def end_fatal(work: Work, root: Task, *, question: str = "") -> None:
    """End a root at its third failure in a row: fatal, project suspended, Sir asked (P0)."""
    move_task(work, root, TaskStatus.FATAL, detail=MAX_RETRIES_REASON, why=MAX_RETRIES_REASON)
    project = lock_project(root.project_id)
    if project.status == ProjectStatus.ACTIVE:
        suspend_project(work, project, why=MAX_RETRIES_REASON)
    root.project = project
    open_decision(
        work,
        kind=DecisionKind.MAX_RETRIES,
        project=project,
        task=root,
        title=root.title,
        question=question or f"{root.failure_count} attempts failed in a row. What now?",
        content={"failures": root.failure_context, "description": root.description},
        params={"attempts": root.failure_count},
        is_p0=True,
    )
    ask_behind(work, root)
