"""Recognise callers by bearer token; sessions are DRF's own, with CSRF.

Source: DESIGN section 14 ("Conventions").
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from orchestration.models import Agent, HumanToken
from orchestration.services.agents import (
    HUMAN_PREFIX,
    agent_of_token,
    human_token_of,
    note_agent_seen,
)

REALM = 'Bearer realm="countersign"'
MAX_TOKEN_CHARACTERS = 200
WRONG_TOKEN = "This token is unknown or was revoked."  # noqa: S105  # a sentence


def bearer_token(request: Request) -> str | None:
    """Read the bearer token of a request, or None when it names no token.

    Errors: AuthenticationFailed when the header is there but malformed.
    """
    header = request.headers.get("Authorization", "")
    kind, _, token = header.partition(" ")
    if kind.lower() != "bearer":
        return None
    token = token.strip()
    if not token or " " in token or len(token) > MAX_TOKEN_CHARACTERS:
        raise AuthenticationFailed("The Authorization header is `Bearer` and one token.")
    return token


class AgentTokenAuthentication(BaseAuthentication):
    """Recognise an agent by its bearer token."""

    def authenticate(self, request: Request) -> tuple[Agent, None] | None:
        """Return the agent, or None where no agent's token is shown.

        Errors: AuthenticationFailed for an unknown or revoked one.
        """
        token = bearer_token(request)
        if token is None or token.startswith(HUMAN_PREFIX):
            return None
        agent = agent_of_token(token)
        if agent is None:
            raise AuthenticationFailed(WRONG_TOKEN)
        note_agent_seen(agent)
        return agent, None

    def authenticate_header(self, request: Request) -> str:
        """Name the scheme, so that a missing token is 401 and not 403."""
        return REALM


class HumanTokenAuthentication(BaseAuthentication):
    """Recognise a person by a personal token."""

    def authenticate(self, request: Request) -> tuple[AbstractBaseUser, HumanToken] | None:
        """Return the person and the token, or None where no personal token is shown.

        Errors: AuthenticationFailed for an unknown or revoked one.
        """
        token = bearer_token(request)
        if token is None:
            return None
        row = human_token_of(token)
        if row is None:
            raise AuthenticationFailed(WRONG_TOKEN)
        return row.user, row

    def authenticate_header(self, request: Request) -> str:
        """Name the scheme."""
        return REALM


class AgentTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Describe agents' tokens in the schema."""

    target_class = "orchestration.api.auth.AgentTokenAuthentication"
    name = "agentToken"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        """Return the scheme."""
        return {"type": "http", "scheme": "bearer", "description": "A token of an agent."}


class HumanTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Describe personal tokens in the schema."""

    target_class = "orchestration.api.auth.HumanTokenAuthentication"
    name = "personalToken"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        """Return the scheme."""
        return {"type": "http", "scheme": "bearer", "description": "A personal token."}
