"""What the harness of an agent reports about its current assignment, and what it is answered.

Claude Code asks before a call and before it stops; both are answered in its documented form, always
with 200, because any other status would let the call pass. Codex only tells.
Source: DESIGN sections 8 ("Evidence grades", "Red lines") and 14; issue text of the hooks.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from orchestration.contracts.harness import (
    POST_TOOL_USE,
    POST_TOOL_USE_FAILURE,
    PRE_TOOL_USE,
    STOP,
    ClaudeEvent,
    CodexReading,
    read_codex_lines,
)
from orchestration.contracts.results import MOST_COUNTED, Usage
from orchestration.models import Agent, Assignment
from orchestration.services.budgets import note_usage, stop_over_budget
from orchestration.services.failures import STOPPED
from orchestration.services.holding import require_not_stopped
from orchestration.services.holds import Hold, lock_hold, require_hold
from orchestration.services.leases import extend_lease, same_token
from orchestration.services.lookups import lock_for_result
from orchestration.services.red_lines import ask_about_command
from orchestration.services.retrying import retry_on_deadlock
from orchestration.services.tool_calls import CallsRecorded, store_calls
from orchestration.services.verification import is_handed_in
from orchestration.services.work import Actor, Work, unit_of_work
from orchestration.states import TASK_HOLDS_SLOT, AssignmentStatus, Seat, TaskStatus

LOST = (AssignmentStatus.EXPIRED.value, AssignmentStatus.CANCELLED.value)
SESSION, THREAD, STOP_REFUSED = "session", "thread", "stop_refused"
"""Keys in `Assignment.harness`."""
_CURL_FLAGS = frozenset({"-s", "-S", "-f", "-i", "-sS", "-sf", "-fsS", "-sSf", "--silent",
                         "--show-error", "--fail", "--fail-with-body"})  # fmt: skip
_CURL_VALUES = frozenset({"-X", "--request", "-H", "--header", "-d", "--data", "--data-binary",
                          "--data-raw", "--json"})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends an event: the agent, its lease token where it sent one, and our own address."""

    agent: Agent
    lease_token: str = ""
    host: str = ""


@retry_on_deadlock
def take_claude_event(*, event: ClaudeEvent, caller: Caller, actor: Actor) -> dict[str, Any]:
    """Record a hook event under the caller's current assignment and answer it.

    Shape: the answer is a body in Claude Code's documented form; empty where nothing is said.
    Errors: Invalid for a finished call without a tool's name.
    """
    name = event.hook_event_name
    if name not in (PRE_TOOL_USE, POST_TOOL_USE, POST_TOOL_USE_FAILURE, STOP):
        return {}
    with unit_of_work(actor) as work:
        row = _current(caller)
        if row is None:
            lost = _lost(caller)
            return _answer_lost(event, caller, lost) if lost is not None else {}
        if name == PRE_TOOL_USE and _ran_out(work, row):
            return _answer_lost(event, caller, row)
        _note_session(work, row, event.session_id)
        if name == PRE_TOOL_USE:
            return _before_call(work, row, event, caller)
        if name == STOP:
            return _before_stop(work, row, event)
        return _after_call(store_calls(work, row, [event.call()]), name)


def _current(caller: Caller) -> Assignment | None:
    """Lock the assignment that an agent works on: the one of its lease token, else its newest."""
    rows = Assignment.objects.select_related("task").filter(
        agent=caller.agent, status=AssignmentStatus.LEASED.value
    )
    for found in rows.order_by("-leased_at", "-pk"):
        if caller.lease_token and not same_token(caller.lease_token, found.lease_token):
            continue
        row = lock_for_result(found)
        is_mine = row.agent_id == caller.agent.pk and row.status == AssignmentStatus.LEASED
        if is_mine and row.token == found.token:
            return row
    return None


def _ran_out(work: Work, row: Assignment) -> bool:
    """Whether a lease is over and no sweep has seen it yet; while Sir is asked it has no end."""
    return row.lease_expires_at is not None and row.lease_expires_at <= work.now


def _lost(caller: Caller) -> Assignment | None:
    """Find the lease that the caller had and lost: expired, cancelled or stopped by the engine.

    One that it gave back, or ended with its own report, is not lost. With a lease token that is no
    live one, the caller says itself which lease it means.
    """
    held = Assignment.objects.select_related("task__project").filter(
        agent=caller.agent, leased_at__isnull=False
    )
    last: Assignment | None = held.order_by("-leased_at", "-pk").first()
    if last is None:
        return None
    if caller.lease_token:
        return last
    was_stopped = isinstance(last.result, Mapping) and STOPPED in last.result
    return last if last.status in LOST or was_stopped else None


def _answer_lost(event: ClaudeEvent, caller: Caller, lost: Assignment) -> dict[str, Any]:
    if event.hook_event_name != PRE_TOOL_USE or is_own_call(event.shell_command, caller.host):
        return {}
    why = lost.error or ("expired" if lost.status == AssignmentStatus.LEASED else lost.status)
    return deny(
        f"The lease on {lost.task} is gone ({why}). Do not go on with it: whoever holds it now "
        "works there. Claim new work with POST /api/assignments/claim; such calls are let through."
    )


