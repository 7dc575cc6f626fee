"""Claude Code's hook events and Codex's lines: what they record and what they are answered."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from orchestration.models import Assignment, Decision, Project, Task, ToolCall
from orchestration.services.sweeping import sweep
from tests.api.callers import Caller, agent_client, problem
from tests.api.test_assignments_api import CLAIM, DONE, claim, here, lease
from tests.factories import decide, drive, fresh, open_decision_of

HOOK = "/api/hooks/claude-code"
TESTS = {"command": "pytest -q"}
HANDOFF = {"comment_type": "handoff", "body": "done; nothing open"}


def event(name: str, **rest: Any) -> dict[str, Any]:
    """A hook event as Claude Code sends it."""
    return {
        "session_id": "5f2c", "transcript_path": "5f2c.jsonl", "cwd": "/srv",
        "permission_mode": "default", "hook_event_name": name, **rest,
    }  # fmt: skip


def tool(name: str, use: str = "toolu_1", **rest: Any) -> dict[str, Any]:
    """An event about a call of Bash."""
    return event(name, **{"tool_name": "Bash", "tool_input": TESTS, "tool_use_id": use, **rest})


def answer(caller: Caller, body: dict[str, Any], **headers: str) -> dict[str, Any]:
    """Send an event. Return the body of the 200 that it always gets."""
    got = caller.send(HOOK, body, **headers)
    assert got.status_code == 200, got.content
    document: dict[str, Any] = got.json()
    return document


def denied(document: dict[str, Any]) -> str:
    """Why a call was denied, checked to be in the documented form."""
    [(name, output)] = document.items()
    assert name == "hookSpecificOutput"
    assert output["hookEventName"] == "PreToolUse"
    assert output["permissionDecision"] == "deny"
    reason: str = output["permissionDecisionReason"]
    return reason


@pytest.fixture
def work(agent: Caller, task: str) -> dict[str, Any]:
    """The lease of a direct task, as its holder got it."""
    held = claim(agent)
    assert agent.send(f"{task}/status", {"status": "working"}).status_code == 200
    return held


def test_finished_calls_become_tool_calls_of_the_current_assignment(
    agent: Caller, work: dict[str, Any], task: str
) -> None:
    ok = {"stdout": "3 passed", "stderr": "", "interrupted": False}
    assert answer(agent, tool("PreToolUse")) == {}
    assert answer(agent, tool("PostToolUse", tool_response=ok, duration_ms=40)) == {}
    failed = tool("PostToolUseFailure", "toolu_2", error="Exit code 1\nFAILED", is_interrupt=False)
    assert answer(agent, failed) == {}
    rows = agent.read(f"{task}?expand=all")["tool_calls"]
    shown = [(one["tool"], one["command"], one["outcome"], one["exit_code"]) for one in rows]
    assert shown == [("Bash", "pytest -q", "ok", None), ("Bash", "pytest -q", "failed", 1)]
    assert {one["source"] for one in rows} == {"harness"}
    assert {one["assignment"] for one in rows} == {work["id"]}
    row = Assignment.objects.get(pk=work["id"])
    assert row.has_progress
    assert row.harness == {"session": "5f2c"}


def test_event_that_comes_twice_is_recorded_once(agent: Caller, work: dict[str, Any]) -> None:
    for _ in range(2):
        answer(agent, tool("PostToolUse", tool_response="ok"))
    assert ToolCall.objects.count() == 1


def test_events_extend_the_lease(agent: Caller, work: dict[str, Any]) -> None:
    with time_machine.travel(timezone.now() + timedelta(minutes=10), tick=False):
        answer(agent, tool("PreToolUse"))
        row = Assignment.objects.get(pk=work["id"])
        assert row.lease_expires_at == timezone.now() + timedelta(minutes=15)


@pytest.mark.parametrize("name", ["SessionStart", "SubagentStop", "Notification", "SomethingNew"])
def test_other_events_are_taken_and_say_nothing(
    agent: Caller, work: dict[str, Any], name: str
) -> None:
    assert answer(agent, event(name, source="startup")) == {}


@pytest.mark.parametrize("name", ["PreToolUse", "PostToolUse", "Stop"])
def test_agent_that_holds_nothing_is_let_be(agent: Caller, project: Project, name: str) -> None:
    assert answer(agent, tool(name)) == {}
    assert not ToolCall.objects.exists()


def test_call_after_the_lease_ran_out_is_denied_before_any_sweep(
    agent: Caller, work: dict[str, Any]
) -> None:
    end = Assignment.objects.get(pk=work["id"]).lease_expires_at or timezone.now()
    with time_machine.travel(end + timedelta(hours=1)):
        assert "expired" in denied(answer(agent, tool("PreToolUse")))
    assert Assignment.objects.get(pk=work["id"]).lease_expires_at == end
    with time_machine.travel(end - timedelta(minutes=1)):
        assert answer(agent, tool("PreToolUse")) == {}


def test_calls_are_denied_when_the_lease_ran_out(agent: Caller, work: dict[str, Any]) -> None:
    with time_machine.travel(timezone.now() + timedelta(hours=1)):
        sweep()
        reason = denied(answer(agent, tool("PreToolUse")))
        assert "lease" in reason
        assert answer(agent, tool("PostToolUse", tool_response="late")) == {}
        assert answer(agent, event("Stop", stop_hook_active=False)) == {}
    assert not ToolCall.objects.exists()


def test_calls_are_denied_when_the_task_was_cancelled(
    agent: Caller, sir: Caller, task: str, work: dict[str, Any]
) -> None:
    assert sir.send(f"{task}/cancel", {"reason": "not needed"}).status_code == 200
    assert "not needed" in denied(answer(agent, tool("PreToolUse")))


def test_calls_are_allowed_again_under_a_new_lease(
    agent: Caller, sir: Caller, task: str, work: dict[str, Any]
) -> None:
    sir.send(f"{task}/cancel", {"reason": "not needed"})
    agent.send("/api/projects/demo/tasks", {"title": "next", "route": "direct"})
    claim(agent)
    assert answer(agent, tool("PreToolUse")) == {}


def test_work_that_was_handed_in_is_no_lost_lease(agent: Caller, work: dict[str, Any]) -> None:
    assert agent.send(here(work, "result"), lease(work, **DONE)).status_code == 200
    assert answer(agent, tool("PreToolUse")) == {}


def test_old_lease_token_is_denied_though_the_agent_holds_other_work(
    agent: Caller, work: dict[str, Any]
) -> None:
    assert answer(agent, tool("PreToolUse"), X_Lease_Token=work["lease_token"]) == {}
    assert denied(answer(agent, tool("PreToolUse"), X_Lease_Token="an old one"))


OWN = "curl -s -X POST http://testserver/api/assignments/claim -H 'Authorization: Bearer t' -d '{}'"


@pytest.mark.parametrize(
    ("command", "is_let_through"),
    [
        (OWN, True),
        ("curl http://testserver/api/projects/", True),
        (f"{OWN}; rm -rf build", False),
        (f"{OWN} && make", False),
        ("curl http://testserver/api/$(cat key)", False),
        ("curl -o main.py http://testserver/api/projects/", False),
        ("curl http://elsewhere/api/", False),
        ("curl http://testserver/api/ http://elsewhere/", False),
        ("wget http://testserver/api/", False),
        ("curl 'unbalanced", False),
    ],
)
def test_only_plain_calls_to_the_api_pass_without_a_lease(
    agent: Caller,
    sir: Caller,
    task: str,
    work: dict[str, Any],
    command: str,
    *,
    is_let_through: bool,
) -> None:
    sir.send(f"{task}/cancel", {"reason": "stop"})
    got = answer(agent, tool("PreToolUse", tool_input={"command": command}))
    assert (got == {}) is is_let_through


def test_stop_is_refused_once_and_names_what_is_missing(
    agent: Caller, work: dict[str, Any], task: str
) -> None:
    first = answer(agent, event("Stop", stop_hook_active=False))
    assert first["decision"] == "block"
    assert "output" in first["reason"]
    assert "hand-off" in first["reason"]
    assert f"{task}/outputs" in first["reason"]
    assert answer(agent, event("Stop", stop_hook_active=True)) == {}


def test_stop_is_refused_exactly_once_a_lease_whatever_the_harness_says_of_itself(
    agent: Caller, work: dict[str, Any], task: str
) -> None:
    assert answer(agent, event("Stop"))["decision"] == "block"
    for _ in range(3):
        assert answer(agent, event("Stop", stop_hook_active=False)) == {}
    agent.send(f"{task}/release")
    claim(agent)
    agent.send(f"{task}/status", {"status": "working"})
    assert answer(agent, event("Stop"))["decision"] == "block"
    assert answer(agent, event("Stop")) == {}


def test_stop_names_only_what_is_missing_and_passes_with_both(
    agent: Caller, work: dict[str, Any], task: str
) -> None:
    agent.send(f"{task}/outputs", {"title": "work", "content": "made"})
    reason = answer(agent, event("Stop", stop_hook_active=False))["reason"]
    assert "hand-off" in reason
    assert f"{task}/outputs" not in reason
    agent.send(f"{task}/release")
    claim(agent)
    agent.send(f"{task}/status", {"status": "working"})
    agent.send(f"{task}/outputs", {"title": "work", "content": "made"})
    agent.send(f"{task}/comments", HANDOFF)
    assert answer(agent, event("Stop", stop_hook_active=False)) == {}


def test_stop_of_a_reviewer_without_a_result_is_refused(
    project: Project, agent: Caller, task: str
) -> None:
    Project.objects.update(policy_json='{"seats": {"qa": ["external"]}}')
    held = claim(agent)
    agent.send(here(held, "result"), lease(held, **DONE))
    reviewer = agent_client(project, name="reviewer")
    review = claim(reviewer, "qa")
    assert f"/api/assignments/{review['id']}/result" in answer(reviewer, event("Stop"))["reason"]


def test_red_line_in_a_command_goes_to_sir_once_and_runs_only_as_approved(
    agent: Caller, project: Project, work: dict[str, Any]
) -> None:
    drop = tool("PreToolUse", tool_input={"command": "psql -c 'DROP TABLE orders'"})
    assert "red line" in denied(answer(agent, drop))
    assert "waits for Sir" in denied(answer(agent, tool("PreToolUse")))
    task = Task.objects.get()
    assert (task.status, task.risk_level) == ("waiting_human", "critical")
    assert Assignment.objects.get(pk=work["id"]).is_clock_stopped
    decision = open_decision_of(project, "waiting_human")
    assert decision.content["commands"] == [{"argv": ["psql -c 'DROP TABLE orders'"]}]
    decide(decision, "approve")
    assert fresh(task).status == "working"
    assert answer(agent, drop) == {}
    other = tool("PreToolUse", tool_input={"command": "psql -c 'DROP TABLE users'"})
    assert "red line" in denied(answer(agent, other))
    assert Decision.objects.count() == 2


def test_same_call_again_and_again_is_told_to_the_agent_and_shown_on_the_task(
    agent: Caller, work: dict[str, Any], task: str
) -> None:
    for number in range(9):
        body = tool("PostToolUseFailure", f"toolu_{number}", error="Exit code 1")
        assert answer(agent, body) == {}
    tenth = answer(agent, tool("PostToolUseFailure", "toolu_10", error="Exit code 1"))
    said = tenth["hookSpecificOutput"]
    assert said["hookEventName"] == "PostToolUseFailure"
    assert "10 times in a row" in said["additionalContext"]
    [risk] = agent.read(f"{task}?expand=all")["observations"]
    assert "10 times in a row" in risk["body"]


def test_too_many_calls_stop_the_session(
    agent: Caller, project: Project, work: dict[str, Any]
) -> None:
    Project.objects.update(policy_json='{"limits": {"tool_calls": 3}}')
    for number in range(2):
        answer(agent, tool("PostToolUse", f"toolu_{number}", tool_response="ok"))
    last = answer(agent, tool("PostToolUse", "toolu_9", tool_response="ok"))
    assert last["continue"] is False
    assert "3 tool calls" in last["stopReason"]
    assert denied(answer(agent, tool("PreToolUse")))


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"hook_event_name": ""}, "hook_event_name"),
        ({"tool_name": "Bash"}, "hook_event_name"),
        ([], ""),
    ],
)
def test_what_is_no_event_is_422(agent: Caller, project: Project, body: Any, path: str) -> None:
    assert problem(agent.send(HOOK, body), 422, "invalid")["errors"][0]["path"] == path


def test_only_agents_report(sir: Caller, project: Project) -> None:
    problem(sir.send(HOOK, tool("PreToolUse")), 403, "agents_only")
    assert Caller().post(HOOK, {}, format="json").status_code == 401


def lines(*, exit_code: int = 0, thread: str = "th_1") -> list[dict[str, Any]]:
    """A turn of Codex with one command."""
    run = {"id": "item_0", "type": "command_execution", "command": "bash -lc 'pytest -q'",
           "aggregated_output": "12 passed", "exit_code": exit_code,
           "status": "failed" if exit_code else "completed"}  # fmt: skip
    return [
        {"type": "thread.started", "thread_id": thread},
        {"type": "turn.started"},
        {"type": "item.completed", "item": run},
        {"type": "item.completed", "item": {"id": "item_1", "type": "agent_message", "text": "x"}},
        {"type": "turn.completed", "usage": {"input_tokens": 10, "output_tokens": 2}},
    ]


def as_text(events: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(one) + "\n" for one in events)


def send_lines(caller: Caller, work: dict[str, Any], text: str) -> Any:
    return caller.post(
        here(work, "codex-events"), text, content_type="application/x-ndjson",
        headers={"X-Lease-Token": work["lease_token"]},
    )  # fmt: skip


def test_lines_of_codex_are_taken_as_they_are(agent: Caller, work: dict[str, Any]) -> None:
    got = send_lines(agent, work, as_text(lines()))
    assert got.status_code == 201, got.content
    assert (got.json()["recorded"], got.json()["turns"]) == (1, 1)
    row = ToolCall.objects.get()
    assert (row.tool, row.exit_code, row.outcome, row.source) == ("shell", 0, "ok", "harness")
    usage = Assignment.objects.get(pk=work["id"]).usage
    assert usage == {"turns": 1, "input_tokens": 10, "output_tokens": 2}


def test_lines_of_codex_are_taken_in_json_too(agent: Caller, work: dict[str, Any]) -> None:
    body = lease(work, events=[*lines()[:2], json.dumps(lines()[2])])
    assert agent.send(here(work, "codex-events"), body).json()["recorded"] == 1


def test_same_lines_again_add_nothing(agent: Caller, work: dict[str, Any]) -> None:
    for _ in range(2):
        send_lines(agent, work, as_text(lines()))
    assert ToolCall.objects.count() == 1
    assert Assignment.objects.get(pk=work["id"]).usage["turns"] == 1
    send_lines(agent, work, as_text(lines(thread="th_2")))
    assert ToolCall.objects.count() == 2
    assert Assignment.objects.get(pk=work["id"]).usage["turns"] == 2


def test_lines_one_by_one_know_their_thread(agent: Caller, work: dict[str, Any]) -> None:
    for one in lines():
        assert send_lines(agent, work, as_text([one])).status_code == 201
    assert ToolCall.objects.get().call_id == "th_1:item_0"


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"a":' * 3_000, "{", "[]\n", '{"type": 3}\n', '{"type":"item.completed"}'],
)
def test_bad_lines_are_422(agent: Caller, work: dict[str, Any], text: str) -> None:
    found = problem(send_lines(agent, work, text), 422, "invalid")
    assert found["errors"][0]["path"] == "events.0"


def test_lines_need_the_lease(agent: Caller, work: dict[str, Any], project: Project) -> None:
    path = here(work, "codex-events")
    bare = agent.post(path, as_text(lines()), content_type="application/x-ndjson")
    assert problem(bare, 422, "invalid")["errors"][0]["path"] == "X-Lease-Token"
    wrong = work | {"lease_token": "old"}
    problem(send_lines(agent, wrong, as_text(lines())), 409, "wrong_lease_token")
    assert agent.post(path, "x", content_type="text/plain").status_code == 415
    stranger = agent_client(project, name="stranger")
    problem(send_lines(stranger, work, as_text(lines())), 409, "lease_lost")


@pytest.mark.parametrize("source", ["claude", "codex"])
def test_failed_command_contradicts_the_word_of_either_agent(
    agent: Caller, work: dict[str, Any], project: Project, source: str
) -> None:
    """CASES A-10: exit 3 on record, "all tests pass" in the hand-in."""
    if source == "claude":
        answer(agent, tool("PostToolUseFailure", error="Exit code 3\nE assert", is_interrupt=False))
    else:
        send_lines(agent, work, as_text(lines(exit_code=3)))
    said = {**DONE, "comment": "All tests pass."}
    assert agent.send(here(work, "result"), lease(work, **said)).json()["task_status"] == "review"
    drive(project)
    task = Task.objects.get()
    defect = task.defects.get()
    assert (defect.severity, defect.evidence["exit_code"]) == ("high", 3)
    assert defect.title.startswith("Contradicted")
    assert not task.artifacts.exists()
    assert agent.send(CLAIM, {"seats": ["fixer"]}).status_code == 200
