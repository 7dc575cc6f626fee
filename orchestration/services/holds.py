"""A caller's claim to hold a piece of work: locked with its task and fenced by its lease token.

Source: DESIGN section 3 ("Leases").
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestration.errors import LeaseLost
from orchestration.models import Agent, Assignment
from orchestration.services.leases import require_lease
from orchestration.services.lookups import lock_for_result
from orchestration.states import AssignmentStatus


@dataclass(frozen=True, slots=True)
class Hold:
    """A caller's claim to hold an assignment."""

    assignment_id: int
    agent: Agent
    lease_token: str


def lock_hold(hold: Hold) -> Assignment:
    """Lock the assignment with its task and parent.

    Errors: NotFound.
    """
    found = Assignment.objects.select_related("task").get(pk=hold.assignment_id)
    return lock_for_result(found)


def require_hold(row: Assignment, hold: Hold) -> None:
    """Raise unless the caller's lease lives.

    Errors: LeaseLost naming whoever holds the work now; WrongLeaseToken.
    """
    if row.status == AssignmentStatus.LEASED and row.agent_id != hold.agent.pk:
        raise LeaseLost("this lease is another agent's", holder=row.worker or None)
    try:
        require_lease(row, lease_token=hold.lease_token)
    except LeaseLost as error:
        raise LeaseLost(error.detail, code=error.code, holder=_holder_now(row)) from None


def _holder_now(row: Assignment) -> str | None:
    """Name who holds this seat of the task now, if anybody does."""
    live = row.task.assignments.filter(seat=row.seat, status=AssignmentStatus.LEASED.value).last()
    return live.worker if live is not None else None
