"""What agents ask Sir about the stages of a workflow, and what he has answered.

Source: DESIGN section 11, FORMATS ("Test workflow").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestration.contracts.options import COMMANDS, QUESTION
from orchestration.models import Assignment, Decision, Task
from orchestration.rules.flow_stages import runs_tests
from orchestration.rules.test_guides import ticked_commands
from orchestration.seats.test_commands import SHOWN
from orchestration.services.work import Work
from orchestration.states import DecisionKind, DecisionStatus

ROUND = "clarification_round"
"""The reason in a decision's content: it is a round of questions."""
ANSWERS = ("answer", "approve")


def is_answered(task: Task) -> bool:
    """Whether Sir answered a question that was asked for a task."""
    rows = Decision.objects.filter(
        task=task, kind=DecisionKind.WAITING_HUMAN.value,
        status=DecisionStatus.DECIDED.value, verdict__in=ANSWERS,
        content__reason__in=[ROUND, QUESTION],
    )  # fmt: skip
    return rows.exists()


def question_content(
    work: Work, held: Assignment, task: Task, question: str, *, reason: str = QUESTION
) -> dict[str, Any]:
    """Shape what an agent's question to Sir shows and signs.

    In a test workflow the commands that it shows in backticks are part of it.
    """
    content: dict[str, Any] = {
        "reason": reason,
        "asked_by": held.worker,
        "asked_at": work.now.isoformat(),
        "description": task.description,
    }
    shown = ticked_commands(question) if runs_tests(task.role) else ()
    return content | {SHOWN: list(shown)} if shown else content


def about_of(content: Mapping[str, Any]) -> dict[str, str]:
    """Say for the card that only an approval lets the commands run that a question shows."""
    return {"about": COMMANDS} if content.get(SHOWN) else {}
