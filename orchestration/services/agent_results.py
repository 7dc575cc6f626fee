"""What agents send about a piece of work they hold: heartbeats, results, logs.

Each call carries the lease token and is fenced by it. A late result is refused, naming who holds
the work now, and its content is kept; the identical repeat of a terminal report changes nothing.
Source: DESIGN section 3 ("Leases"), section 8 ("Tool-call record"), section 14; CASES C-68, A-17.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestration.contracts.outputs import MAX_COMMENT_CHARACTERS
from orchestration.contracts.results import OutputInput, Usage
from orchestration.errors import Conflict, CountersignError, Fault, LeaseLost
from orchestration.models import Assignment, Task
from orchestration.rules.dag import canonical_digest
from orchestration.services.agent_claims import Wish, take_for_agent
from orchestration.services.budgets import exceeded, note_usage, record_overrun, stop_over_budget
from orchestration.services.holding import REPORT, hold_result, is_stopped, require_not_stopped
from orchestration.services.holds import Hold, lock_hold, require_hold
from orchestration.services.leases import extend_lease, requeue, same_token
from orchestration.services.loop import settle_ending
from orchestration.services.orphans import has_ever_held, keep_orphan
from orchestration.services.results import record_agent_result, require_readable
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.tasks import require_at_work
from orchestration.services.tool_calls import append_to_log
from orchestration.services.work import Actor, Work, unit_of_work
from orchestration.states import AssignmentStatus, OutputType, Seat, TaskStatus

__all__ = [
    "Hold",
    "Recorded",
    "append_log",
    "heartbeat_assignment",
    "hold_over_budget",
    "keep_late_result",
    "lock_hold",
    "note_usage",
    "release_assignment",
    "require_hold",
    "require_movable",
    "submit_result",
    "task_of",
]

FOLLOWING = "next"
"""Key in `Assignment.result`: the assignment that was taken with the result."""
FAULTS = "faults"
"""Key in `Assignment.result`: what was wrong with a plan that used up a revision."""
HELD = "held"
"""Key in `Assignment.result`: a result that waits for Sir to raise the limit it went over."""
REFUSED = "its held result was refused"
LATE_TITLE = "Late result"


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of a result. `is_repeat` marks the identical repeat of the standing report.

    `faults` lists what is wrong with a malformed plan, which used up a revision.
    """

    assignment: Assignment
    is_repeat: bool
    following: Assignment | None = None

    @property
    def faults(self) -> list[Fault]:
        """What was wrong with the plan that was handed in; empty for anything else."""
        return list(_standing(self.assignment).get(FAULTS, ()))


@retry_on_deadlock
def heartbeat_assignment(
    *, hold: Hold, actor: Actor, usage: Usage | None = None, note: str = ""
) -> Assignment:
    """Extend a lease; what was used so far is noted, and beyond its limits the work stops.

    Errors: LeaseLost.
    """
    with unit_of_work(actor) as work:
        row = lock_hold(hold)
        require_hold(row, hold)
        note_usage(work, row, usage)
        extend_lease(work, row)
        if not is_stopped(row.project):
            stop_over_budget(work, row)
        if note.strip():
            append_to_log(work, row, note + "\n")
    return row


@retry_on_deadlock
def release_assignment(*, hold: Hold, actor: Actor, reason: str = "") -> Assignment:
    """Give an assignment back to the queue; it counts nothing.

    Errors: LeaseLost; IllegalTransition while the task waits for Sir.
    """
    with unit_of_work(actor) as work:
        row = lock_hold(hold)
        require_hold(row, hold)
        require_not_stopped(row.project)
        require_movable(row)
        requeue(work, row, why=reason or "released")
        settle_ending(work, row.task)
    return row


