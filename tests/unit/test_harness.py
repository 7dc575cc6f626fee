"""What Claude Code's hooks and Codex's lines are read into. CASES A-10."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestration.contracts.harness import read_claude_event, read_codex_lines
from orchestration.errors import Invalid

BASE = {
    "session_id": "abc123",
    "transcript_path": "abc123.jsonl",
    "cwd": "/srv/app",
    "permission_mode": "default",
    "tool_name": "Bash",
    "tool_use_id": "toolu_01ABC",
}
RUN = {"command": "go test ./...", "description": "Run the tests"}


def claude(name: str, **rest: Any) -> Any:
    return read_claude_event({**BASE, "hook_event_name": name, "tool_input": RUN, **rest})


def test_success_has_no_exit_code_and_is_a_success() -> None:
    answer = {"stdout": "ok  \tapp\t0.01s", "stderr": "", "interrupted": False, "isImage": False}
    call = claude("PostToolUse", tool_response=answer, duration_ms=1811).call()
    assert (call.tool, call.command, call.outcome) == ("Bash", "go test ./...", "ok")
    assert (call.exit_code, call.duration_ms, call.source) == (None, 1811, "harness")
    assert call.output_tail == "ok  \tapp\t0.01s"
    assert call.call_id == "toolu_01ABC"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("Exit code 3\n--- FAIL: TestX", 3),
        ("Command exited with non-zero status code 1", 1),
        ("Command failed with exit code 2", 2),
        ("Error: Exit code 127\nnot found", 127),
        ("The file does not exist", None),
        ("it printed: exit code 4", None),
    ],
)
def test_failure_is_another_event_with_the_code_in_its_text(error: str, code: int | None) -> None:
    call = claude("PostToolUseFailure", error=error, is_interrupt=False).call()
    assert (call.outcome, call.exit_code) == ("failed", code)
    assert call.output_tail == error


def test_interrupted_calls_say_so() -> None:
    stopped = claude("PostToolUseFailure", error="Request interrupted", is_interrupt=True).call()
    cut = claude("PostToolUse", tool_response={"stdout": "", "interrupted": True}).call()
    assert (stopped.outcome, cut.outcome) == ("interrupted", "interrupted")


def test_other_tools_are_named_by_what_they_touch() -> None:
    event = read_claude_event(
        {**BASE, "hook_event_name": "PostToolUse", "tool_name": "Write",
         "tool_input": {"file_path": "/srv/app/a.py", "content": "x"},
         "tool_response": {"filePath": "/srv/app/a.py", "success": True}}
    )  # fmt: skip
    assert (event.call().tool, event.call().command) == ("Write", "/srv/app/a.py")
    assert event.shell_command == ""


def test_what_a_later_version_adds_is_no_fault() -> None:
    assert (
        claude("PostToolUse", tool_response="done", effort={"level": "high"}).call().outcome == "ok"
    )


@pytest.mark.parametrize(
    "bad", [{}, [], {"hook_event_name": 3}, {"hook_event_name": "Stop", "stop_hook_active": "no"}]
)
def test_what_is_no_event_is_refused(bad: Any) -> None:
    with pytest.raises(Invalid):
        read_claude_event(bad)


def test_nul_never_reaches_the_database() -> None:
    call = claude("PostToolUse", tool_input={"command": "a\x00b"}, tool_response="\x00").call()
    assert "\x00" not in f"{call.command}{call.output_tail}"


def line(**event: Any) -> str:
    return json.dumps(event)


def item(kind: str, **rest: Any) -> str:
    return line(type="item.completed", item={"id": "item_1", "type": kind, **rest})


LINES = [
    line(type="thread.started", thread_id="th_1"),
    line(type="turn.started"),
    line(type="item.started", item={"id": "item_1", "type": "command_execution"}),
    item("command_execution", command="bash -lc 'go test ./...'", exit_code=3, status="failed",
         aggregated_output="--- FAIL"),
    item("agent_message", text="All tests pass."),
    item("file_change", status="completed", changes=[{"path": "a.go", "kind": "add"}]),
    item("mcp_tool_call", server="db", tool="query", arguments={"q": 1}, status="failed",
         error={"message": "refused"}),
    item("web_search", query="go fsm", action={"type": "search"}),
    item("command_execution", command="rm -rf /", status="declined"),
    line(type="turn.completed",
         usage={"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 9}),
]  # fmt: skip


def test_lines_of_codex_become_calls_turns_and_tokens() -> None:
    reading = read_codex_lines(LINES)
    assert [(one.tool, one.outcome, one.exit_code) for one in reading.calls] == [
        ("shell", "failed", 3),
        ("file_change", "ok", None),
        ("mcp db.query", "failed", None),
        ("web_search", "ok", None),
        ("shell", "interrupted", None),
    ]
    assert reading.calls[0].call_id == "th_1:item_1"
    assert reading.calls[1].command == "add a.go"
    assert reading.usage is not None
    assert (reading.turns, reading.usage.input_tokens, reading.usage.output_tokens) == (1, 100, 9)


def test_thread_that_is_open_already_names_the_calls() -> None:
    assert read_codex_lines(LINES[3:4], thread="th_0").calls[0].call_id == "th_0:item_1"


def test_unknown_usage_is_not_zero() -> None:
    assert read_codex_lines([line(type="turn.completed")]).usage is None


def test_every_bad_line_is_named() -> None:
    with pytest.raises(Invalid) as caught:
        read_codex_lines([LINES[0], "{", "[]", item("x"), line(type="item.completed")])
    assert [one["path"] for one in caught.value.errors] == ["events.1", "events.2", "events.4"]
