"""Red lines that Sir refused: what asks for the same again is not put to him a second time.

A refusal stands for the whole lineage of its task, until Sir himself sends the root back to work.
Source: docs/decisions/0009-refused-red-lines.md, DESIGN section 9.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from django.db.models import Max, Q

from orchestration.contracts.plan import PlanStep
from orchestration.errors import Conflict
from orchestration.models import Decision, Task
from orchestration.rules.plan import step_words
from orchestration.rules.redlines import red_line_digest
from orchestration.seats.rules import FIXED_PLANS
from orchestration.states import DecisionKind, DecisionStatus

SENT_BACK = ("retry", "amend")
"""Verdicts on a fatal root after which a refused red line may be asked about again."""


def refusals_of(task: Task) -> Mapping[str, str]:
    """List the red lines refused in a task's lineage. Shape: Sir's newest reason by digest."""
    root_id = task.lineage_root_id
    lineage = Task.objects.filter(Q(pk=root_id) | Q(root=root_id))
    rows = Decision.objects.filter(
        task__in=lineage.values("pk"),
        kind=DecisionKind.WAITING_HUMAN.value,
        status=DecisionStatus.DECIDED.value,
        verdict="reject",
        content__reason="red_line",
    ).order_by("pk")
    found = list(rows.values_list("content__digest", "reason"))
    return dict(found)


def standing_refusals(task: Task) -> Mapping[str, str]:
    """List the refusals that nothing Sir said later lifts. Shape: as `refusals_of`."""
    found = refusals_of(task)
    return {} if not found else _since_sent_back(task, found)


def _since_sent_back(task: Task, found: Mapping[str, str]) -> Mapping[str, str]:
    root_id = task.lineage_root_id
    decided = Decision.objects.filter(status=DecisionStatus.DECIDED.value)
    sent_back = decided.filter(
        task=root_id, kind=DecisionKind.MAX_RETRIES.value, verdict__in=SENT_BACK
    ).aggregate(at=Max("decided_at"))["at"]
    if sent_back is None:
        return found
    later = decided.filter(
        decided_at__gt=sent_back, verdict="reject", content__digest__in=list(found)
    ).values_list("content__digest", flat=True)
    return {digest: found[digest] for digest in set(later)}


def refusal_of_texts(task: Task, texts: Sequence[str]) -> str | None:
    """Sir's reason where he refused these very texts in this lineage, else None."""
    digest = red_line_digest(texts, task.project.policy)
    return standing_refusals(task).get(digest) if digest else None


def step_texts(step: PlanStep) -> list[str]:
    """List what the red lines will read of a step once it is a task (`red_lines.task_texts`)."""
    fix = step.on_failure.fix if step.on_failure is not None else None
    told = [fix.description, fix.patch] if fix is not None else []
    commands = [" ".join(command.argv) for command in step.commands]
    return [*step_words(step), *commands, *(one for one in told if one)]


def refused_steps(task: Task, steps: Iterable[PlanStep]) -> list[str]:
    """Name each step that asks again for what Sir refused. Shape: findings for a planner."""
    refused = standing_refusals(task)
    if not refused:
        return []
    policy = task.project.policy
    asked = ((step.id, refused.get(red_line_digest(step_texts(step), policy))) for step in steps)
    return [
        f"step {key} crosses a red line that Sir refused: {reason}"
        for key, reason in asked
        if reason is not None
    ]


def require_not_refused(task: Task, texts: Sequence[str]) -> None:
    """Raise where Sir refused these very texts before. Errors: Conflict with his reason."""
    reason = refusal_of_texts(task, texts)
    if reason is not None:
        raise Conflict(f"Sir refused this red line before: {reason}", code="red_line_refused")


def comes_back_unchanged(task: Task) -> bool:
    """Whether planning again would bring a step back as it is: every plan above it is fixed."""
    step = task
    while step.parent is not None:
        if step.blueprint is None or step.blueprint.plan.backend not in FIXED_PLANS:
            return False
        step = step.parent
    return True
