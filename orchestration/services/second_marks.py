"""The second set of marks: what the agent that delegated a task verified of it itself.

Its review may come with tool calls. They are recorded under its own lease, where it works on what
it delegated from, and marks of them stand beside the others with its name.
Source: DESIGN section 8 ("Marks"), source document 003.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from orchestration.contracts.results import TaskCommentInput, ToolCallInput
from orchestration.errors import Conflict, Forbidden
from orchestration.models import Agent, Assignment, Comment, Output, Task, ToolCall
from orchestration.rules.tool_record import BY, Call, agent_marks
from orchestration.services.lookups import lock_task
from orchestration.services.moves import hint_task
from orchestration.services.outputs import add_comment, newest_outputs
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.tasks import held_lease, lock_with_parent
from orchestration.services.tool_calls import as_call, as_told, store_calls
from orchestration.services.work import Actor, Work, unit_of_work
from orchestration.states import Seat


@retry_on_deadlock
def review_delegated(
    *, task_id: int, document: TaskCommentInput, agent: Agent, actor: Actor, lease_token: str = ""
) -> Comment:
    """Record a review with tool calls of whoever delegated a task, and mark its newest outputs.

    Its newest review stands: the marks of an earlier one of its own go.
    Errors: Forbidden unless the agent works on the task above and did not make this one itself;
    LeaseLost; Conflict while there is no output.
    Locks: the task above with its parent, the task, then the lease above.
    """
    with unit_of_work(actor) as work:
        known = Task.objects.get(pk=task_id)
        if known.parent_id is None or not known.is_spawned:
            raise _not_delegated()
        above = lock_with_parent(known.parent_id)
        task = lock_task(task_id, project=above.project)
        task.parent = above
        held = _lease_of(above, agent, lease_token)
        made_it = task.assignments.filter(seat=Seat.EXECUTOR.value, agent=agent)
        if made_it.filter(attempt=task.attempt).exists():
            raise Forbidden("Who did the work does not verify it.", code="own_work")
        outputs = newest_outputs(task)
        if not outputs:
            raise Conflict("there is no output to review yet", code="missing_output")
        calls = _store(work, held, document.tool_calls)
        comment = add_comment(work, task, document, author=agent.name, agent=agent)
        mark_by(work, outputs, agent, comment, calls)
        hint_task(work, task)
        return comment


def _not_delegated() -> Forbidden:
    return Forbidden(
        "Tool calls come with the review of whoever delegated the task and still works on it.",
        code="not_the_delegator",
    )


def _lease_of(above: Task, agent: Agent, lease_token: str) -> Assignment:
    """Lock the lease under which an agent delegated. Errors: Forbidden, LeaseLost."""
    if not above.assignments.filter(seat=Seat.EXECUTOR.value, agent=agent).exists():
        raise _not_delegated()
    return held_lease(above, agent, lease_token)


def _store(work: Work, held: Assignment, calls: Sequence[ToolCallInput]) -> list[Call]:
    """Record calls as reported by the agent; one that its harness recorded before stays observed.

    Return them as the record has them.
    """
    told = [
        call.model_copy(update={"call_id": call.call_id or f"review-{uuid4()}"})
        for call in as_told(calls)
    ]
    store_calls(work, held, told)
    rows = ToolCall.objects.filter(assignment=held, call_id__in=[one.call_id for one in told])
    return [as_call(row) for row in rows.select_related("assignment").order_by("pk")]


def mark_by(
    work: Work, outputs: Sequence[Output], agent: Agent, comment: Comment, calls: Sequence[Call]
) -> None:
    """Put the marks that an agent's own verification earns on outputs, with its name.

    Locks: expects the task locked.
    """
    earned = [{**one, BY: agent.name, "comment": str(comment.pk)} for one in agent_marks(calls)]
    for output in outputs:
        output.marks = [*(one for one in output.marks if one.get(BY) != agent.name), *earned]
        work.touch(output, "marks")
