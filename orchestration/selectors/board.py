"""Reads for the project board: figures of S0 to S3, the master list, one root's steps and edges.

Query counts do not grow with the number of steps; lists page.
Source: UI.md section 5.4, DESIGN sections 4 (master-list view) and 5 (traffic).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import (
    Case,
    Count,
    Exists,
    F,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Sum,
    Value,
    When,
)
from django.db.models.functions import Coalesce

from orchestration.models import Assessment, Assignment, Comment, Decision, Project, Task
from orchestration.policy import Backend
from orchestration.states import (
    SKIPPED_REASON,
    AssignmentStatus,
    CommentType,
    DecisionKind,
    DecisionStatus,
    ProjectStatus,
    Route,
    TaskKind,
    TaskStatus,
)

MASTER_PAGE = 100
ESTIMATED_SHARE = 0.8
PLANNED_ROUTES = (Route.THREE_STEP.value, Route.WORKFLOW.value)
T = TaskStatus
IN_PROGRESS = (T.CLAIMED, T.WORKING, T.REVIEW, T.BLOCKED, T.WAITING_HUMAN, T.FAILED, T.FATAL)
IS_FINISHED = Q(status=T.DONE.value) | Q(status=T.CANCELLED.value, cancel_reason=SKIPPED_REASON)


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
    first_looks = Assessment.objects.filter(task__parent__isnull=True, trigger="")
    if project_id is not None:
        first_looks = first_looks.filter(task__project=project_id)
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
    leaves = Task.objects.filter(project=project_id, is_planned=False, is_superseded=False)
    found = leaves.aggregate(
        working=Count("pk", filter=Q(status__in=[T.CLAIMED.value, T.WORKING.value])),
        review=Count("pk", filter=Q(status=T.REVIEW.value)),
    )
    waiting = waiting_decisions().filter(project=project_id).count()
    return Running(found["working"], found["review"], waiting)


def waiting_decisions() -> QuerySet[Decision]:
    """The open decisions that hold work up; notices do not."""
    return Decision.objects.filter(status=DecisionStatus.OPEN.value).exclude(
        kind=DecisionKind.HIGH_NOTICE.value
    )


# --- Master list ----------------------------------------------------------------------------------


@dataclass(slots=True)
class MasterTask:
    """One root with what its row shows. `stage` is S0, S1, S2 or S3."""

    task: Task
    steps_done: int = 0
    steps_total: int = 0
    waiting: int = 0
    needs_agent: bool = False

    @property
    def stage(self) -> str:
        """How far the method has come."""
        if not self.task.is_assessed:
            return "S0"
        if self.task.is_planned and not self.steps_total:
            return "S2"
        return "S3"


def list_master(
    project: Project, *, status: str = "", text: str = "", page: int = 1
) -> tuple[list[MasterTask], int]:
    """List one page of the master list and the number of all tasks that match.

    Order: in progress, pending, done, cancelled; the first two by rank, the others newest first.
    """
    rows = roots_of(project)
    if status:
        rows = rows.filter(status=status)
    if text:
        rows = rows.filter(_names(project, text))
    total = rows.count()
    start = (max(page, 1) - 1) * MASTER_PAGE
    tasks = list(_in_master_order(rows)[start : start + MASTER_PAGE])
    return describe_roots(tasks), total


def roots_of(project: Project) -> QuerySet[Task]:
    """The tasks on a project's master list."""
    return Task.objects.filter(project=project, parent__isnull=True, kind=TaskKind.TASK.value)


def _names(project: Project, text: str) -> Q:
    found = Q(title__icontains=text) | Q(external_key__iexact=text)
    prefix, _, number = text.strip().rpartition("-")
    if number.isdigit() and len(number) < 10 and prefix.upper() in ("", project.key_prefix):
        found |= Q(number=int(number))
    return found


def _in_master_order(rows: QuerySet[Task], *before: str) -> QuerySet[Task]:
    """Put roots in the order of the list; `before` names what counts more."""
    group = Case(
        When(status__in=[one.value for one in IN_PROGRESS], then=Value(0)),
        When(status=T.PENDING.value, then=Value(1)),
        When(status=T.DONE.value, then=Value(2)),
        default=Value(3),
        output_field=IntegerField(),
    )
    inside = Case(When(group__lte=1, then=F("rank")), default=-F("number"))
    known = rows.annotate(group=group).annotate(inside=inside)
    return known.order_by(*before, "group", "inside", "pk")


