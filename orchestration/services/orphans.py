"""Orphans: what an agent hands in under a lease that has ended is kept, and counts for nothing.

Source: DESIGN section 3 ("Leases").
"""

from __future__ import annotations

import hashlib

from orchestration.contracts.results import CommentInput, OutputInput
from orchestration.errors import LeaseLost
from orchestration.models import Agent, Task
from orchestration.services.lookups import lock_task
from orchestration.services.outputs import add_comment, add_output
from orchestration.services.work import Actor, unit_of_work
from orchestration.states import AssignmentStatus, CommentType


def has_ever_held(task: Task, agent: Agent) -> bool:
    """Whether an agent held any lease on a task, also one that was given back since."""
    if task.assignments.filter(agent=agent).exclude(status=AssignmentStatus.QUEUED.value).exists():
        return True
    leased = task.events.filter(kind="assignment.leased", actor=f"agent:{agent.name}")
    return leased.exists()


def require_ever_held(task: Task, agent: Agent) -> None:
    """Raise unless an agent held a lease on a task: what a stranger sends is not kept.

    Errors: LeaseLost naming the present holder.
    """
    if not has_ever_held(task, agent):
        holder = task.assignee.name if task.assignee is not None else None
        raise LeaseLost("this agent never held a lease on the task", holder=holder)


def keep_orphan(
    *,
    task_id: int,
    document: OutputInput,
    data: bytes,
    actor: Actor,
    agent: Agent | None = None,
    words: str = "",
) -> None:
    """Keep what came under a lease that had ended, once, as an orphan attachment.

    `words` of a hand-off become a comment that hands nothing over: they are of no lease.
    """
    with unit_of_work(actor) as work:
        task = lock_task(task_id)
        digest = hashlib.sha256(data).hexdigest()
        kept = task.outputs.filter(is_orphan=True, title=document.title, sha256=digest)
        if not kept.exists():
            add_output(work, task, document, assignment=None, data=data, is_orphan=True)
        said = task.comments.filter(agent=agent, body=words)
        if words.strip() and not said.exists():
            comment = CommentInput.model_construct(comment_type=CommentType.GENERAL, body=words)
            add_comment(work, task, comment, author=_name_of(actor), agent=agent, mentions=False)


def _name_of(actor: Actor) -> str:
    return actor.name.partition(":")[2] or actor.name
