"""What becomes of the children that an agent spawned below its own task.

A spawned child's end is told to its spawner and does not fail it; the spawner's end takes its
children with it.
Source: DESIGN section 11, section 4 rule 7.
"""

from __future__ import annotations

from orchestration.contracts.mail_types import MailType
from orchestration.contracts.results import CommentInput
from orchestration.errors import Conflict
from orchestration.models import Task
from orchestration.selectors.fixes import open_fixes
from orchestration.services.blueprints import descendant_ids
from orchestration.services.delegations import close_delegations, outcome_of, tell_delegator
from orchestration.services.inbox import withdraw_open
from orchestration.services.leases import cancel_live
from orchestration.services.mail import AGENT_PREFIX, Address, Letter, store_mail
from orchestration.services.moves import supersede_task, void_defects
from orchestration.services.outputs import add_comment
from orchestration.services.work import Work, locked
from orchestration.states import (
    TASK_TERMINAL,
    AssignmentStatus,
    Seat,
    TaskStatus,
)

ENDED = TASK_TERMINAL | {TaskStatus.FAILED}
"""A failed child that has tries left is pending again before anybody sees it."""


def require_children_ended(task: Task) -> None:
    """Raise while a child that was spawned below a task has not ended.

    Errors: Conflict naming them.
    """
    rows = task.children.filter(blueprint__isnull=True, is_superseded=False)
    open_rows = rows.exclude(status__in=[state.value for state in ENDED]).order_by("pk")
    names = []
    for row in open_rows:
        row.project = task.project
        names.append(str(row))
    if names:
        raise Conflict(
            f"its children have not ended: {', '.join(names)}", code="children_open", children=names
        )


def tell_spawner(work: Work, child: Task, spawner: Task) -> None:
    """Tell the spawner how a child ended: a comment on its task, and mail to its agent.

    Where the child was delegated by mail, that is the answer to it, and the delegation is closed.
    Locks: expects the child and the spawner locked.
    """
    child.project = spawner.project
    body = outcome_of(child)
    add_comment(work, spawner, CommentInput(body=body), author="system", mentions=False)
    began = close_delegations(work, child, body)
    lease = spawner.assignments.select_related("agent").filter(
        seat=Seat.EXECUTOR.value, status=AssignmentStatus.LEASED.value, agent__isnull=False
    )
    held = lease.first()
    holder = held.agent if held is not None else None
    for first in began:
        if holder is None or first.sender_agent_id != holder.pk:
            tell_delegator(work, child, first, body)
    if holder is None:
        return
    letter = Letter(
        project=spawner.project,
        task=child,
        type=MailType.INFORM,
        sender="system",
        to=[Address(f"{AGENT_PREFIX}{holder.name}", holder)],
        parts=[{"text": body}],
        details={"child": str(child.pk), "status": child.status},
        in_reply_to=next((one for one in began if one.sender_agent_id == holder.pk), None),
    )
    with work.as_system():
        store_mail(work, letter)


def cancel_children(work: Work, task: Task, *, why: str) -> None:
    """Cancel the open children that were spawned below a task, with all below them.

    Locks: expects the task locked; takes everything below in id order.
    """
    children = task.children.filter(blueprint__isnull=True, is_superseded=False)
    ids = list(children.values_list("pk", flat=True))
    if not ids:
        return
    ids += descendant_ids(ids)
    fixes = open_fixes(ids)
    ids += [*fixes, *descendant_ids(fixes)]
    rows = list(locked(Task.objects.filter(pk__in=ids)).order_by("pk"))
    cancel_live(work, ids, why=why)
    withdraw_open(work, ids, why=why, with_locked=True)
    void_defects(work, ids, why=why, with_locked=True)
    for row in rows:
        row.project = task.project
        supersede_task(work, row, why=why)
    work.flush()
