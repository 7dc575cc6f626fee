"""Agents are made, scoped, rotated and revoked by Sir; a token is shown once and kept nowhere."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from orchestration.models import Agent, AuditEvent
from orchestration.services.agents import agent_of_token
from tests.factories import new_agent, new_project

TOKEN = re.compile(r'id="new-token"[^>]*>(csa_[\w-]+)<')


def make(client: Client, **rest: object) -> object:
    return client.post("/new-agent/", {"name": "coder", "scopes": ["observe", "execute"], **rest})


def token_of(answer: object) -> str:
    found = TOKEN.search(answer.content.decode())  # type: ignore[attr-defined]
    assert found is not None
    return found[1]


def test_token_is_shown_once_and_no_cache_keeps_it(sir: User, sir_client: Client) -> None:
    project = new_project("mine")
    answer = make(sir_client, projects=["mine"])
    assert answer.status_code == 200  # type: ignore[attr-defined]
    assert "no-store" in answer["Cache-Control"]  # type: ignore[index]
    token = token_of(answer)
    agent = agent_of_token(token)
    assert agent is not None
    assert (agent.name, agent.scopes) == ("coder", ["observe", "execute"])
    assert [one.pk for one in agent.projects.all()] == [project.pk]
    for path in ("/agents/", "/agents/coder/", "/new-agent/", "/audit/"):
        assert token.encode() not in sir_client.get(path).content, path
    assert token not in str([(row.before, row.after) for row in AuditEvent.objects.all()])


def test_form_sent_twice_makes_no_second_token(sir: User, sir_client: Client) -> None:
    token = token_of(make(sir_client))
    again = make(sir_client)
    assert again.status_code == 409  # type: ignore[attr-defined]
    assert b"csa_" not in again.content  # type: ignore[attr-defined]
    assert agent_of_token(token) is not None


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"name": "no spaces allowed"}, 422), ({"name": ""}, 422), ({"scopes": []}, 422),
        ({"scopes": ["everything"]}, 422), ({"projects": ["nowhere"]}, 404),
    ],
)  # fmt: skip
def test_bad_form_makes_nothing(
    sent: dict[str, object], status: int, sir: User, sir_client: Client
) -> None:
    assert make(sir_client, **sent).status_code == status  # type: ignore[attr-defined]
    assert not Agent.objects.exists()


def test_rotation_ends_the_old_token_and_a_repeat_ends_nothing(
    sir: User, sir_client: Client
) -> None:
    old = token_of(make(sir_client))
    hint = Agent.objects.get().token_hint
    answer = sir_client.post("/agents/coder/rotate/", {"hint": hint})
    new = token_of(answer)
    assert "no-store" in answer["Cache-Control"]
    assert agent_of_token(old) is None
    again = sir_client.post("/agents/coder/rotate/", {"hint": hint})
    assert again.status_code == 412
    assert agent_of_token(new) is not None


def test_revocation_asks_once_more_and_a_new_token_brings_the_agent_back(
    sir: User, sir_client: Client
) -> None:
    token = token_of(make(sir_client))
    assert b"Keep it" in sir_client.get("/agents/coder/revoke/").content
    assert agent_of_token(token) is not None
    sir_client.post("/agents/coder/revoke/")
    assert agent_of_token(token) is None
    assert b"Token revoked" in sir_client.get("/agents/coder/").content
    hint = Agent.objects.get().token_hint
    back = token_of(sir_client.post("/agents/coder/rotate/", {"hint": hint}))
    assert agent_of_token(back) is not None
    kinds = AuditEvent.objects.filter(kind__startswith="agent.").order_by("pk")
    assert list(kinds.values_list("kind", "actor")) == [
        ("agent.created", "human:sir"), ("agent.revoked", "human:sir"),
        ("agent.token_rotated", "human:sir"),
    ]  # fmt: skip


def test_scopes_and_projects_change_with_before_and_after(sir: User, sir_client: Client) -> None:
    new_project("mine")
    new_agent("coder", scopes=("observe",))
    url = "/agents/coder/change/"
    assert sir_client.post(url, {"scopes": ["plan"], "projects": ["mine"]}).status_code == 303
    event = AuditEvent.objects.get(kind="agent.changed")
    assert event.before == {"scopes": ["observe"], "projects": []}
    after = event.after or {}
    assert (after["scopes"], after["projects"]) == (["plan"], ["mine"])
    sir_client.post(url, {"scopes": ["plan"], "projects": ["mine"]})
    assert AuditEvent.objects.filter(kind="agent.changed").count() == 1
    assert sir_client.post(url, {"scopes": []}).status_code == 422


PATHS = ("/new-agent/", "/agents/coder/change/", "/agents/coder/rotate/", "/agents/coder/revoke/")


def test_viewer_and_anonymous_manage_nothing(viewer_client: Client, client: Client) -> None:
    agent = new_agent("coder")
    events = AuditEvent.objects.count()
    sent = {"name": "other", "scopes": ["observe"], "hint": agent.token_hint}
    for who in (viewer_client, client):
        assert {who.post(path, sent).status_code for path in PATHS} == {403}
    assert {viewer_client.get(path).status_code for path in PATHS} == {403}
    assert AuditEvent.objects.count() == events
    assert b"New agent" not in viewer_client.get("/agents/").content


def test_forms_need_their_token_against_forgery(sir: User) -> None:
    new_agent("coder")
    client = Client(enforce_csrf_checks=True)
    client.force_login(sir)
    assert {client.post(path, {"name": "x", "scopes": ["plan"]}).status_code for path in PATHS} == {
        403
    }
    assert Agent.objects.get().revoked_at is None
