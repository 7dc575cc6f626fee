"""The guarantee behind the wake-ups: find what is due by its rows and call the same services.

Bounded batches, filtered and ordered in SQL. Every sweep may run twice, late or never.
Source: DESIGN section 3, STYLE section 4.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from django.conf import settings
from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone

from orchestration.enqueue import slots, wake_workers
from orchestration.errors import CountersignError
from orchestration.models import Assignment, Decision, Project, Task
from orchestration.runner.processes import is_local_token, kill_group
from orchestration.seats.registry import EXTERNAL, worker_backends
from orchestration.services.agent_claims import eligible_agents
from orchestration.services.assignments import cancel_live
from orchestration.services.changelog import write_waiting_changelogs
from orchestration.services.clocks import set_clocks_right, wrong_clocks
from orchestration.services.completion import check_planned
from orchestration.services.control import ask_about_stalled, stalled_projects
from orchestration.services.cross_checks import resume_review
from orchestration.services.decisions import Verdict, decide_decision
from orchestration.services.delegations import close_ended_delegation, ended_delegations
from orchestration.services.failures import end_without_result, reclaim
from orchestration.services.held_results import apply_held_results
from orchestration.services.idempotency import forget_old_answers
from orchestration.services.inbox import withdraw_decision
from orchestration.services.judging import judge_again, unjudged_roots
from orchestration.services.lookups import lock_for_result, lock_project, lock_task
from orchestration.services.loop import replan_due_roots, settle_ending
from orchestration.services.readiness import make_ready, start_roots
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.tasks import lock_with_parent
from orchestration.services.unanswered import (
    ask_intent,
    ask_negotiation,
    overdue_intents,
    pass_on_intent,
    unasked_intents,
    unasked_negotiations,
)
from orchestration.services.work import SYSTEM, Actor, locked, unit_of_work
from orchestration.states import (
    ASSIGNMENT_LIVE,
    AssignmentStatus,
    DecisionStatus,
    ProjectStatus,
    Seat,
    TaskKind,
    TaskStatus,
)

logger = logging.getLogger(__name__)
BATCH = 200
_IN_SAFE_STOP = Q(project__status=ProjectStatus.SAFE_STOP.value)


def sweep() -> Mapping[str, int]:
    """Repair what a lost message or a dead process left behind. Shape: counts by kind.

    One part that fails does not keep the others from running: it is logged, counts -1, and comes
    again with the next sweep.
    """
    return {name: _guarded(name, part) for name, part in PARTS.items()}


def _guarded(name: str, part: Callable[[], int]) -> int:
    try:
        return part()
    except Exception:
        logger.exception("part %s of the sweep failed; the others go on", name)
        return -1


def _each(ids: Sequence[int], repair: Callable[[int], bool]) -> int:
    """Repair rows one by one; a row that fails is logged and the next one has its turn."""
    count = 0
    for pk in ids:
        try:
            count += repair(pk)
        except Exception:
            logger.exception("row %s could not be repaired by %s", pk, repair)
    return count


def reclaim_expired_leases() -> int:
    """Take back leases that ran out, after the old process group is dead."""
    rows = Assignment.objects.filter(
        status=AssignmentStatus.LEASED.value,
        is_clock_stopped=False,
        lease_expires_at__lt=timezone.now(),
        held_result__isnull=True,
    ).filter(_CLOCK_RUNS)
    ids = list(rows.order_by("lease_expires_at").values_list("pk", flat=True)[:BATCH])
    return _each(ids, partial(_reclaim, why="lease expired"))


# The clocks of agents stand still while their project is not active; our own workers' do not:
# a crash is repaired and a result accepted all the same, but in safe stop Sir repairs first.
_CLOCK_RUNS = ~Q(backend=EXTERNAL) & ~Q(project__status=ProjectStatus.SAFE_STOP.value) | Q(
    project__status__in=[ProjectStatus.ACTIVE.value, ProjectStatus.COMPLETED.value]
)


def reclaim_from_dead(worker_prefix: str, *, alive: str) -> int:
    """Take back at once what an earlier process of this very place held (embedded mode's start)."""
    rows = Assignment.objects.filter(
        status=AssignmentStatus.LEASED.value,
        worker__startswith=worker_prefix,
        backend__in=worker_backends(),
        held_result__isnull=True,
    ).exclude(worker__startswith=alive)
    ids = list(rows.values_list("pk", flat=True))
    return _each(ids, partial(_reclaim, why="its worker process ended", even_unexpired=True))


@retry_on_deadlock
def _reclaim(assignment_id: int, *, why: str, even_unexpired: bool = False) -> bool:
    group = Assignment.objects.values_list("process_group", flat=True).get(pk=assignment_id)
    if not _old_group_is_dead(group):
        return False
    with unit_of_work(SYSTEM) as work:
        row = lock_for_result(Assignment.objects.select_related("task").get(pk=assignment_id))
        ended = row.lease_expires_at is not None and row.lease_expires_at < work.now
        if row.status != AssignmentStatus.LEASED or not (ended or even_unexpired):
            return False
        if row.task.status == TaskStatus.WAITING_HUMAN:
            return False
        reclaim(work, row, why=why)
        work.flush()
        settle_ending(work, row.task)
    return True


def _old_group_is_dead(process_group: str) -> bool:
    """Kill what is left of a recorded group on this machine; elsewhere it died with its parent."""
    pgid, _, token = process_group.partition(" ")
    if not pgid or not token or not is_local_token(token):
        return True
    return kill_group(int(pgid), token)


def end_overdue_assignments() -> int:
    """End agents' assignments whose timeout has passed; waiting for Sir is not counted."""
    rows = Assignment.objects.filter(
        status=AssignmentStatus.LEASED.value,
        backend=EXTERNAL,
        is_clock_stopped=False,
        deadline__lt=timezone.now(),
        project__status__in=[ProjectStatus.ACTIVE.value, ProjectStatus.COMPLETED.value],
    )
    return _each(list(rows.values_list("pk", flat=True)[:BATCH]), _end_overdue)


@retry_on_deadlock
def _end_overdue(assignment_id: int) -> bool:
    with unit_of_work(SYSTEM) as work:
        row = lock_for_result(Assignment.objects.select_related("task").get(pk=assignment_id))
        is_over = row.deadline is not None and row.deadline < work.now
        runs = row.project.status in (ProjectStatus.ACTIVE, ProjectStatus.COMPLETED)
        if row.status != AssignmentStatus.LEASED or row.is_clock_stopped or not (is_over and runs):
            return False
        end_without_result(
            work, row, AssignmentStatus.FAILED, why="the assignment's time ran out",
            failure_class="timeout",
        )  # fmt: skip
    return True


def expire_decisions() -> int:
    """Carry out the named policy of overdue decisions; silence is never consent."""
    rows = Decision.objects.filter(
        status=DecisionStatus.OPEN.value,
        deadline__lt=timezone.now(),
        project__status__in=[ProjectStatus.ACTIVE.value, ProjectStatus.COMPLETED.value],
    )
    count = 0
    for decision in rows.order_by("deadline")[:BATCH]:
        rule = decision.on_expiry or {}
        verdict = Verdict(
            verdict=str(rule.get("outcome", "")),
            seen_version=decision.version,
            seen_digest=decision.digest,
            reason=f"expired under policy {rule.get('policy_id')}",
        )
        policy_id = str(rule.get("policy_id", ""))
        try:
            decide_decision(
                decision_id=decision.pk, verdict=verdict, actor=Actor(f"policy:{policy_id}"),
                user_id=None, policy_id=policy_id,
            )  # fmt: skip
            count += 1
        except CountersignError as error:
            logger.info("decision %s did not expire: %s", decision.pk, error.detail)
    return count


def restart_stranded_tasks() -> int:
    """Start ready tasks that have no live assignment, finish parents whose steps all ended.

    Nothing leaves such rows behind in normal running; this is the repair of a fault we do not know.
    """
    states = [state.value for state in ASSIGNMENT_LIVE]
    live = Assignment.objects.filter(status__in=states).values("task_id")
    rows = (
        Task.objects.filter(
            status=TaskStatus.PENDING.value,
            remaining_dependencies=0,
            is_superseded=False,
            is_awaiting_commands=False,
            project__status=ProjectStatus.ACTIVE.value,
        )
        .filter(
            Q(parent__isnull=True, is_planned=False)
            | (Q(parent__status=TaskStatus.WORKING.value) | Q(blueprint__isnull=True))
            & Q(
                parent__isnull=False,
                phase__lte=F("parent__open_phase"),
                root__is_ending=False,
                root__is_replanning=False,
            )
        )
        .exclude(pk__in=live)
    )
    ids = list(rows.order_by("pk").values_list("pk", flat=True)[:BATCH])
    return _each(ids, _restart) + _finish_stranded_parents()


@retry_on_deadlock
def _restart(task_id: int) -> bool:
    with unit_of_work(SYSTEM) as work:
        task = lock_with_parent(task_id)
        live = [state.value for state in ASSIGNMENT_LIVE]
        if task.status != TaskStatus.PENDING or task.assignments.filter(status__in=live).exists():
            return False
        return bool(make_ready(work, [task]))


def _finish_stranded_parents() -> int:
    """Finish planned tasks none of whose steps is unfinished, and conclude drained attempts."""
    children = Task.objects.filter(parent=OuterRef("pk"))
    ended = (TaskStatus.DONE.value, TaskStatus.CANCELLED.value)
    parents = Task.objects.filter(
        Exists(children),
        ~Exists(children.exclude(status__in=ended)),
        status=TaskStatus.WORKING.value,
        is_planned=True,
        project__status=ProjectStatus.ACTIVE.value,
    )
    count = _each(list(parents.values_list("pk", flat=True)[:BATCH]), _finish)
    ending = Task.objects.filter(~_IN_SAFE_STOP, is_ending=True, status=TaskStatus.WORKING.value)
    return count + _each(list(ending.values_list("pk", flat=True)[:BATCH]), _settle)


@retry_on_deadlock
def _finish(task_id: int) -> bool:
    with unit_of_work(SYSTEM) as work:
        task = lock_task(task_id)
        before = task.status
        check_planned(work, task)
        return task.status != before


@retry_on_deadlock
def _settle(task_id: int) -> bool:
    with unit_of_work(SYSTEM) as work:
        settle_ending(work, lock_task(task_id))
    return True


def start_waiting_roots() -> int:
    """Start planned roots that wait although a place is free."""
    waiting = Task.objects.filter(
        project=OuterRef("pk"),
        parent__isnull=True,
        kind=TaskKind.TASK.value,
        status=TaskStatus.PENDING.value,
        is_planned=True,
    )
    rows = Project.objects.filter(Exists(waiting), status=ProjectStatus.ACTIVE.value)
    return _each(list(rows.values_list("pk", flat=True)[:BATCH]), _start_roots)


@retry_on_deadlock
def _start_roots(project_id: int) -> bool:
    with unit_of_work(SYSTEM) as work:
        start_roots(work, lock_project(project_id))
    return True


def wake_for_queued_work() -> int:
    """Wake workers when queued work of ours waits: the message for it was lost."""
    now = timezone.now()
    rows = Assignment.objects.filter(
        Q(not_before__isnull=True) | Q(not_before__lte=now),
        Q(project__status=ProjectStatus.ACTIVE.value)
        | Q(project__status=ProjectStatus.SUSPENDED.value, seat=Seat.QA.value),
        status=AssignmentStatus.QUEUED.value,
        backend__in=worker_backends(),
    )
    waiting = rows[: settings.COUNTERSIGN_CONCURRENCY].count()
    if waiting:
        slots.forget()
        wake_workers(waiting)
    return waiting


def pass_unmanned_checks() -> int:
    """Let cross-checks become Sir's that wait for agents of whom none is left to do them."""
    rows = Assignment.objects.filter(
        status=AssignmentStatus.QUEUED.value,
        seat=Seat.CROSS_VERIFIER.value,
        task__status=TaskStatus.REVIEW.value,
        project__status=ProjectStatus.ACTIVE.value,
    )
    return _each(list(rows.order_by("pk").values_list("pk", flat=True)[:BATCH]), _pass_unmanned)


@retry_on_deadlock
def _pass_unmanned(assignment_id: int) -> bool:
    with unit_of_work(SYSTEM) as work:
        row = lock_for_result(Assignment.objects.select_related("task").get(pk=assignment_id))
        task = row.task
        is_due = row.status == AssignmentStatus.QUEUED and task.status == TaskStatus.REVIEW
        if not is_due or eligible_agents(task, Seat.CROSS_VERIFIER, work.now):
            return False
        cancel_live(work, [task.pk], why="no agent is left for it", seats=[Seat.CROSS_VERIFIER])
        work.flush()
        resume_review(work, task, task.parent if task.parent_id is not None else None)
    return True


def close_orphaned_decisions() -> int:
    """Withdraw open decisions whose task has ended; none should exist."""
    rows = Decision.objects.filter(
        status=DecisionStatus.OPEN.value,
        task__status__in=[TaskStatus.DONE.value, TaskStatus.CANCELLED.value],
        defect__artifact__isnull=True,
    ).exclude(Q(kind="high_notice") | _IN_SAFE_STOP)
    with unit_of_work(SYSTEM) as work:
        found = list(locked(rows).order_by("pk")[:BATCH])
        for row in found:
            withdraw_decision(work, row, why="task ended")
    return len(found)


def pass_on_intents() -> int:
    """Ask the next one about intents that nobody answered in time."""
    return _each(overdue_intents(), pass_on_intent)


def close_what_was_delegated() -> int:
    """Close the delegations of work that has ended, and tell who delegated it."""
    return _each(ended_delegations(), close_ended_delegation)


def right_wrong_clocks() -> int:
    """Start clocks that were left standing in a running project, stop those left running."""
    return _each(wrong_clocks(), set_clocks_right)


def ask_what_was_not_asked() -> int:
    """Put intents and negotiations before Sir that had to wait for another question."""
    return _each(unasked_intents(), ask_intent) + _each(unasked_negotiations(), ask_negotiation)


def judge_unjudged() -> int:
    """Judge roots that wait for a verdict which nobody was asked for."""
    return _each(unjudged_roots(), judge_again)


PARTS: Mapping[str, Callable[[], int]] = {
    "held": apply_held_results,
    "clocks": right_wrong_clocks,
    "expired_leases": reclaim_expired_leases,
    "overdue": end_overdue_assignments,
    "decisions": expire_decisions,
    "orphaned_decisions": close_orphaned_decisions,
    "intents": pass_on_intents,
    "unasked": ask_what_was_not_asked,
    "delegations": close_what_was_delegated,
    "unmanned": pass_unmanned_checks,
    "stranded": restart_stranded_tasks,
    "replanned": replan_due_roots,
    "judged": judge_unjudged,
    "roots": start_waiting_roots,
    "stalled": lambda: _each(stalled_projects(), ask_about_stalled),
    "woken": wake_for_queued_work,
    "forgotten": forget_old_answers,
    "changelogs": write_waiting_changelogs,
}
"""What one sweep does, in this order."""
