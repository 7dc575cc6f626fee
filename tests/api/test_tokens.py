"""Tokens: made once, stored as a digest, recognised in constant time, ended at once."""

from __future__ import annotations

import hashlib
from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from orchestration.errors import Conflict, Invalid, NotFound
from orchestration.models import Agent, AuditEvent, HumanToken, Project
from orchestration.services.agents import (
    AGENT_PREFIX,
    HUMAN_PREFIX,
    agent_of_token,
    create_agent,
    create_human_token,
    human_token_of,
    note_agent_seen,
    revoke_agent,
    revoke_human_token,
    rotate_agent_token,
)
from orchestration.services.work import SYSTEM
from tests.api.callers import events, facts, person


@pytest.mark.parametrize("name", ["worker", "张飞", "a.b-c_d@host", "x" * 120])
def test_agent_gets_a_token_that_is_stored_as_its_digest_only(db: None, name: str) -> None:
    agent, token = create_agent(name=name, scopes=["execute", "observe", "execute"], actor=SYSTEM)
    assert token.startswith(AGENT_PREFIX)
    assert len(token) > 40
    stored = Agent.objects.get(pk=agent.pk)
    assert stored.token_hash == hashlib.sha256(token.encode()).hexdigest()
    assert stored.scopes == ["observe", "execute"]
    assert token.startswith(stored.token_hint)
    assert len(stored.token_hint) == 12
    assert agent_of_token(token) == agent
    everything = str(list(AuditEvent.objects.values())) + str(Agent.objects.values())
    assert token not in everything
    assert token[12:] not in everything


@pytest.mark.parametrize(
    "name", ["", "a b", "a/b", "x" * 121, "a\n", "<b>", ".", "..", "Sir", "SYSTEM", "all"]
)
def test_name_that_is_none_is_refused(db: None, name: str) -> None:
    with pytest.raises(Invalid):
        create_agent(name=name, actor=SYSTEM)
    assert not Agent.objects.exists()


def test_taken_name_and_unknown_scopes_are_refused(db: None) -> None:
    create_agent(name="worker-Ä", actor=SYSTEM)
    for name in ("worker-Ä", "Worker-Ä", "worker-ä"):
        with pytest.raises(Conflict):
            create_agent(name=name, actor=SYSTEM)
    with pytest.raises(Invalid) as refused:
        create_agent(name="other", scopes=["execute", "rule", "fly"], actor=SYSTEM)
    assert [fault["path"] for fault in refused.value.errors] == ["scopes.1", "scopes.2"]
    with pytest.raises(Invalid):
        create_agent(name="other", scopes=[], actor=SYSTEM)


def test_revoked_agent_comes_back_with_a_new_token_only(db: None) -> None:
    agent, first = create_agent(name="worker", actor=SYSTEM)
    for _ in range(2):
        revoke_agent(agent_id=agent.pk, actor=SYSTEM)
    assert agent_of_token(first) is None
    assert len(events("agent.revoked")) == 1
    _, second = rotate_agent_token(agent_id=agent.pk, actor=SYSTEM)
    assert agent_of_token(second) == agent
    assert agent_of_token(first) is None
    for change in (revoke_agent, rotate_agent_token):
        with pytest.raises(NotFound):
            change(agent_id=agent.pk + 1, actor=SYSTEM)


def test_personal_token_is_its_persons_and_ends_with_them(db: None) -> None:
    user = person("sir", "sir")
    row, token = create_human_token(user_id=user.pk, can_decide=True, actor=SYSTEM)
    assert token.startswith(HUMAN_PREFIX)
    assert human_token_of(token) == row
    assert agent_of_token(token) is None
    assert HumanToken.objects.get().token_hash == hashlib.sha256(token.encode()).hexdigest()
    assert token not in str(list(AuditEvent.objects.values()))
    user.is_active = False
    user.save()
    assert human_token_of(token) is None
    user.is_active = True
    user.save()
    for _ in range(2):
        revoke_human_token(token_id=row.pk, actor=SYSTEM)
    assert human_token_of(token) is None
    assert len(events("human_token.revoked")) == 1
    with pytest.raises(NotFound):
        create_human_token(user_id=user.pk + 1, actor=SYSTEM)


def test_two_tokens_are_never_alike(db: None) -> None:
    tokens = {create_agent(name=f"a{number}", actor=SYSTEM)[1] for number in range(20)}
    assert len({token[4:12] for token in tokens}) == 20


def test_agents_presence_is_noted_twice_a_minute_at_most(db: None) -> None:
    agent, token = create_agent(name="worker", actor=SYSTEM)
    now = timezone.now()
    with time_machine.travel(now, tick=False):
        note_agent_seen(agent)
    with time_machine.travel(now + timedelta(seconds=29), tick=False):
        found = agent_of_token(token)
        assert found is not None
        note_agent_seen(found)
    assert Agent.objects.get().last_seen_at == now
    with time_machine.travel(now + timedelta(seconds=31), tick=False):
        note_agent_seen(agent)
    assert Agent.objects.get().last_seen_at == now + timedelta(seconds=31)


def test_agent_may_be_limited_to_projects(db: None, project: Project) -> None:
    agent, _ = create_agent(name="worker", projects=[project], actor=SYSTEM)
    assert list(agent.projects.all()) == [project]
    assert facts(events("agent.created")[0])["projects"] == ["demo"]
