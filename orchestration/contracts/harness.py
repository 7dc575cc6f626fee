"""What the harnesses of agents report: Claude Code's hook events and Codex's `exec --json` lines.

Both are read as they are sent; what a later version adds is kept out of the way, never refused.
Claude Code tells no exit code of a success: a failure is another event with the code in its text.
Source: DESIGN sections 8 and 14; the documentation of both tools.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, StrictBool, StrictInt, StrictStr, ValidationError

from orchestration.contracts.documents import Document
from orchestration.contracts.results import MOST_COUNTED, ROW_LIMIT, TAIL_CHARACTERS, ToolCallInput
from orchestration.errors import Fault, Invalid

PRE_TOOL_USE, POST_TOOL_USE = "PreToolUse", "PostToolUse"
POST_TOOL_USE_FAILURE, STOP = "PostToolUseFailure", "Stop"
MAX_LINES = 2_000
COMMAND_CHARACTERS = 8_000
_EXIT_CODE = re.compile(
    r"\A\s*(?:Error:\s*)?(?:Command (?:failed|exited) with )?"
    r"(?:non-zero status code|exit code|exit)[:\s]+(-?\d{1,9})\b",
    re.IGNORECASE,
)
_NAMED_INPUTS = ("command", "file_path", "notebook_path", "path", "url", "query", "pattern",
                 "description", "prompt")  # fmt: skip
"""Fields of a tool's input that say what it was called for, the most telling first."""


_CODEX_INPUTS = ("command", "changes", "server", "tool", "arguments", "query")


class ClaudeEvent(Document):
    """One hook event of Claude Code. Fields that an event lacks are empty."""

    hook_event_name: Annotated[StrictStr, Field(min_length=1, max_length=60)]
    session_id: Annotated[StrictStr, Field(max_length=200)] = ""
    tool_name: Annotated[StrictStr, Field(max_length=300)] = ""
    tool_input: Any = None
    tool_response: Any = None
    tool_use_id: Annotated[StrictStr, Field(max_length=200)] = ""
    error: Any = None
    is_interrupt: StrictBool = False
    stop_hook_active: StrictBool = False
    duration_ms: Any = None

    @property
    def command(self) -> str:
        """What the tool was called with, in one line: its command, file, address or query."""
        return _telling(self.tool_input)

    @property
    def shell_command(self) -> str:
        """The command line of a call that runs one, else nothing."""
        given = self.tool_input.get("command") if isinstance(self.tool_input, Mapping) else None
        return given if isinstance(given, str) else ""

    def call(self) -> ToolCallInput:
        """Read a finished call into a record of it. Errors: Invalid without a tool's name."""
        if not self.tool_name:
            raise _fault("tool_name", "is missing")
        outcome, code, tail = self._outcome()
        return ToolCallInput(
            tool=self.tool_name[:120],
            command=self.command or None,
            exit_code=code,
            outcome=outcome,
            output_tail=_clean(tail),
            duration_ms=_duration(self.duration_ms),
            source="harness",
            call_id=self.tool_use_id,
            input_digest=_digest(self.tool_input),
        )

    def _outcome(self) -> tuple[Any, int | None, str]:
        if self.hook_event_name == POST_TOOL_USE_FAILURE:
            text = _text(self.error)
            found = _EXIT_CODE.match(text)
            code = int(found[1]) if found is not None and abs(int(found[1])) <= ROW_LIMIT else None
            return ("interrupted" if self.is_interrupt else "failed"), code, text
        answer = self.tool_response
        if isinstance(answer, Mapping):
            known = [answer.get("stdout"), answer.get("stderr"), answer.get("content")]
            text = "\n".join(_text(one) for one in known if one)
            if answer.get("interrupted") is True:
                return "interrupted", None, text
            return "ok", None, text or _text(answer)
        return "ok", None, _text(answer)


def read_claude_event(data: Any) -> ClaudeEvent:
    """Read one hook event. Errors: Invalid listing every fault."""
    if not isinstance(data, Mapping):
        raise _fault("", "must be an object")
    try:
        return ClaudeEvent.model_validate(_storable(data))
    except ValidationError as error:
        raise Invalid("This is no hook event.", errors=_faults(error)) from error


class CodexUsage(Document):
    """What a turn of Codex used. Units: tokens."""

    input_tokens: Annotated[StrictInt, Field(ge=0, le=MOST_COUNTED)] = 0
    output_tokens: Annotated[StrictInt, Field(ge=0, le=MOST_COUNTED)] = 0


@dataclass(frozen=True, slots=True)
class CodexReading:
    """What some lines tell. Shape: `thread` is empty where no line opens one; `turns` ended."""

    calls: tuple[ToolCallInput, ...]
    turns: int
    usage: CodexUsage | None
    thread: str


