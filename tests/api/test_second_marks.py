"""The second set of marks: what whoever delegated a task verified of it itself."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import translation

from orchestration.mark_words import mark_lines
from orchestration.models import Output, Project, ToolCall
from tests.api.callers import Caller, agent_client, problem, session_client
from tests.api.test_spawn import TASKS, do_work, spawn

PASSED = {"tool": "Bash", "command": "go test ./...", "exit_code": 0}
FAILED = {"tool": "Bash", "command": "go build ./...", "exit_code": 1}
READ = {"tool": "Read", "command": "cat main.go", "exit_code": 0}


@pytest.fixture
def helper(project: Project) -> Caller:
    """The agent that does what was delegated."""
    return agent_client(project, name="helper")


@pytest.fixture
def delegated(agent: Caller, helper: Caller, held: str) -> str:
    """The path of a child that was delegated and handed in."""
    path = f"{TASKS}/{spawn(agent, held).json()['id']}"
    assert do_work(helper, path).json()["status"] == "done"
    return path


def review(caller: Caller, path: str, *calls: dict[str, Any], **rest: Any) -> Any:
    body = {"comment_type": "review", "body": "I looked at it.", "tool_calls": list(calls)} | rest
    return caller.send(f"{path}/comments", body)


def shown(caller: Caller, path: str, language: str = "en") -> list[str]:
    [output] = caller.read(f"{path}?expand=all")["outputs"]
    with translation.override(language):
        return mark_lines(output["marks"])


def test_delegators_own_checks_are_a_second_set_of_marks(
    agent: Caller, helper: Caller, delegated: str
) -> None:
    answer = review(agent, delegated, PASSED, FAILED, READ)
    assert answer.status_code == 201, answer.content
    assert shown(helper, delegated) == [
        "[not verified] this rests on reasoning; no verifying command was run",
        "[agent verified: worker] tests pass (exit 0), command failed (exit 1): go build ./...",
    ]
    assert shown(helper, delegated, "zh-hans")[1].startswith("[agent 已验证: worker] 测试通过")
    [output] = helper.read(f"{delegated}?expand=all")["outputs"]
    [first, _] = [one for one in output["marks"] if one.get("by")]
    assert (first["by"], first["grade"]) == ("worker", "self_reported")
    assert first["comment"] == answer.json()["id"]
    assert first["label"] == "[agent verified: worker]"
    page = session_client().get(delegated.removeprefix("/api") + "/").content.decode()
    assert "[agent verified: worker]" in page


def test_calls_are_recorded_under_the_delegators_own_lease(
    agent: Caller, delegated: str, held: str
) -> None:
    review(agent, delegated, PASSED)
    call = ToolCall.objects.get()
    assert (str(call.assignment.task_id), call.source) == (held.rpartition("/")[2], "agent")


def test_word_of_a_harness_in_a_review_is_the_agents_own(agent: Caller, delegated: str) -> None:
    review(agent, delegated, {**PASSED, "source": "harness"})
    assert {one["grade"] for one in Output.objects.get().marks if one.get("by")} == {
        "self_reported"
    }


def test_call_that_its_harness_recorded_before_stays_observed(
    agent: Caller, delegated: str
) -> None:
    event = {
        "hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "Bash",
        "tool_input": {"command": "go test ./..."}, "tool_use_id": "toolu_1",
        "tool_response": {"stdout": "ok"},
    }  # fmt: skip
    assert agent.send("/api/hooks/claude-code", event).status_code == 200
    review(agent, delegated, {**PASSED, "call_id": "toolu_1"})
    assert ToolCall.objects.count() == 1
    assert {one["grade"] for one in Output.objects.get().marks if one.get("by")} == {"observed"}


def test_newest_review_of_the_delegator_stands(agent: Caller, delegated: str) -> None:
    review(agent, delegated, FAILED)
    review(agent, delegated, PASSED)
    assert shown(agent, delegated)[1:] == ["[agent verified: worker] tests pass (exit 0)"]


def test_reading_a_file_earns_no_mark(agent: Caller, delegated: str) -> None:
    assert review(agent, delegated, READ).status_code == 201
    assert len(shown(agent, delegated)) == 1


def test_others_bring_no_tool_calls(
    project: Project, sir: Caller, helper: Caller, delegated: str
) -> None:
    stranger = agent_client(project, name="stranger")
    for caller in (helper, stranger, sir):
        problem(review(caller, delegated, PASSED), 403, "not_the_delegator")
    assert not ToolCall.objects.exists()
    outsider = agent_client(name="outsider", scopes=("observe",))
    assert review(outsider, delegated, PASSED).status_code == 403


def test_who_did_the_work_does_not_verify_it(agent: Caller, held: str) -> None:
    path = f"{TASKS}/{spawn(agent, held).json()['id']}"
    do_work(agent, path)
    problem(review(agent, path, PASSED), 403, "own_work")


def test_after_the_delegators_lease_its_review_brings_nothing(
    agent: Caller, delegated: str, held: str
) -> None:
    assert agent.send(f"{held}/release", {"reason": "enough"}).status_code == 200
    problem(review(agent, delegated, PASSED), 409, "lease_lost")


def test_what_was_not_delegated_has_no_second_set(agent: Caller, held: str) -> None:
    problem(review(agent, held, PASSED), 403, "not_the_delegator")


def test_nothing_to_review_is_refused(agent: Caller, held: str) -> None:
    path = f"{TASKS}/{spawn(agent, held).json()['id']}"
    problem(review(agent, path, PASSED), 409, "missing_output")


def test_only_a_review_comes_with_calls(agent: Caller, delegated: str) -> None:
    problem(review(agent, delegated, PASSED, comment_type="general"), 422, "invalid")
