"""The tool-call record: what an agent's harness, or the agent itself, says that it did.

Calls are recorded before anything is said about them. The same call again and again is warned of;
too many end the assignment.
Source: DESIGN section 8 ("Tool-call record"), FORMATS, CASES A-40, A-41.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from orchestration.contracts.results import CommentInput, ToolCallInput
from orchestration.models import Assignment, LogChunk, Task, ToolCall
from orchestration.rules.tool_record import OBSERVED, SELF_REPORTED, Call
from orchestration.services.failures import end_without_result
from orchestration.services.holding import require_not_stopped
from orchestration.services.holds import Hold, lock_hold, require_hold
from orchestration.services.leases import extend_lease
from orchestration.services.outputs import add_comment, add_tool_calls
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.work import Actor, Work, unit_of_work
from orchestration.states import AssignmentStatus, CommentType, Seat

MOST_READ = 500
"""Calls of one task that are read for its marks, the newest."""


@dataclass(frozen=True, slots=True)
class CallsRecorded:
    """What recording tool calls did. `warnings` name calls that repeat without end."""

    recorded: int
    total: int
    is_stopped: bool
    warnings: list[str]


@retry_on_deadlock
def record_tool_calls(*, hold: Hold, calls: Sequence[ToolCallInput], actor: Actor) -> CallsRecorded:
    """Record what an agent says it called; warn of endless repetition, stop at the limit.

    Errors: LeaseLost.
    """
    with unit_of_work(actor) as work:
        row = lock_hold(hold)
        require_hold(row, hold)
        require_not_stopped(row.project)
        return store_calls(work, row, as_told(calls))


def as_told(calls: Sequence[ToolCallInput]) -> list[ToolCallInput]:
    """Take calls as their agent's word: that a harness saw them is a word of the agent too."""
    return [call.model_copy(update={"source": "agent"}) for call in calls]


def store_calls(work: Work, row: Assignment, calls: Sequence[ToolCallInput]) -> CallsRecorded:
    """Record calls under a lease that was checked; a call its harness named before is known.

    Locks: expects parent, task and assignment locked.
    """
    limits = row.task.project.policy.limits
    fresh = _unknown(row, calls)
    before = row.tool_calls.count()
    add_tool_calls(work, row, fresh)
    extend_lease(work, row, has_progress=bool(fresh))
    total = before + len(fresh)
    warnings = _warn(work, row, len(fresh), limits.repeated_tool_calls)
    is_stopped = before < limits.tool_calls <= total
    if is_stopped:
        _stop(work, row, limits.tool_calls)
    return CallsRecorded(len(fresh), total, is_stopped, warnings)


def _unknown(row: Assignment, calls: Sequence[ToolCallInput]) -> list[ToolCallInput]:
    """Leave out the calls that were recorded before, or twice in this request."""
    named = [call.call_id for call in calls if call.call_id]
    known = set(row.tool_calls.filter(call_id__in=named).values_list("call_id", flat=True))
    fresh: list[ToolCallInput] = []
    for call in calls:
        if call.call_id and call.call_id in known:
            continue
        known.add(call.call_id)
        fresh.append(call)
    return fresh


def _warn(work: Work, row: Assignment, fresh: int, limit: int) -> list[str]:
    """Warn on the task of each call that came again and again among the newest.

    Said when a run reaches the limit, wherever in a batch, not once more for every call after it.
    """
    newest = list(row.tool_calls.order_by("-pk")[: limit + fresh])[::-1]
    known = len(newest) - fresh
    begun, texts = 0, []
    for _, run in groupby(newest, key=_what_was_called):
        calls = list(run)
        before = max(0, known - begun)
        if len(calls) >= limit > before:
            texts.append(_warn_of(work, row, calls[-1], len(calls)))
        begun += len(calls)
    return texts


def _what_was_called(call: ToolCall) -> tuple[str, str, str]:
    return call.tool, call.command, call.input_digest


def _warn_of(work: Work, row: Assignment, call: ToolCall, repeated: int) -> str:
    text = f"the same call {repeated} times in a row: {call.tool} {call.command[:200]}".rstrip()
    work.record(
        "assignment.warned",
        subject=f"assignment:{row.pk}",
        project_id=row.project_id,
        task_id=row.task_id,
        after={"tool": call.tool, "repeated": repeated},
        why=text,
    )
    with work.as_system():
        observed = CommentInput(comment_type=CommentType.OBSERVATION, body=text)
        add_comment(work, row.task, observed, author="system")
    append_to_log(work, row, f"warning: {text}\n")
    return text


def _stop(work: Work, row: Assignment, limit: int) -> None:
    """End an assignment that made as many calls as one may."""
    end_without_result(
        work,
        row,
        AssignmentStatus.FAILED,
        why=f"stopped after {limit} tool calls",
        failure_class="budget",
    )


def append_to_log(work: Work, row: Assignment, text: str) -> None:
    """Append to an assignment's live log. Locks: expects the assignment locked."""
    LogChunk.objects.create(
        project_id=row.project_id,
        task_id=row.task_id,
        assignment=row,
        source=f"{row.seat} {row.worker}"[:120],
        text=text,
    )
    work.hint(f"log:{row.project_id}", row.project_id)


def recorded_calls(
    task: Task, *, seats: Iterable[Seat] = (Seat.EXECUTOR, Seat.FIXER)
) -> list[Call]:
    """Read what was recorded while a task was made: oldest first, every attempt.

    Shape: calls of the system's own commands are no agent's and not among them.
    """
    rows = ToolCall.objects.filter(
        assignment__task=task,
        assignment__seat__in=[seat.value for seat in seats],
        assignment__agent__isnull=False,
    )
    newest = list(rows.select_related("assignment").order_by("-pk")[:MOST_READ])
    return [as_call(row) for row in reversed(newest)]


def as_call(row: ToolCall) -> Call:
    """Give a stored call the grade of whoever recorded it."""
    return Call(
        id=str(row.pk),
        tool=row.tool,
        command=row.command,
        outcome=row.outcome,
        exit_code=row.exit_code,
        output_tail=row.output_tail,
        grade=OBSERVED if row.source == "harness" else SELF_REPORTED,
        attempt=row.assignment.attempt,
    )
