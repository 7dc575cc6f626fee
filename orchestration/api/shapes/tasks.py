"""Tasks as the API shows them, and what intake answers."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Self

from pydantic import RootModel

from orchestration.api.shapes.base import Shape
from orchestration.contracts.master_list import MasterEntry
from orchestration.models import Assessment, Task
from orchestration.selectors.tasks import TaskFacts, master_status


class TaskShape(Shape):
    """A task. Shape: DESIGN section 14; `waiting_for_sir` counts its subtree's open decisions."""

    id: str
    key: str
    external_key: str
    kind: str
    project: str
    title: str
    description: str
    status: str
    master_status: str
    status_detail: str
    ready: bool
    not_ready_reason: str | None
    route: str | None
    complexity: str | None
    risk_level: str | None
    score: int | None
    depth: int
    phase: int
    step_key: str
    parent: str | None
    depends_on: list[str]
    role: str | None
    scope: list[Any]
    attempt: int
    failure_count: int
    estimated_steps: int | None
    actual_steps: int
    waiting_for_sir: int
    assignee: str | None
    last_outcome: str
    cancel_reason: str
    is_superseded: bool
    is_irreversible: bool
    self_initiated: bool
    expected_artifacts: list[Any]
    verify: list[Any]
    run: list[Any]
    writes: list[Any]
    risks: list[Any]
    facts: list[Any]
    constraints: list[Any]
    spec_id: str
    rank: int
    unexpected_blockers: int
    remaining_dependencies: int
    deadline: datetime | None
    version: int
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of_task(cls, task: Task, facts: TaskFacts, **more: Any) -> Self:
        """Shape a task whose project is loaded."""
        return cls(**_identity(task), **_method(task), **_work(task, facts), **more)


def _identity(task: Task) -> dict[str, Any]:
    return {
        "id": str(task.pk),
        "key": str(task),
        "external_key": task.external_key,
        "kind": task.kind,
        "project": str(task.project_id),
        "title": task.title,
        "description": task.description,
        "depth": task.depth,
        "phase": task.phase,
        "step_key": task.step_key,
        "parent": str(task.parent_id) if task.parent_id is not None else None,
        "spec_id": task.spec_id,
        "rank": task.rank,
        "version": task.version,
        "created_at": task.created_at,
        "updated_at": task.updated_at,
    }


def _method(task: Task) -> dict[str, Any]:
    return {
        "route": task.route or None,
        "complexity": task.complexity or None,
        "risk_level": task.risk_level or None,
        "score": task.score,
        "role": task.role or None,
        "scope": task.scope,
        "is_irreversible": task.is_irreversible,
        "self_initiated": task.is_self_initiated,
        "expected_artifacts": task.expected_artifacts,
        "verify": task.verify,
        "run": task.run,
        "writes": task.writes,
        "risks": task.risks,
        "facts": task.facts,
        "constraints": task.constraints,
    }


def _work(task: Task, facts: TaskFacts) -> dict[str, Any]:
    is_ready = task.status == "pending" and facts.reason is None
    return {
        "status": task.status,
        "master_status": master_status(task),
        "status_detail": task.status_detail,
        "ready": is_ready,
        "not_ready_reason": facts.reason.value if facts.reason is not None else None,
        "depends_on": [str(pk) for pk in facts.depends_on],
        "waiting_for_sir": facts.waiting_for_sir,
        "assignee": task.assignee.name if task.assignee is not None else None,
        "attempt": task.attempt,
        "failure_count": task.failure_count,
        "estimated_steps": task.estimated_steps,
        "actual_steps": task.actual_steps,
        "unexpected_blockers": task.unexpected_blockers,
        "remaining_dependencies": task.remaining_dependencies,
        "last_outcome": task.last_outcome,
        "cancel_reason": task.cancel_reason,
        "is_superseded": task.is_superseded,
        "deadline": task.deadline,
    }


class TaskPage(Shape):
    """One page of tasks."""

    results: list[TaskShape]
    next: str | None
    previous: str | None


class TaskList(RootModel[TaskPage | dict[str, MasterEntry]]):
    """One page of tasks, or with `?view=master` the whole master list by key."""


class SignalShape(Shape):
    """A signal of S0: its kind, the text that matched, and where. Units: offset in characters."""

    kind: str
    text: str
    offset: int


class IntakeAssessment(Shape):
    """What S0 decided about a message. Units: elapsed_us in microseconds."""

    stage: str
    outcome: str
    rule: str
    signals: list[SignalShape]
    elapsed_us: int


class IntakeShape(Shape):
    """What a message became. Shape: `assessment` is null for a slash command."""

    task: TaskShape
    assessment: IntakeAssessment | None

    @classmethod
    def of_intake(cls, task: Task, facts: TaskFacts, assessment: Assessment | None) -> Self:
        """Shape a task that was just taken in."""
        if assessment is None:
            return cls(task=TaskShape.of_task(task, facts), assessment=None)
        return cls(
            task=TaskShape.of_task(task, facts),
            assessment=IntakeAssessment(
                stage="S0",
                outcome=assessment.outcome,
                rule=assessment.rule,
                signals=[SignalShape(**signal) for signal in assessment.signals],
                elapsed_us=assessment.elapsed_us,
            ),
        )


class ImportShape(Shape):
    """What an import made: the outside keys with the tasks they became, and the list as it is."""

    tasks: list[TaskShape]
    master_task_list: dict[str, Any]


class ProgressShape(Shape):
    """What a progress report did."""

    task: TaskShape
    upgraded: bool
