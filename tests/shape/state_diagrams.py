"""Draw docs/states.md from the tables in orchestration/states.py.

`python -m tests.shape.state_diagrams` writes the file; a test compares it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from orchestration.states import (
    ASSIGNMENT_MOVES,
    CONVERSATION_MOVES,
    DECISION_MOVES,
    DEFECT_MOVES,
    HANDSHAKE_MOVES,
    MASTER_VIEW,
    PLAN_MOVES,
    PROJECT_MOVES,
    TASK_MOVES,
)
from tests.shape.sources import ROOT

TARGET = ROOT / "docs" / "states.md"
START = "[*]"
MACHINES: tuple[tuple[str, str, str, Mapping[Any, frozenset[Any]]], ...] = (
    (
        "Task",
        "pending",
        "Every row on the board: a root of the master list, a step of a plan, a message.",
        TASK_MOVES,
    ),
    (
        "Project",
        "active",
        "A workspace with one master task list. Archiving cancels what has not ended; in safe stop "
        "the tasks stay as they were found.",
        PROJECT_MOVES,
    ),
    (
        "Assignment",
        "queued",
        "One piece of work in one seat. Back to `queued` means released, under a new token.",
        ASSIGNMENT_MOVES,
    ),
    (
        "Plan",
        "draft",
        "One revision of a plan. `rejected` to `approved` is Sir's signed override.",
        PLAN_MOVES,
    ),
    (
        "Defect",
        "open",
        "A graded finding of QA. Its severity decides who approves the fix.",
        DEFECT_MOVES,
    ),
    (
        "Decision",
        "open",
        "A row of Sir's inbox.",
        DECISION_MOVES,
    ),
    (
        "Handshake",
        "awaiting_spawner",
        "An executor's intent, confirmed before it starts. It begins with whoever has to answer.",
        HANDSHAKE_MOVES,
    ),
    (
        "Conversation",
        "open",
        "Mail that belongs together. A query closes with its reply, a negotiation with its result.",
        CONVERSATION_MOVES,
    ),
)


def draw_states() -> str:
    """Write the whole page."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield "# States"
    yield ""
    yield "Generated from `orchestration/states.py` by `python -m tests.shape.state_diagrams`;"
    yield "a test fails when they differ. Nothing but one `move_…` function a machine"
    yield "(`orchestration/services/moves.py`) sets a state, and each move writes an audit event."
    for name, first, words, moves in MACHINES:
        yield from ("", f"## {name}", "", words, "", "```mermaid", "stateDiagram-v2")
        yield f"    {START} --> {first}"
        for state, targets in moves.items():
            for target in moves:
                if target in targets:
                    yield f"    {state} --> {target}"
            if not targets:
                yield f"    {state} --> {START}"
        yield "```"
    yield from ("", "## The master list's words", "")
    yield from ("| task | master list |", "|---|---|")
    for state, word in MASTER_VIEW.items():
        yield f"| `{state}` | {word} |"


def main() -> int:
    """Write the page."""
    TARGET.write_text(draw_states(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