def describe_roots(tasks: Sequence[Task]) -> list[MasterTask]:
    """Add steps, what waits for Sir in the whole subtree, and who has to come, to some roots."""
    found = {task.pk: MasterTask(task) for task in tasks}
    steps = (
        Task.objects.filter(parent__in=found, is_superseded=False)
        .values("parent")
        .annotate(total=Count("pk"), done=Count("pk", filter=IS_FINISHED))
    )
    for parent, total, finished in steps.values_list("parent", "total", "done"):
        if parent is not None:
            found[parent].steps_total, found[parent].steps_done = total, finished
    top = Coalesce("task__root", "task")
    asked = waiting_decisions().annotate(top=top).filter(top__in=found).values("top")
    for pk, count in asked.annotate(n=Count("pk")).values_list("top", "n"):
        found[pk].waiting = count
    waiting = agent_work().annotate(top=top).filter(top__in=found)
    for pk in waiting.values_list("top", flat=True).distinct():
        found[pk].needs_agent = True
    return list(found.values())


def agent_work() -> QuerySet[Assignment]:
    """The queued assignments that wait for an agent."""
    return Assignment.objects.filter(
        status=AssignmentStatus.QUEUED.value, backend=Backend.EXTERNAL.value
    )


def count_roots(project: Project) -> tuple[int, int]:
    """Count the done roots and all that are not cancelled."""
    found = (
        roots_of(project)
        .exclude(status=T.CANCELLED.value)
        .aggregate(total=Count("pk"), done=Count("pk", filter=Q(status=T.DONE.value)))
    )
    return found["done"], found["total"]


@dataclass(frozen=True, slots=True)
class WorkLeft:
    """What the plans estimate. Units: `minutes`; None when too few steps have an estimate."""

    minutes: float | None
    steps: int


def estimate_work_left(project: Project) -> WorkLeft:
    """Add up the estimates of unfinished steps; only said when four fifths of them have one."""
    rows = Task.objects.filter(
        project=project, is_planned=False, is_superseded=False, kind=TaskKind.TASK.value
    ).exclude(status__in=[T.DONE.value, T.CANCELLED.value])
    found = rows.aggregate(
        steps=Count("pk"), told=Count("estimate_minutes"), minutes=Sum("estimate_minutes")
    )
    steps, told = found["steps"], found["told"]
    if not steps or told < ESTIMATED_SHARE * steps:
        return WorkLeft(None, steps)
    return WorkLeft(found["minutes"] * steps / told, steps)


def pick_root(project: Project, wanted: str) -> Task | None:
    """The root that the board shows: the wanted one, else one that waits for Sir, one at work, one
    that is not finished, or the first in the list; of two alike the planned one.
    """
    if wanted.isdigit():
        found = roots_of(project).filter(pk=int(wanted)).first()
        if found is not None:
            return found
    asked = waiting_decisions().filter(Q(task=OuterRef("pk")) | Q(task__root=OuterRef("pk")))
    need = Case(
        When(Exists(asked), then=Value(0)),
        When(status__in=[T.CLAIMED.value, T.WORKING.value, T.REVIEW.value], then=Value(1)),
        When(status__in=[T.DONE.value, T.CANCELLED.value], then=Value(3)),
        default=Value(2),
        output_field=IntegerField(),
    )
    rows = roots_of(project).annotate(need=need)
    return _in_master_order(rows, "need", "-is_planned").first()


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
        Q(task=root) | Q(task__root=root), comment_type=CommentType.OBSERVATION.value
    )
    newest = comments.select_related("task").order_by("-pk")[:limit]
    seen = [Observation(one.body, one.task.step_key, one.author, is_risk=True) for one in newest]
    blueprint = root.blueprints.order_by("-number").defer("canonical").first()
    suggestions = blueprint.suggestions if blueprint is not None else []
    audit = [Observation(str(text), "", "audit", is_risk=False) for text in suggestions]
    steps = root.children.filter(is_superseded=False).exclude(risks=[]).order_by("pk")
    declared = [
        Observation(str(text), key, "plan", is_risk=False)
        for key, risks in steps.values_list("step_key", "risks")
        for text in risks
    ]
    total = comments.count() + len(audit) + len(declared)
    return Observations([*seen, *audit, *declared][:limit], total)
