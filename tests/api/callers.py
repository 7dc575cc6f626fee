"""Who calls the API in tests: clients with a token or a session, and short ways to ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.auth.models import Group, User
from rest_framework.test import APIClient

from orchestration.models import Agent, AuditEvent, Project
from orchestration.services.agents import create_agent, create_human_token
from orchestration.services.work import SYSTEM

EVERY_SCOPE = ("observe", "execute", "plan", "review", "orchestrate")


class Caller(APIClient):
    """A client that speaks JSON and knows whose it is. Shape: `agent` None for people."""

    agent: Agent | None = None
    user: User | None = None

    def send(self, path: str, body: Any = None, **headers: str) -> Any:
        """POST a JSON body. Header names as HTTP writes them, with `_` for `-`."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.post(path, {} if body is None else body, format="json", headers=named)

    def read(self, path: str, **query: str) -> Any:
        """GET and return the document of a 200."""
        answer = self.get(path, query)
        assert answer.status_code == 200, answer.content
        return answer.json()


def by_token(token: str) -> Caller:
    """A client that shows a bearer token."""
    client = Caller()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
    return client


def agent_client(
    project: Project | None = None,
    *,
    name: str = "worker",
    scopes: Sequence[str] = EVERY_SCOPE,
) -> Caller:
    """A client of a new agent, limited to a project where one is given."""
    agent, token = create_agent(
        name=name,
        scopes=scopes,
        projects=[project] if project is not None else [],
        actor=SYSTEM,
    )
    client = by_token(token)
    client.agent = agent
    return client


def person(username: str, role: str) -> User:
    """A person in one of the two roles, or in none."""
    user, _ = User.objects.get_or_create(username=username)
    if role:
        user.groups.add(Group.objects.get_or_create(name=role)[0])
    return user


def human_client(username: str = "sir", role: str = "sir", *, can_decide: bool = True) -> Caller:
    """A client with a personal token."""
    user = person(username, role)
    _, token = create_human_token(user_id=user.pk, can_decide=can_decide, actor=SYSTEM)
    client = by_token(token)
    client.user = user
    return client


def session_client(username: str = "sir", role: str = "sir", *, csrf: bool = False) -> Caller:
    """A client that is signed in, with CSRF checked when asked for."""
    user = person(username, role)
    client = Caller(enforce_csrf_checks=csrf)
    client.force_login(user)
    client.user = user
    return client


def problem(answer: Any, status: int, code: str) -> Mapping[str, Any]:
    """Check that an answer is a problem document, and return it."""
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    document: Mapping[str, Any] = answer.json()
    assert document["code"] == code, document
    assert document["status"] == status
    assert document["title"]
    assert document["detail"]
    return document


def events(kind: str, **where: Any) -> list[AuditEvent]:
    """The audit events of a kind, oldest first."""
    return list(AuditEvent.objects.filter(kind=kind, **where).order_by("pk"))


def facts(event: AuditEvent) -> Mapping[str, Any]:
    """What an event says came after."""
    assert isinstance(event.after, dict)
    return event.after
