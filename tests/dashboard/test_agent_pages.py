"""The agents' pages: who may work, what each holds, settings that can be copied as they are."""

from __future__ import annotations

import html
import json
import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from orchestration.models import Agent
from tests.factories import agent_step, child, claim, drive, new_agent, new_project, submit_plan


def settings_in(page: str, name: str) -> str:
    """The text of one copy-ready box."""
    found = re.search(rf'<pre[^>]*id="{name}"[^>]*>(.*?)</pre>', page, re.DOTALL)
    assert found is not None
    return html.unescape(found[1])


@pytest.fixture
def at_work(db: None) -> Agent:
    """An agent that holds a step."""
    project = new_project("held")
    agent = new_agent("alice", project=project, scopes=("observe", "execute"))
    root = submit_plan(project, agent_step("1"))
    drive(project)
    claim(child(root, "1"), agent)
    return agent


def test_list_says_scopes_and_lease(sir_client: Client, at_work: Agent) -> None:
    new_agent("idle")
    page = sir_client.get("/agents/").content.decode()
    assert "alice" in page
    assert "At work" in page
    assert "HELD-1 / 1" in page
    assert "Never seen" in page
    assert "every project" in page


def test_list_costs_the_same_for_many(sir_client: Client, at_work: Agent) -> None:
    sir_client.get("/agents/")
    with CaptureQueriesContext(connection) as few:
        sir_client.get("/agents/")
    for number in range(20):
        new_agent(f"more-{number}")
    with CaptureQueriesContext(connection) as many:
        sir_client.get("/agents/")
    assert len(many) == len(few)


def test_settings_of_claude_code_are_valid_and_name_this_very_address(
    sir_client: Client, at_work: Agent
) -> None:
    page = sir_client.get("/agents/alice/").content.decode()
    hooks = json.loads(settings_in(page, "set-claude"))["hooks"]
    assert set(hooks) == {"PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop"}
    for [entry] in hooks.values():
        [hook] = entry["hooks"]
        assert hook["type"] == "http"
        assert hook["url"] == "http://testserver/api/hooks/claude-code"
        assert hook["headers"] == {"Authorization": "Bearer $COUNTERSIGN_TOKEN"}
        assert hook["allowedEnvVars"] == ["COUNTERSIGN_TOKEN"]
    codex = settings_in(page, "set-codex")
    assert "http://testserver/api/assignments/$ASSIGNMENT/codex-events" in codex
    assert "codex exec --json" in codex


def test_no_page_shows_a_token(sir_client: Client, at_work: Agent) -> None:
    page = sir_client.get("/agents/alice/").content.decode()
    assert at_work.token_hash not in page
    assert not re.search(r"csa_[\w-]{20,}", page)


def test_unknown_agent_is_404_and_strangers_see_nothing(
    sir_client: Client, stranger_client: Client, viewer_client: Client, at_work: Agent
) -> None:
    assert sir_client.get("/agents/nobody/").status_code == 404
    assert viewer_client.get("/agents/alice/").status_code == 200
    assert stranger_client.get("/agents/").status_code == 403
