"""What harnesses report with characters no database stores, or past every limit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestration.models import Assignment, Project, Task, ToolCall
from tests.api.callers import Caller, problem, session_client
from tests.api.test_assignments_api import here, lease
from tests.api.test_hooks_api import (
    HOOK,
    answer,
    as_text,
    denied,
    lines,
    send_lines,
    tool,
    work,
)
from tests.factories import decide, open_decision_of

pytestmark = pytest.mark.django_db
__all__ = ["work"]


def answer_raw(caller: Caller, body: dict[str, Any]) -> dict[str, Any]:
    """Send an event with every odd character escaped, as a harness may."""
    got = caller.post(HOOK, json.dumps(body), content_type="application/json")
    assert got.status_code == 200, got.content
    document: dict[str, Any] = got.json()
    return document


@pytest.mark.parametrize("noise", ["\ud800", "\x00"])
def test_red_line_is_not_lost_for_what_no_database_stores(
    agent: Caller, work: dict[str, Any], noise: str
) -> None:
    call = tool("PreToolUse", tool_input={"command": f"psql -c 'DROP TABLE orders' # {noise}"})
    assert "red line" in denied(answer_raw(agent, call))
    assert Task.objects.get().status == "waiting_human"
    done = tool("PostToolUse", tool_name=f"B{noise}", tool_response={"stdout": noise})
    answer_raw(agent, done)
    decide(open_decision_of(Project.objects.get(), "waiting_human"), "approve")
    answer_raw(agent, done)
    row = ToolCall.objects.latest("pk")
    assert noise not in row.tool + row.output_tail


def test_sir_sees_what_is_hidden_in_a_command(
    agent: Caller, project: Project, work: dict[str, Any]
) -> None:
    drop = "psql -c 'DROP TABLE orders' \u202e# tsil\u001b[8m\u200b"
    assert "red line" in denied(answer(agent, tool("PreToolUse", tool_input={"command": drop})))
    asked = open_decision_of(project, "waiting_human")
    page = session_client().get(f"/inbox/{asked.pk}/").content.decode()
    shown = page.split('<code class="argv">')[1].split("</code>")[0]
    assert "⟨U+202E⟩# tsil⟨U+001B⟩[8m⟨U+200B⟩" in shown
    assert "\u202e" not in shown


def test_noise_in_lines_of_codex_loses_no_batch(agent: Caller, work: dict[str, Any]) -> None:
    noisy = lines()
    noisy[1]["item"] = {**noisy[1].get("item", {}), "aggregated_output": "\ud800\x00"}
    assert send_lines(agent, work, as_text(noisy)).status_code == 201


def test_usage_is_counted_up_to_its_limit(agent: Caller, work: dict[str, Any]) -> None:
    most = {"input_tokens": 10**15, "output_tokens": 1}
    for thread in ("th_1", "th_2"):
        turn = [{**one, "usage": most} if "usage" in one else one for one in lines(thread=thread)]
        assert send_lines(agent, work, as_text(turn)).status_code == 201
    assert Assignment.objects.get(pk=work["id"]).usage["input_tokens"] == 10**15


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_time_outside_the_calendar_is_422(agent: Caller, work: dict[str, Any], at: str) -> None:
    call = {"tool": "x", "exit_code": 0, "at": at}
    found = problem(agent.send(here(work, "tool-calls"), lease(work, **call)), 422, "invalid")
    assert "at" in found["errors"][0]["path"]


@pytest.mark.parametrize("path", ["tool-calls", "log", "result"])
def test_half_a_character_as_a_key_is_422(agent: Caller, work: dict[str, Any], path: str) -> None:
    # Written out by hand: the test's client cannot write halves of characters as they are.
    body = json.dumps(lease(work, **{"\ud800": 1}))
    answered = agent.post(here(work, path), body, content_type="application/json")
    assert answered.status_code == 422


def test_edits_of_one_file_are_different_calls(agent: Caller, work: dict[str, Any]) -> None:
    def edit(number: int, new: str) -> dict[str, Any]:
        change = {"file_path": "a.py", "old_string": "x", "new_string": new}
        return answer(agent, tool("PostToolUse", f"e{number}", tool_name="Edit", tool_input=change))

    assert [edit(number, f"y{number}") for number in range(12)] == [{}] * 12
    same = [edit(number, "z") for number in range(12, 22)]
    assert "the same call 10 times in a row" in str(same[-1])
