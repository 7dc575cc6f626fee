"""S3's first half: an executor starts, hands in, or fails.

A result from `claimed` with no handshake due records both moves. The recorded result is what makes
a step never run again.
Source: DESIGN section 4 (task table, rule 15), section 8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestration.contracts.results import CommentInput, OutputInput
from orchestration.errors import MissingHandoff, MissingOutput
from orchestration.models import Agent, Assignment, Output, Task
from orchestration.rules.handoff import check_handoff
from orchestration.rules.tool_record import run_marks
from orchestration.services.handshake_gate import may_start, require_start
from orchestration.services.loop import fail_leaf, settle_ending
from orchestration.services.moves import move_assignment, move_task
from orchestration.services.outputs import (
    add_comment,
    add_output,
    add_tool_calls,
    command_calls,
    newest_outputs,
)
from orchestration.services.profile_gate import require_may_hand_in, settle_profile_work
from orchestration.services.review import start_review
from orchestration.services.spawned import require_children_ended
from orchestration.services.verification import is_handed_in
from orchestration.services.work import Work
from orchestration.states import AssignmentStatus, CommentType, TaskStatus

NO_OUTPUT = "review needs at least one output; none was handed in"
NO_HANDOFF = "review needs a hand-off comment; none was handed in"


@dataclass(frozen=True, slots=True)
class HandIn:
    """What an executor hands in. Shape: `outputs` with their bytes, read by us."""

    status: str
    detail: str = ""
    failure_class: str = "agent_failed"
    outputs: Sequence[tuple[OutputInput, bytes]] = ()
    comment: CommentInput | None = None
    runs: Sequence[Mapping[str, Any]] = field(default=())


def start_work(work: Work, task: Task, held: Assignment) -> None:
    """Move a claimed task to working; the locked artifacts it may read are recorded.

    Errors: HandshakeRequired where the executor's intent has to be confirmed first.
    Locks: expects the task locked.
    """
    if task.status == TaskStatus.CLAIMED:
        require_start(task, held)
        move_task(work, task, TaskStatus.WORKING)


def record_executor(
    work: Work,
    assignment: Assignment,
    parent: Task | None,
    hand_in: HandIn,
    *,
    author: str,
    agent: Agent | None = None,
) -> list[Assignment]:
    """Record an executor's result and go on: review, or the failed-step rules.

    Return assignments that became ready for the caller's worker.
    Errors: HandshakeRequired, MissingOutput, MissingHandoff.
    Locks: expects parent, task and assignment locked.
    """
    task = assignment.task
    # An agent may have handed in outputs before its result: they are judged and locked with it.
    may_have_more = agent is not None and assignment.has_progress
    if hand_in.status != "failed" or may_start(task, assignment):
        # Who gives up before its intent was confirmed never began.
        start_work(work, task, assignment)
    assignment.result = {
        "status": hand_in.status,
        "detail": hand_in.detail,
        "runs": [dict(run) for run in hand_in.runs],
    }
    work.touch(assignment, "result")
    if hand_in.runs:
        add_tool_calls(work, assignment, command_calls(hand_in.runs))
    marks = run_marks(hand_in.runs)
    if task.role:
        for document, _ in hand_in.outputs:
            require_may_hand_in(task, document, assignment)
    outputs = [
        add_output(
            work, task, document, assignment=assignment, data=data, is_recorded=False, marks=marks
        )
        for document, data in hand_in.outputs
    ]
    if hand_in.comment is not None:
        add_comment(work, task, hand_in.comment, author=author, agent=agent, assignment=assignment)
    if hand_in.status == "failed":
        move_assignment(work, assignment, AssignmentStatus.FAILED, why=hand_in.detail)
        return _fail(work, task, hand_in)
    if not outputs or hand_in.comment is None:
        require_handed_in(assignment)
    if outputs and may_have_more:
        outputs = newest_outputs(task)
    return _review(work, assignment, parent, outputs or newest_outputs(task))


def _fail(work: Work, task: Task, hand_in: HandIn) -> list[Assignment]:
    work.flush()
    evidence = {"runs": list(hand_in.runs)[-1:]} if hand_in.runs else {}
    queued = fail_leaf(
        work, task, why=hand_in.detail, failure_class=hand_in.failure_class, evidence=evidence
    )
    settle_ending(work, task)
    return queued


def hand_in_task(
    work: Work,
    assignment: Assignment,
    parent: Task | None,
) -> list[Assignment]:
    """Move a working task to review, with its output and hand-off, and review it.

    Errors: MissingOutput, MissingHandoff naming what is missing.
    Locks: expects parent, task and assignment locked.
    """
    require_handed_in(assignment)
    return _review(work, assignment, parent, newest_outputs(assignment.task))


def _review(
    work: Work, assignment: Assignment, parent: Task | None, outputs: Sequence[Output]
) -> list[Assignment]:
    task = assignment.task
    if assignment.agent_id is not None:
        require_children_ended(task)
        if task.role:
            outputs = settle_profile_work(work, task, outputs, assignment)
    work.read(task.pk, assignment.pk)
    move_assignment(work, assignment, AssignmentStatus.DONE)
    handed_in = [[one.title, one.version, one.sha256] for one in outputs]
    move_task(work, task, TaskStatus.REVIEW, facts={"outputs": handed_in})
    with work.as_system():
        ready = start_review(work, task, parent, outputs)
        settle_ending(work, task)
    return ready


def require_recordable(assignment: Assignment, hand_in: HandIn) -> None:
    """Raise what recording a hand-in for review would raise, and change nothing.

    Errors: HandshakeRequired, MissingOutput, MissingHandoff, Conflict for open children; Invalid
    for a hand-off that is too long; Forbidden by its profile.
    """
    task = assignment.task
    require_start(task, assignment)
    has_output, has_handoff = is_handed_in(assignment)
    if not (has_output or hand_in.outputs):
        raise MissingOutput(NO_OUTPUT)
    comment = hand_in.comment
    is_handoff = comment is not None and comment.comment_type is CommentType.HANDOFF
    if not (has_handoff or is_handoff):
        raise MissingHandoff(NO_HANDOFF)
    if comment is not None and is_handoff:
        check_handoff(comment.body)
    for document, _ in hand_in.outputs:
        require_may_hand_in(task, document, assignment)
    require_children_ended(task)


def require_handed_in(assignment: Assignment) -> None:
    """Raise unless this attempt has an output and its holder's hand-off.

    Errors: MissingOutput, MissingHandoff.
    """
    has_output, has_handoff = is_handed_in(assignment)
    if not has_output:
        raise MissingOutput(NO_OUTPUT)
    if not has_handoff:
        raise MissingHandoff(NO_HANDOFF)
