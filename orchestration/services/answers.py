"""What Sir has answered about the stages of a workflow. Reads only.

Source: DESIGN section 11, FORMATS ("Test workflow").
"""

from __future__ import annotations

from orchestration.models import Decision, Task
from orchestration.states import DecisionKind, DecisionStatus

ROUND = "clarification_round"
"""The reason in a decision's content: it is a round of questions."""
ANSWERS = ("answer", "approve")


def is_answered(task: Task) -> bool:
    """Whether Sir answered a question that was asked for a task."""
    rows = Decision.objects.filter(
        task=task, kind=DecisionKind.WAITING_HUMAN.value,
        status=DecisionStatus.DECIDED.value, verdict__in=ANSWERS,
        content__reason__in=[ROUND, "question"],
    )  # fmt: skip
    return rows.exists()


def is_command_confirmed(task: Task, command: str) -> bool:
    """Whether Sir approved a question, anywhere in the task's tree, that shows this command."""
    rows = Decision.objects.filter(
        task__root_id=task.lineage_root_id, kind=DecisionKind.WAITING_HUMAN.value,
        status=DecisionStatus.DECIDED.value, verdict__in=ANSWERS,
    )  # fmt: skip
    return any(f"`{command}`" in question for question in rows.values_list("question", flat=True))
