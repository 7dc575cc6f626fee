"""A task with everything about it: the answer to `?expand=all`."""

from __future__ import annotations

from typing import Any, Self

from pydantic import RootModel

from orchestration.api.shapes.decisions import DecisionShape
from orchestration.api.shapes.method import (
    AssessmentShape,
    BlueprintShape,
    DefectShape,
    DeviationShape,
    PlanShape,
    ReviewShape,
    VerificationShape,
)
from orchestration.api.shapes.tasks import TaskShape
from orchestration.api.shapes.work import (
    ArtifactShape,
    AssignmentShape,
    CommentShape,
    OutputShape,
    ToolCallShape,
)
from orchestration.selectors.documents import Dossier
from orchestration.states import CommentType


class DossierShape(TaskShape):
    """A task with all that belongs to it. Shape: at most 1,000 children and 1,000 tool calls."""

    specification: str
    failure_context: list[Any]
    blocked_by: list[str]
    assessments: list[AssessmentShape]
    plans: list[PlanShape]
    blueprint: BlueprintShape | None
    deviations: list[DeviationShape]
    outputs: list[OutputShape]
    comments: list[CommentShape]
    observations: list[CommentShape]
    assertions: list[Any]
    verifications: list[VerificationShape]
    marks: list[Any]
    reviews: list[ReviewShape]
    defects: list[DefectShape]
    artifacts: list[ArtifactShape]
    assignments: list[AssignmentShape]
    children: list[TaskShape]
    children_total: int
    decisions: list[DecisionShape]
    tool_calls: list[ToolCallShape]
    tool_calls_total: int

    @classmethod
    def of_dossier(cls, held: Dossier) -> Self:
        """Shape a loaded dossier."""
        task, facts = held.task, held.facts
        comments = [CommentShape.of(row) for row in held.comments]
        return cls.of_task(
            task,
            facts[task.pk],
            specification=task.specification,
            failure_context=task.failure_context,
            blocked_by=[str(pk) for pk in held.blocked_by],
            assessments=[AssessmentShape.of(row) for row in held.assessments],
            plans=[PlanShape.of(row) for row in held.plans],
            blueprint=BlueprintShape.of(held.blueprint) if held.blueprint else None,
            deviations=[DeviationShape.of(row) for row in held.deviations],
            outputs=[OutputShape.of(row) for row in held.outputs],
            comments=comments,
            observations=[one for one in comments if one.comment_type == CommentType.OBSERVATION],
            assertions=_flat(held, "assertions"),
            verifications=[VerificationShape.of(row) for row in held.verifications],
            marks=_flat(held, "marks"),
            reviews=[ReviewShape.of(row) for row in held.reviews],
            defects=[DefectShape.of(row) for row in held.defects],
            artifacts=[ArtifactShape.of(row) for row in held.artifacts],
            assignments=[AssignmentShape.of(row) for row in held.assignments],
            children=[TaskShape.of_task(row, facts[row.pk]) for row in held.children],
            children_total=held.children_total,
            decisions=[
                DecisionShape.of_decision(row, blocked_tasks=held.blocked[row.pk])
                for row in held.decisions
            ],
            tool_calls=[ToolCallShape.of(row) for row in held.tool_calls],
            tool_calls_total=held.tool_calls_total,
        )


def _flat(held: Dossier, name: str) -> list[Any]:
    """List the assertions or marks of all outputs, each with the output that it is about."""
    return [
        {**one, "output": str(output.pk)} if isinstance(one, dict) else one
        for output in held.outputs
        for one in getattr(output, name)
    ]


class TaskAnswer(RootModel[TaskShape | DossierShape]):
    """A task, or with `?expand=all` the task with everything about it."""
