"""Who calls the API, and the typed request that carries it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from rest_framework.request import Request

from orchestration.access import HumanRole, Viewer, role_of
from orchestration.models import Agent, HumanToken
from orchestration.scopes import open_seats
from orchestration.services.work import Actor
from orchestration.states import Seat

ACTOR_CHARACTERS = 140
"""What the audit trail holds of a name."""


@dataclass(frozen=True)
class Caller:
    """Whoever a request is from: an agent by its token, or a person by session or token.

    Shape: `token` is None for an agent and for a person with a session.
    """

    viewer: Viewer
    token: HumanToken | None = None
    request_id: str = ""

    @property
    def agent(self) -> Agent | None:
        """The agent, if one calls."""
        return self.viewer if isinstance(self.viewer, Agent) else None

    @property
    def user_id(self) -> int | None:
        """The person's id, if one calls."""
        return None if isinstance(self.viewer, Agent) else self.viewer.pk

    @cached_property
    def role(self) -> HumanRole | None:
        """The person's role; None for agents and for people without one."""
        return role_of(self.viewer)

    @property
    def name(self) -> str:
        """The actor's name in the audit trail: it comes from the credentials, never the body."""
        if isinstance(self.viewer, Agent):
            return f"agent:{self.viewer.name}"
        return f"human:{self.viewer.get_username()}"[:ACTOR_CHARACTERS]

    @property
    def actor(self) -> Actor:
        """The actor that services record."""
        return Actor(self.name, self.request_id)

    @property
    def may_decide(self) -> bool:
        """Whether this is Sir, by session or by a token made for deciding."""
        is_open = self.token is None or self.token.can_decide
        return self.role is HumanRole.SIR and is_open

    @property
    def seats(self) -> frozenset[Seat]:
        """The seats an agent's token opens; none for people."""
        agent = self.agent
        return open_seats(agent.scopes) if agent is not None else frozenset()

    @property
    def throttle_key(self) -> str:
        """What the rate is counted on: the token, else the person."""
        if isinstance(self.viewer, Agent):
            return f"agent:{self.viewer.pk}"
        if self.token is not None:
            return f"token:{self.token.pk}"
        return f"user:{self.viewer.pk}"


def caller_of(request: Request) -> Caller:
    """Read who calls from an authenticated request."""
    auth = request.auth
    return Caller(
        viewer=request.user,
        token=auth if isinstance(auth, HumanToken) else None,
        request_id=getattr(request._request, "request_id", ""),
    )
