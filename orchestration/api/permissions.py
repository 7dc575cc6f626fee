"""What a caller may do. Each check raises; the refusal is audited where it is answered.

| caller | may |
|---|---|
| agent, any scope | read its projects |
| agent with more than `observe` | comment, write experiences and wiki pages |
| agent with `execute` | claim, work on and hand in tasks; seats executor, fixer |
| agent with `plan` | deviations; seats planner, scorer |
| agent with `review` | seats auditor, qa, cross_verifier, validator; review what is known |
| agent with `orchestrate` | messages, tasks, imports, packages as the loop's own state |
| `viewer` | read everything, verify the audit trail |
| `sir` | all that people do; decide with a session or a token made for deciding |

Source: DESIGN sections 9 ("Who"), 14 and 16.
"""

from __future__ import annotations

from collections.abc import Iterable

from orchestration.access import HumanRole
from orchestration.api.requests import Caller
from orchestration.errors import Conflict, Forbidden
from orchestration.models import Agent, Project
from orchestration.scopes import Scope, scope_of
from orchestration.states import ProjectStatus, Seat

CLOSED = frozenset({ProjectStatus.SAFE_STOP, ProjectStatus.ARCHIVED})


def require_agent(caller: Caller, scope: Scope | None = None) -> Agent:
    """Return the calling agent, with its scope checked.

    Errors: Forbidden for people, and for a token without the scope.
    """
    agent = caller.agent
    if agent is None:
        raise Forbidden("Only an agent does this, with its own token.", code="agents_only")
    if scope is not None and scope.value not in agent.scopes:
        raise Forbidden(
            f"This token lacks the scope {scope.value!r}.", code="scope_missing", scope=scope.value
        )
    return agent


def require_seats(caller: Caller, seats: Iterable[Seat]) -> Agent:
    """Return the calling agent when its token opens every one of these seats.

    Errors: Forbidden naming the scope that is missing.
    """
    agent = require_agent(caller)
    for seat in seats:
        if seat not in caller.seats:
            scope = scope_of(seat)
            raise Forbidden(
                f"The seat {seat.value!r} needs the scope {scope.value!r}.",
                code="scope_missing",
                scope=scope.value,
            )
    return agent


def require_human(caller: Caller) -> None:
    """Refuse agents, and people without a role. Errors: Forbidden."""
    if caller.agent is not None:
        raise Forbidden("Only a person does this; agents never do.", code="humans_only")
    if caller.role is None:
        raise Forbidden("This account has neither the role sir nor viewer.", code="no_role")


def require_sir(caller: Caller) -> None:
    """Refuse everybody but Sir. Errors: Forbidden."""
    require_human(caller)
    if caller.role is not HumanRole.SIR:
        raise Forbidden("Only Sir does this.", code="sir_only")


def require_decider(caller: Caller) -> int:
    """Return Sir's id when he may decide: a session, or a token made with --allow-decide.

    Errors: Forbidden.
    """
    require_sir(caller)
    if not caller.may_decide or caller.user_id is None:
        raise Forbidden(
            "This token was not made for deciding; use a session, or a token made with "
            "--allow-decide.",
            code="token_cannot_decide",
        )
    return caller.user_id


def require_sir_or_scope(caller: Caller, scope: Scope) -> None:
    """Let Sir through, and agents with a scope. Errors: Forbidden."""
    if caller.agent is not None:
        require_agent(caller, scope)
    else:
        require_sir(caller)


def require_commenter(caller: Caller) -> None:
    """Let Sir through, and every agent that may do more than read. Errors: Forbidden."""
    agent = caller.agent
    if agent is None:
        require_sir(caller)
    elif not set(agent.scopes) - {Scope.OBSERVE.value}:
        raise Forbidden("This token only reads.", code="scope_missing", scope=Scope.EXECUTE.value)


def require_writable(project: Project) -> None:
    """Refuse writes to a project that is archived or in safe stop.

    Errors: Conflict naming its state.
    """
    if project.status in CLOSED:
        raise Conflict(f"The project is {project.status}.", code=f"project_{project.status}")