def read_codex_lines(lines: Sequence[Any], *, thread: str = "") -> CodexReading:
    """Read lines of `codex exec --json`, as text or parsed; `thread` is the one already open.

    Errors: Invalid naming every line that is none.
    """
    if len(lines) > MAX_LINES:
        raise _fault("events", f"at most {MAX_LINES} lines at a time")
    calls: list[ToolCallInput] = []
    faults: list[Fault] = []
    turns, tokens_in, tokens_out, is_known = 0, 0, 0, False
    for at, line in enumerate(lines):
        try:
            event = _codex_event(line)
            kind = event["type"]
            if kind == "thread.started":
                thread = str(event.get("thread_id", ""))[:100]
            elif kind == "turn.completed":
                turns += 1
                used = event.get("usage")
                if isinstance(used, Mapping):
                    read = CodexUsage.model_validate(used)
                    tokens_in += read.input_tokens
                    tokens_out += read.output_tokens
                    is_known = True
            elif kind == "turn.failed":
                turns += 1
            elif kind == "item.completed":
                call = _codex_call(event.get("item"), thread)
                calls += [call] if call is not None else []
        except (ValueError, ValidationError) as error:
            faults.append(Fault(path=f"events.{at}", message=_first_line(error)))
    if faults:
        raise Invalid("These are no lines of `codex exec --json`.", errors=faults)
    tokens_in, tokens_out = min(tokens_in, MOST_COUNTED), min(tokens_out, MOST_COUNTED)
    usage = CodexUsage(input_tokens=tokens_in, output_tokens=tokens_out) if is_known else None
    return CodexReading(tuple(calls), turns, usage, thread)


def _codex_event(line: Any) -> Mapping[str, Any]:
    try:
        event = _storable(json.loads(line) if isinstance(line, str) else line)
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    if not isinstance(event, Mapping) or not isinstance(event.get("type"), str):
        raise ValueError("must be an object with a 'type'")
    return event


def _codex_call(item: Any, thread: str) -> ToolCallInput | None:
    """Read a completed item; messages, reasoning and lists are no tool calls."""
    if not isinstance(item, Mapping) or not isinstance(item.get("type"), str):
        raise ValueError("an item needs a 'type'")
    kind = item["type"]
    if kind == "command_execution":
        tool, command, tail = "shell", _text(item.get("command")), item.get("aggregated_output")
    elif kind == "file_change":
        changes = [one for one in item.get("changes") or () if isinstance(one, Mapping)]
        paths = [f"{one.get('kind', '')} {one.get('path', '')}".strip() for one in changes]
        tool, command, tail = kind, ", ".join(paths), ""
    elif kind == "mcp_tool_call":
        tool = f"mcp {item.get('server', '')}.{item.get('tool', '')}"
        command, tail = _text(item.get("arguments")), item.get("error") or item.get("result")
    elif kind == "web_search":
        tool, command, tail = kind, _text(item.get("query")), ""
    else:
        return None
    code = item.get("exit_code")
    code = code if isinstance(code, int) and not isinstance(code, bool) else None
    return ToolCallInput(
        tool=tool[:120],
        command=_clean(command)[:COMMAND_CHARACTERS] or None,
        exit_code=code if code is None or abs(code) <= ROW_LIMIT else None,
        outcome=_codex_outcome(str(item.get("status", "completed")), code),  # type: ignore[arg-type]
        output_tail=_clean(_text(tail)),
        source="harness",
        input_digest=_digest({name: item.get(name) for name in _CODEX_INPUTS}),
        call_id=f"{thread}:{item.get('id', '')}"[:200] if item.get("id") else "",
    )


def _codex_outcome(status: str, code: int | None) -> str:
    if status in ("declined", "in_progress"):
        return "interrupted"
    return "failed" if status == "failed" or code not in (None, 0) else "ok"


def _telling(value: Any) -> str:
    if isinstance(value, str):
        return _clean(value)[:COMMAND_CHARACTERS]
    if not isinstance(value, Mapping):
        return ""
    for name in _NAMED_INPUTS:
        if isinstance(value.get(name), str) and value[name].strip():
            return _clean(value[name])[:COMMAND_CHARACTERS]
    return _clean(_text(value))[:COMMAND_CHARACTERS] if value else ""


def _digest(value: Any) -> str:
    """Digest the whole input of a call: two edits of one file are two calls."""
    words = json.dumps(value, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(words.encode()).hexdigest()


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def _clean(text: str) -> str:
    """Keep the tail, without what no database stores in a text."""
    return _storable(text[-TAIL_CHARACTERS:])  # type: ignore[no-any-return]


def _storable(value: Any) -> Any:
    """Replace what no database stores: NUL, and halves of characters, wherever they stand.

    A call is judged by what is left: a red line is not lost for one broken character behind it.
    """
    if isinstance(value, str):
        return value.replace("\x00", "�").encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {_storable(key): _storable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(one) for one in value]
    return value


def _duration(value: Any) -> int | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 <= value <= ROW_LIMIT else None


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return error.errors(include_url=False)[0]["msg"]
    return str(error).partition("\n")[0][:200]


def _faults(error: ValidationError) -> list[Fault]:
    return [
        Fault(path=".".join(map(str, one["loc"])), message=one["msg"])
        for one in error.errors(include_url=False)
    ]


def _fault(path: str, message: str) -> Invalid:
    return Invalid(f"{path or 'The event'} {message}.", errors=[Fault(path=path, message=message)])