def submit_result(
    *,
    hold: Hold,
    document: Mapping[str, Any],
    actor: Actor,
    usage: Usage | None = None,
    wish: Wish | None = None,
) -> Recorded:
    """Record an agent's result and, where asked, take its next assignment in the same transaction.

    Errors: LeaseLost naming the holder, after the content was kept; Conflict for another report
    than the standing one; Invalid listing every fault; MissingOutput, MissingHandoff.
    """
    try:
        return _record(hold=hold, document=document, actor=actor, usage=usage, wish=wish)
    except LeaseLost:
        keep_late_result(hold=hold, document=document, actor=actor)
        raise


@retry_on_deadlock
def _record(
    *,
    hold: Hold,
    document: Mapping[str, Any],
    actor: Actor,
    usage: Usage | None,
    wish: Wish | None,
) -> Recorded:
    digest = canonical_digest(document)
    contradiction: Conflict | None = None
    with unit_of_work(actor) as work:
        row = lock_hold(hold)
        if _is_reported(row, hold):
            if _standing(row).get(REPORT) == digest:
                return Recorded(row, is_repeat=True, following=_taken_with(row, hold))
            contradiction = _contradicted(work, row)
        elif is_stopped(row.project):
            require_hold(row, hold)
            note_usage(work, row, usage)
            return Recorded(row, is_repeat=hold_result(work, row, document))
        else:
            require_hold(row, hold)
            if _standing(row).get(REPORT) == digest and HELD in _standing(row):
                return Recorded(row, is_repeat=True)
            require_movable(row)
            note_usage(work, row, usage)
            if hold_over_budget(work, row, document, digest):
                return Recorded(row, is_repeat=False)
            record_overrun(work, row)
            record_agent_result(work, row, row.task.parent, document)
            work.flush()
            settle_ending(work, row.task)
            following = take_for_agent(work, hold.agent, wish) if wish is not None else None
            _note_report(work, row, digest, following)
            return Recorded(row, is_repeat=False, following=following)
    raise contradiction


def hold_over_budget(work: Work, row: Assignment, document: Mapping[str, Any], digest: str) -> bool:
    """Hold a finished result whose figures are over a limit until Sir raises it.

    A failure is taken as it is: there is nothing more to spend on it. Return whether it is held.
    Errors: Invalid listing every fault of the document.
    """
    if document.get("status") == "failed" or not exceeded(row):
        return False
    require_readable(row, document)
    if not stop_over_budget(work, row, is_finished=True):
        return False
    row.result = _standing(row) | {HELD: dict(document), REPORT: digest}
    work.touch(row, "result")
    return True


def take_held_result(work: Work, row: Assignment) -> None:
    """Record the result that was held over its figures, once Sir raised the limit.

    Sir's word stands where it cannot be recorded any more: the work is queued again then.
    Locks: expects parent, task and assignment locked, and the task at work again.
    """
    standing = _standing(row)
    document, digest = standing.pop(HELD, None), standing.pop(REPORT, "")
    if not isinstance(document, Mapping):
        return
    row.result = standing or None
    work.touch(row, "result")
    work.flush()
    with work.as_system():
        try:
            require_readable(row, document)
        except CountersignError as error:
            requeue(work, row, why=f"{REFUSED}: {error.detail}"[:500])
            return
        record_agent_result(work, row, row.task.parent, document)
        work.flush()
        settle_ending(work, row.task)
        _note_report(work, row, digest, None)


def _note_report(work: Work, row: Assignment, digest: str, following: Assignment | None) -> None:
    """Note the report on its assignment, so that a repeat is known for one."""
    noted: dict[str, Any] = {REPORT: digest}
    if following is not None:
        noted[FOLLOWING] = following.pk
    if row.seat == Seat.PLANNER:
        plan = row.task.plans.order_by("pk").last()
        noted |= {FAULTS: plan.faults} if plan is not None and plan.faults else {}
    row.result = _standing(row) | noted
    work.touch(row, "result")


