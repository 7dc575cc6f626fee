"""Faults of an uploaded file, each with its line and its place in the document."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dashboard.engine_texts import engine_words
from orchestration.errors import Fault

_LINED = re.compile(r"line (?P<line>\d+): (?P<said>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FaultLine:
    """One fault. Shape: `line` is empty where it is not known."""

    line: str
    path: str
    said: str


def fault_line(fault: Fault) -> FaultLine:
    """Take the line out of a fault's message."""
    found = _LINED.match(fault["message"])
    if found is None:
        return FaultLine("", fault["path"], engine_words(fault["message"]))
    return FaultLine(found["line"], fault["path"], engine_words(found["said"]))


def fault_text(fault: Mapping[str, str]) -> str:
    """One fault of a plan in a line: its place, if it has one, and what is wrong there."""
    path, said = fault.get("path", ""), engine_words(str(fault.get("message", "")))
    return f"{path}: {said}" if path else said