def is_own_call(command: str, host: str) -> bool:
    """Whether a command is one plain curl call to our own API, which checks leases itself."""
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    if not words or words[0] != "curl" or not host or set(command) & set("|;&`<>\n"):
        return False
    if "$(" in command:
        return False
    urls: list[str] = []
    rest = iter(words[1:])
    for word in rest:
        if word in _CURL_FLAGS:
            continue
        if word in _CURL_VALUES:
            if next(rest, "").startswith("@/"):
                return False
        elif word.startswith("-"):
            return False
        else:
            urls.append(word)
    parts = [urlsplit(url) for url in urls]
    return len(parts) == 1 and parts[0].netloc == host and parts[0].path.startswith("/api/")


def _note_session(work: Work, row: Assignment, session: str) -> None:
    known = dict(row.harness or {})
    if session and known.get(SESSION) != session:
        row.harness = known | {SESSION: session}
        work.touch(row, "harness")


def _before_call(work: Work, row: Assignment, event: ClaudeEvent, caller: Caller) -> dict[str, Any]:
    """Deny what may not be done now: nothing while Sir is asked, no red line without him."""
    task = row.task
    extend_lease(work, row)
    command = event.shell_command
    if task.status == TaskStatus.WAITING_HUMAN:
        if is_own_call(command, caller.host):
            return {}
        return deny(f"{task} waits for Sir ({task.status_detail}); do nothing until he answers.")
    why = ask_about_command(work, row, command) if command else ""
    return deny(why) if why else {}


def _after_call(done: CallsRecorded, name: str) -> dict[str, Any]:
    if done.is_stopped:
        why = f"Stopped after {done.total} tool calls; the assignment has ended."
        return {"continue": False, "stopReason": why}
    if done.warnings:
        text = f"{'; '.join(done.warnings)}. Do something else, or report what blocks you."
        return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}
    return {}


def _before_stop(work: Work, row: Assignment, event: ClaudeEvent) -> dict[str, Any]:
    """Refuse to stop, once a lease, while the work is not handed in."""
    extend_lease(work, row)
    known = dict(row.harness or {})
    # The row counts too: a harness that never says it goes on because of us would never end.
    if event.stop_hook_active or known.get(STOP_REFUSED) == row.token:
        return {}
    missing = _missing(row)
    if not missing:
        return {}
    row.harness = known | {STOP_REFUSED: row.token}
    work.touch(row, "harness")
    return {"decision": "block", "reason": missing}


def _missing(row: Assignment) -> str:
    task = row.task
    url = f"/api/projects/{task.project.slug}/tasks/{task.pk}"
    if row.seat != Seat.EXECUTOR:
        if task.status == TaskStatus.WAITING_HUMAN:
            return ""
        address = f"POST /api/assignments/{row.pk}/result"
        return f"The result of the seat {row.seat} is missing. Send it with {address} first."
    if task.status not in TASK_HOLDS_SLOT:
        return ""
    has_output, has_handoff = is_handed_in(row)
    parts = [] if has_output else [f"an output (POST {url}/outputs)"]
    if not has_handoff:
        parts.append(f'a hand-off (POST {url}/comments with "comment_type": "handoff")')
    if not parts:
        return ""
    return (
        f"{task} is not handed in: {' and '.join(parts)} missing. Hand it in and set the status to "
        f"review, or set failed, blocked or waiting_human with a detail (POST {url}/status)."
    )


def deny(reason: str) -> dict[str, Any]:
    """Deny a call in Claude Code's documented form."""
    return {
        "hookSpecificOutput": {
            "hookEventName": PRE_TOOL_USE,
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }
    }


@dataclass(frozen=True, slots=True)
class CodexRecorded:
    """What taking lines of Codex did. `turns` are the ones that these lines end."""

    calls: CallsRecorded
    turns: int


@retry_on_deadlock
def take_codex_lines(*, hold: Hold, lines: Sequence[Any], actor: Actor) -> CodexRecorded:
    """Record what lines of `codex exec --json` tell: tool calls, turns and tokens.

    The same lines again add nothing. Errors: LeaseLost; Invalid naming every line that is none.
    """
    with unit_of_work(actor) as work:
        row = lock_hold(hold)
        require_hold(row, hold)
        require_not_stopped(row.project)
        known = dict(row.harness or {})
        reading = read_codex_lines(lines, thread=str(known.get(THREAD, "")))
        if reading.thread != known.get(THREAD, ""):
            row.harness = known | {THREAD: reading.thread}
            work.touch(row, "harness")
        done = store_calls(work, row, reading.calls)
        is_repeat = bool(reading.calls) and not done.recorded
        if not is_repeat:
            note_usage(work, row, _added(row, reading))
        if not done.is_stopped:
            stop_over_budget(work, row)
    return CodexRecorded(done, 0 if is_repeat else reading.turns)


def _added(row: Assignment, reading: CodexReading) -> Usage | None:
    """Add what some turns used to what is known; what Codex does not tell stays unknown."""
    if not reading.turns:
        return None
    turns = int(row.usage.get("turns", 0)) + reading.turns
    figures: dict[str, int] = {"turns": min(turns, MOST_COUNTED)}
    if reading.usage is not None:
        for name in ("input_tokens", "output_tokens"):
            total = int(row.usage.get(name, 0)) + getattr(reading.usage, name)
            figures[name] = min(total, MOST_COUNTED)
    return Usage.model_validate(figures)
