"""Everything about one task, read in a fixed number of queries.

Source: DESIGN section 14 (`expand=all`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestration.models import (
    Artifact,
    Assessment,
    Assignment,
    Blueprint,
    Comment,
    Decision,
    Defect,
    Deviation,
    Output,
    Plan,
    QAReview,
    Task,
    ToolCall,
    Verification,
)
from orchestration.selectors.inbox import count_blocked
from orchestration.selectors.tasks import TaskFacts, facts_of

MAX_CHILDREN = 1000
MAX_TOOL_CALLS = 1000


@dataclass(frozen=True, slots=True)
class Dossier:
    """A task with its rows, each oldest first. Shape: the newest 1,000 tool calls at most.

    `facts` holds those of the task and of its children, `blocked` how much waits behind a decision.
    """

    task: Task
    facts: Mapping[int, TaskFacts]
    blocked_by: Sequence[int]
    assessments: Sequence[Assessment]
    plans: Sequence[Plan]
    blueprint: Blueprint | None
    deviations: Sequence[Deviation]
    outputs: Sequence[Output]
    comments: Sequence[Comment]
    verifications: Sequence[Verification]
    reviews: Sequence[QAReview]
    defects: Sequence[Defect]
    artifacts: Sequence[Artifact]
    assignments: Sequence[Assignment]
    children: Sequence[Task]
    children_total: int
    decisions: Sequence[Decision]
    blocked: Mapping[int, int]
    tool_calls: Sequence[ToolCall]
    tool_calls_total: int


def read_dossier(task: Task) -> Dossier:
    """Read everything about a task whose project is loaded."""
    children = list(task.children.select_related("assignee").order_by("phase", "pk")[:MAX_CHILDREN])
    calls = ToolCall.objects.filter(assignment__task=task)
    newest_calls = list(calls.order_by("-pk")[:MAX_TOOL_CALLS])
    plans = task.plans.select_related("agent").prefetch_related("audits__agent").order_by("pk")
    related = task.decisions.select_related("project", "task__root", "decided_by")
    decisions = list(related.order_by("pk"))
    return Dossier(
        task=task,
        facts=facts_of(task.project, [task, *children]),
        blocked_by=list(task.blocked_by.order_by("pk").values_list("pk", flat=True)),
        assessments=list(task.assessments.select_related("agent").order_by("pk")),
        plans=list(plans),
        blueprint=task.blueprints.order_by("-number").first(),
        deviations=list(Deviation.objects.filter(blueprint__task=task).order_by("pk")),
        outputs=list(task.outputs.order_by("pk")),
        comments=list(task.comments.order_by("pk")),
        verifications=list(task.verifications.order_by("pk")),
        reviews=list(task.reviews.select_related("agent").order_by("pk")),
        defects=list(task.defects.order_by("pk")),
        artifacts=list(task.artifacts.order_by("pk")),
        assignments=list(task.assignments.select_related("agent").order_by("pk")),
        children=children,
        children_total=task.children.count(),
        decisions=decisions,
        blocked=count_blocked(decisions),
        tool_calls=newest_calls[::-1],
        tool_calls_total=calls.count(),
    )
