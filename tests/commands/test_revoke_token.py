"""`revoke_token` ends a leaked token; the next request with it is refused."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from orchestration.services.agents import agent_of_token, create_human_token, human_token_of
from orchestration.services.work import SYSTEM
from tests.factories import new_sir

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    said = StringIO()
    call_command(*arguments, stdout=said)
    return said.getvalue().strip()


def test_an_agents_token_ends_and_a_rotated_one_takes_its_place() -> None:
    old = run("create_agent", "leaky", "--quiet")
    assert agent_of_token(old) is not None
    new = run("revoke_token", "leaky", "--rotate", "--quiet")
    assert agent_of_token(old) is None
    assert agent_of_token(new) is not None
    run("revoke_token", "leaky")
    assert agent_of_token(new) is None


def test_a_personal_token_is_found_by_how_it_begins() -> None:
    row, token = create_human_token(user_id=new_sir().pk, actor=SYSTEM, can_decide=True)
    assert human_token_of(token) is not None
    run("revoke_token", row.token_hint)
    assert human_token_of(token) is None


def test_an_unknown_name_is_one_clear_line() -> None:
    with pytest.raises(CommandError, match="No agent is called"):
        run("revoke_token", "nobody")
