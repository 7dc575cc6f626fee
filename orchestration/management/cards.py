"""A decision of Sir's inbox as lines for a terminal. It is decided in the browser, not here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestration.models import Decision

TAIL_LINES = 15
DIFF_LINES = 80
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Control and direction characters: somebody's text may not drive the reader's terminal."""
ESCAPE = re.compile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[@-Z\\\\-_])")


def decision_card(decision: Decision, url: str) -> Iterator[str]:
    """Describe what Sir is asked: the question, what it rests on, the verdicts, and where."""
    content: Mapping[str, Any] = decision.content
    about = str(decision.task) if decision.task is not None else decision.project.slug
    yield ""
    yield f"── Sir's decision is needed: {decision.kind} of {about} ──"
    yield f"   {plain_text(decision.title)}"
    yield f"   {plain_text(decision.question)}"
    fix: Mapping[str, Any] = content.get("fix") or {}
    if content.get("description") != fix.get("description"):
        yield from _text(str(content.get("description") or ""))
    yield from _evidence(content.get("evidence") or {})
    yield from _fix(fix)
    for finding in content.get("findings", ()):
        yield from _text(f"- {finding}")
    for command in content.get("commands", ()):
        yield from _text(f"$ {_command(command)}")
    yield f"   Verdicts: {', '.join(_verdict(option) for option in decision.options)}"
    yield f"   Decide at {url}"
    yield ""


def _evidence(evidence: Mapping[str, Any]) -> Iterator[str]:
    if evidence.get("command"):
        code = evidence.get("exit_code")
        how = f"exit {code}" if code is not None else str(evidence.get("outcome"))
        yield from _text(f"$ {evidence['command']}  ({how})")
    tail = str(evidence.get("output_tail") or "").splitlines()
    for line in tail[-TAIL_LINES:]:
        yield f"   | {plain_text(line)}"


def _fix(fix: Mapping[str, Any]) -> Iterator[str]:
    if not fix:
        return
    yield from _text(f"Proposed fix: {fix.get('description') or ''}")
    diff = str(fix.get("patch") or "").splitlines()
    for line in diff[:DIFF_LINES]:
        yield f"   {plain_text(line)}"
    if len(diff) > DIFF_LINES:
        yield f"   … {len(diff) - DIFF_LINES} more lines; the page shows them all"
    for command in fix.get("commands", ()):
        yield from _text(f"$ {_command(command)}")


def _command(command: Mapping[str, Any]) -> str:
    argv: Sequence[object] = command.get("argv") or ()
    return " ".join(str(word) for word in argv)


def _verdict(option: Mapping[str, Any]) -> str:
    return (
        f"{option['verdict']} (with a reason)" if option["requires_reason"] else option["verdict"]
    )


def _text(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield f"   {plain_text(line)}"


def plain_text(text: str) -> str:
    """Make one line of somebody's text safe to print: no escape sequence, no control character.

    Of a line that was overwritten by carriage returns, the last state is kept.
    """
    return CONTROL.sub("\ufffd", ESCAPE.sub("", text.rstrip("\r").rpartition("\r")[2]))
