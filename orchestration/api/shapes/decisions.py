"""Rows of Sir's inbox as the API shows them, in the reader's language."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Self

from orchestration.api.shapes.base import Shape
from orchestration.models import Decision
from orchestration.words import consequence_text, verdict_text


class Words(Shape):
    """A text by code: stable code and parameters, and the words in the reader's language."""

    code: str
    params: dict[str, Any]
    text: str


class OptionShape(Shape):
    """One verdict of a decision, and what it would do."""

    verdict: str
    label: Words
    consequences: list[Words]
    requires_reason: bool
    destructive: bool


class ImpactShape(Shape):
    """A task behind a decision. `effect`: freed when it can go on, to_reverify when it is done."""

    task: str
    step_key: str
    title: str
    status: str
    effect: str


class DecisionShape(Shape):
    """A row of the inbox. Send `version` and `digest` back with the verdict."""

    id: str
    kind: str
    priority: int
    is_p0: bool
    status: str
    version: int
    digest: str
    project: str
    project_slug: str
    task: str | None
    task_key: str | None
    title: str
    question: str
    content: dict[str, Any]
    options: list[OptionShape]
    evidence: list[Any]
    impact: list[ImpactShape]
    blocked_tasks: int
    deadline: datetime | None
    on_expiry: dict[str, Any] | None
    created_at: datetime
    decided_by: str | None
    decided_at: datetime | None
    verdict: str | None
    reason: str
    payload: dict[str, Any]
    closed_reason: str

    @classmethod
    def of_decision(
        cls,
        row: Decision,
        *,
        blocked_tasks: int,
        impact: list[ImpactShape] | None = None,
        **more: Any,
    ) -> Self:
        """Shape a decision whose project, task and decider are loaded."""
        task = row.task
        if task is not None:
            task.project = row.project
        decider = row.decided_by.get_username() if row.decided_by is not None else None
        return cls(
            id=str(row.pk),
            kind=row.kind,
            priority=row.priority,
            is_p0=row.is_p0,
            status=row.status,
            version=row.version,
            digest=row.digest,
            project=str(row.project_id),
            project_slug=row.project.slug,
            task=str(task.pk) if task is not None else None,
            task_key=str(task) if task is not None else None,
            title=row.title,
            question=row.question,
            content=row.content,
            options=[_option(option) for option in row.options],
            evidence=row.evidence,
            impact=impact or [],
            blocked_tasks=blocked_tasks,
            deadline=row.deadline,
            on_expiry=row.on_expiry,
            created_at=row.created_at,
            decided_by=decider or row.decided_by_policy or None,
            decided_at=row.decided_at,
            verdict=row.verdict or None,
            reason=row.reason,
            payload=row.payload,
            closed_reason=row.closed_reason,
            **more,
        )


def _option(option: dict[str, Any]) -> OptionShape:
    label = option["label"]
    return OptionShape(
        verdict=option["verdict"],
        label=Words(
            code=label["code"],
            params=label["params"],
            text=verdict_text(label["code"], label["params"]),
        ),
        consequences=[
            Words(
                code=one["code"],
                params=one["params"],
                text=consequence_text(one["code"], one["params"]),
            )
            for one in option["consequences"]
        ],
        requires_reason=option["requires_reason"],
        destructive=option["destructive"],
    )


class DecidedShape(DecisionShape):
    """A decision after a verdict. `repeat` marks the identical repeat of the standing one."""

    repeat: bool


class DecisionPage(Shape):
    """One page of decisions, newest first."""

    results: list[DecisionShape]
    next: str | None
    previous: str | None


class BulkItemShape(Shape):
    """What became of one item of a bulk verdict: the decision, or the problem it met."""

    id: str
    status: int
    decision: DecidedShape | None
    problem: dict[str, Any] | None


class BulkShape(Shape):
    """A result per item; some may be applied and others refused."""

    results: list[BulkItemShape]


class DecisionViewShape(Shape):
    """What one person has seen of a decision, and the words not yet sent."""

    decision: str
    seen_at: datetime | None
    draft: str
