"""Reads for the project board: figures of S0 to S3, work left, risks and observations.

Query counts do not grow with the number of steps; the master list is in `selectors/master.py`.
Source: UI.md section 5.4, DESIGN section 5 (traffic).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet, Sum

from orchestration.models import Assessment, Assignment, Comment, Decision, Project, Task
from orchestration.policy import Backend
from orchestration.states import (
    AssignmentStatus,
    CommentType,
    DecisionKind,
    DecisionStatus,
    ProjectStatus,
    Route,
    TaskKind,
    TaskStatus,
)

ESTIMATED_SHARE = 0.8
T = TaskStatus
CLOSED = (T.DONE.value, T.CANCELLED.value)
AT_WORK = (T.CLAIMED.value, T.WORKING.value, T.REVIEW.value)


def list_project_names() -> list[Project]:
    """List the projects for the navigation, oldest first, without those archived."""
    return list(
        Project.objects.exclude(status=ProjectStatus.ARCHIVED.value)
        .only("slug", "name", "status")
        .order_by("pk")
    )


@dataclass(frozen=True, slots=True)
class Traffic:
    """How much method the messages of a project got. Shape: counts of root tasks and messages."""

    messages: int
    direct_by_rule: int
    scored: int
    direct_by_score: int
    light: int
    three_step: int


@dataclass(frozen=True, slots=True)
class Running:
    """What runs now: leaves at work and in review, and what waits for Sir."""

    working: int
    review: int
    waiting: int


def read_traffic(project_id: int | None) -> Traffic:
    """Count each outcome of S0 and S1, of one project or of all.

    A later re-score of an upgrade is not traffic.
    """
    first_looks = Assessment.objects.filter(traffic_of__isnull=False)
    if project_id is not None:
        first_looks = first_looks.filter(traffic_of=project_id)
    rows = (
        first_looks.order_by().values("stage", "outcome").annotate(n=Count("task", distinct=True))
    )
    found = {(row["stage"], row["outcome"]): row["n"] for row in rows}
    first = {outcome: n for (stage, outcome), n in found.items() if stage == "S0"}
    second = {outcome: n for (stage, outcome), n in found.items() if stage == "S1"}
    return Traffic(
        messages=sum(first.values()),
        direct_by_rule=first.get("direct", 0),
        scored=sum(second.values()),
        direct_by_score=second.get(Route.DIRECT.value, 0),
        light=second.get(Route.LIGHT_PLAN.value, 0),
        three_step=second.get(Route.THREE_STEP.value, 0),
    )


def read_running(project_id: int) -> Running:
    """Count the leaves that run now and the decisions that wait."""
    leaves = Task.objects.filter(
        project=project_id, is_planned=False, is_superseded=False, status__in=AT_WORK
    )
    found = dict(leaves.order_by().values_list("status").annotate(n=Count("*")))
    review = found.pop(T.REVIEW.value, 0)
    waiting = waiting_decisions().filter(project=project_id).count()
    return Running(sum(found.values()), review, waiting)


def waiting_decisions() -> QuerySet[Decision]:
    """The open decisions that hold work up; notices do not."""
    return Decision.objects.filter(status=DecisionStatus.OPEN.value).exclude(
        kind=DecisionKind.HIGH_NOTICE.value
    )


def agent_work() -> QuerySet[Assignment]:
    """The queued assignments that wait for an agent."""
    return Assignment.objects.filter(
        status=AssignmentStatus.QUEUED.value, backend=Backend.EXTERNAL.value
    )


def trees_of(root_ids: Iterable[int]) -> QuerySet[Task, int]:
    """The ids of some roots and of all below them.

    A filter by them is quick; one by an expression over a joined root reads every row there is.
    """
    ids = list(root_ids)
    return (
        Task.objects.filter(Q(pk__one_of=ids) | Q(root__one_of=ids))
        .order_by()
        .values_list("pk", flat=True)
    )


@dataclass(frozen=True, slots=True)
class WorkLeft:
    """What the plans estimate. Units: `minutes`; None when too few steps have an estimate."""

    minutes: float | None
    steps: int


def estimate_work_left(project: Project) -> WorkLeft:
    """Add up the estimates of unfinished steps; only said when four fifths of them have one."""
    rows = Task.objects.filter(
        project=project, is_planned=False, is_superseded=False, kind=TaskKind.TASK.value
    ).exclude(status__in=CLOSED)
    found = rows.aggregate(
        steps=Count("*"), told=Count("estimate_minutes"), minutes=Sum("estimate_minutes")
    )
    steps, told = found["steps"], found["told"]
    if not steps or told < ESTIMATED_SHARE * steps:
        return WorkLeft(None, steps)
    return WorkLeft(found["minutes"] * steps / told, steps)


@dataclass(frozen=True, slots=True)
class Observation:
    """A risk or an observation beside the master list. `is_risk` for what an agent met at work."""

    text: str
    step_key: str
    source: str
    is_risk: bool


@dataclass(frozen=True, slots=True)
class Observations:
    """What agents, the audit and the plan say of a root's risks. Shape: `total` counts them all."""

    shown: list[Observation]
    total: int


def list_observations(root: Task, *, limit: int = 6) -> Observations:
    """List the newest observations, then an audit's suggestions and the steps' declared risks.

    What somebody met while working comes first: it is news, the plan's own risks were known.
    """
    comments = Comment.objects.filter(
        task__in=trees_of([root.pk]), comment_type=CommentType.OBSERVATION.value
    )
    newest = comments.order_by("-pk").values_list("body", "task__step_key", "author")[:limit]
    seen = [Observation(body, key, author, is_risk=True) for body, key, author in newest]
    blueprint = root.blueprints.order_by("-number").defer("canonical").first()
    suggestions = blueprint.suggestions if blueprint is not None else []
    audit = [Observation(str(text), "", "audit", is_risk=False) for text in suggestions]
    steps = root.children.filter(is_superseded=False).exclude(risks=[]).order_by("pk")
    declared = [
        Observation(str(text), key, "plan", is_risk=False)
        for key, risks in steps.values_list("step_key", "risks")
        for text in risks
    ]
    met = comments.count() if len(seen) == limit else len(seen)
    total = met + len(audit) + len(declared)
    return Observations([*seen, *audit, *declared][:limit], total)