def require_movable(row: Assignment) -> None:
    """Raise where a seat's holder moves nothing: an executor elsewhere than at work, anybody's
    task while it waits for Sir.

    Errors: IllegalTransition.
    """
    if row.seat == Seat.EXECUTOR or row.task.status == TaskStatus.WAITING_HUMAN:
        require_at_work(row.task)


def _standing(row: Assignment) -> dict[str, Any]:
    return dict(row.result) if isinstance(row.result, Mapping) else {}


def _is_reported(row: Assignment, hold: Hold) -> bool:
    """Whether this very lease ended with a report of this agent's."""
    ended = row.status in (AssignmentStatus.DONE, AssignmentStatus.FAILED)
    mine = row.agent_id == hold.agent.pk and same_token(hold.lease_token, row.lease_token)
    return ended and mine and REPORT in _standing(row)


def _taken_with(row: Assignment, hold: Hold) -> Assignment | None:
    """Read the assignment that was taken with a result, while it is still this agent's."""
    taken = _standing(row).get(FOLLOWING)
    if not isinstance(taken, int):
        return None
    rows = Assignment.objects.select_related("task__project").filter(
        pk=taken, agent=hold.agent, status=AssignmentStatus.LEASED.value
    )
    return rows.first()


def _contradicted(work: Work, row: Assignment) -> Conflict:
    """Record that a second, different report came; the first stands."""
    work.record(
        "result.contradicted",
        subject=f"assignment:{row.pk}",
        project_id=row.project_id,
        task_id=row.task_id,
        after={"status": row.status, "seat": row.seat},
        why="another report came after the one that stands",
    )
    return Conflict(
        f"this assignment is {row.status} already, by another report",
        code="already_reported",
        holder=row.worker or None,
    )


def keep_late_result(*, hold: Hold, document: Mapping[str, Any], actor: Actor) -> None:
    """Keep what came under a lease that had ended as an orphan attachment of the task."""
    row = Assignment.objects.select_related("task").get(pk=hold.assignment_id)
    if not has_ever_held(row.task, hold.agent):
        return
    output = document.get("output")
    late = OutputInput.model_construct(  # a plan may be larger than an output
        type=OutputType.DATA,
        title=f"{LATE_TITLE} of {row.seat}",
        summary=f"from {hold.agent.name}, after its lease had ended",
        content=json.dumps(document, ensure_ascii=False, indent=1),
        path=None,
        assertions=(),
    )
    words = ""
    if row.seat in (Seat.EXECUTOR, Seat.FIXER) and isinstance(output, Mapping):
        parsed = _late_output(output)
        # Where the whole document is kept, the words are in it.
        late, words = (parsed, _late_words(document.get("comment"))) if parsed else (late, "")
    keep_orphan(
        task_id=row.task_id,
        document=late,
        data=(late.content or "").encode(),
        actor=actor,
        agent=hold.agent,
        words=words,
    )


def _late_words(comment: Any) -> str:
    """Read the words of a late hand-off, whatever else is wrong with it."""
    body = comment.get("body") if isinstance(comment, Mapping) else comment
    return body[:MAX_COMMENT_CHARACTERS] if isinstance(body, str) else ""


def _late_output(output: Mapping[str, Any]) -> OutputInput | None:
    """Read a late output; a path is not read any more: the file is the next holder's by now."""
    try:
        parsed = OutputInput.model_validate(output)
    except (ValueError, CountersignError):
        return None
    return parsed if parsed.content is not None else None


@retry_on_deadlock
def append_log(*, hold: Hold, text: str, actor: Actor) -> int:
    """Append to an assignment's live log. Return how many characters.

    Errors: LeaseLost.
    """
    with unit_of_work(actor) as work:
        row = lock_hold(hold)
        require_hold(row, hold)
        require_not_stopped(row.project)
        extend_lease(work, row, has_progress=True)
        append_to_log(work, row, text)
    return len(text)


def task_of(row: Assignment) -> Task:
    """Read an assignment's task as the database has it now."""
    return Task.objects.select_related("project").get(pk=row.task_id)
