"""Reads for the overview: each project with its health, what waits for Sir, progress and cost.

The number of queries is the same for one project and for hundreds.
Source: UI.md sections 2 ("Health") and 5.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Count, FloatField, Min, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast
from django.utils import timezone

from orchestration.models import (
    Agent,
    Assessment,
    Assignment,
    AuditEvent,
    AuditSeal,
    Decision,
    Defect,
    Project,
    Task,
)
from orchestration.policy import Backend
from orchestration.states import (
    AssignmentStatus,
    DecisionKind,
    DecisionStatus,
    DefectStatus,
    ProjectStatus,
    Severity,
    TaskKind,
    TaskStatus,
)

NEED_ORDER = (
    "safe_stop",
    "stopped",
    "waiting",
    "suspended",
    "moving",
    "waiting_for_agent",
    "idle",
    "completed",
)
"""Codes of a project's health in the order in which the overview lists them."""
SEEN_AGENT = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Cost:
    """What agents reported in USD, and how many of their assignments reported nothing."""

    reported: float = 0.0
    unknown: int = 0


@dataclass(slots=True)
class ProjectRow:
    """One project on the overview. `health` is one of `NEED_ORDER`."""

    project: Project
    last_event_at: datetime | None = None
    open_count: int = 0
    waiting_count: int = 0
    stop_kind: str = ""
    stopped_since: datetime | None = None
    leased: int = 0
    queued: int = 0
    agent_seat: str = ""
    agent_since: datetime | None = None
    done: int = 0
    total: int = 0
    waiting_since: datetime | None = None
    cost: Cost = field(default_factory=Cost)

    @property
    def running(self) -> int:
        """How many assignments are at work or about to be."""
        return self.leased or self.queued

    @property
    def health(self) -> str:
        """The first of the states that holds. Source: UI.md section 2."""
        status = self.project.status
        if status == ProjectStatus.SAFE_STOP:
            return "safe_stop"
        if self.stopped_since is not None:
            return "stopped"
        if status in (ProjectStatus.SUSPENDED, ProjectStatus.ARCHIVED):
            return "suspended"
        runs = bool(self.leased or self.queued)
        if self.waiting_count and not runs:
            return "waiting"
        if runs:
            return "moving"
        if self.agent_seat:
            return "waiting_for_agent"
        return "completed" if status == ProjectStatus.COMPLETED else "idle"


def list_projects() -> list[ProjectRow]:
    """List the projects that are not archived, those that need Sir first."""
    last = AuditEvent.objects.filter(project=OuterRef("pk")).order_by("-pk").values("at")[:1]
    projects = (
        Project.objects.exclude(status=ProjectStatus.ARCHIVED.value)
        .annotate(last_event_at=Subquery(last))
        .order_by("pk")
    )
    rows = {one.pk: ProjectRow(one, last_event_at=one.last_event_at) for one in projects}
    _add_decisions(rows)
    _add_assignments(rows)
    _add_roots(rows)
    for pk, cost in costs_by_project().items():
        if pk in rows:
            rows[pk].cost = cost
    return sorted(rows.values(), key=_need)


def _need(row: ProjectRow) -> tuple[int, int, float]:
    last = row.last_event_at.timestamp() if row.last_event_at else 0.0
    return NEED_ORDER.index(row.health), -row.open_count, -last


def _add_decisions(rows: Mapping[int, ProjectRow]) -> None:
    found = (
        Decision.objects.filter(status=DecisionStatus.OPEN.value)
        .values("project", "kind", "is_p0")
        .annotate(n=Count("pk"), since=Min("created_at"))
    )
    for one in found:
        row = rows.get(one["project"])
        if row is None:
            continue
        row.open_count += one["n"]
        if one["kind"] == DecisionKind.HIGH_NOTICE:
            continue
        row.waiting_count += one["n"]
        row.waiting_since = _earlier(row.waiting_since, one["since"])
        if one["is_p0"]:
            row.stop_kind = one["kind"]
            row.stopped_since = _earlier(row.stopped_since, one["since"])


def _earlier(known: datetime | None, other: datetime) -> datetime:
    return other if known is None else min(known, other)


def _add_assignments(rows: Mapping[int, ProjectRow]) -> None:
    # Said one by one: so each is found by its own index among all that ever ran.
    live = Q(status=AssignmentStatus.QUEUED.value) | Q(status=AssignmentStatus.LEASED.value)
    found = (
        Assignment.objects.filter(live)
        .values("project", "status", "backend", "seat")
        .annotate(n=Count("pk"), since=Min("queued_at"))
        .order_by("since")
    )
    for one in found:
        row = rows.get(one["project"])
        if row is None:
            continue
        if one["status"] == AssignmentStatus.LEASED:
            row.leased += one["n"]
        elif one["backend"] != Backend.EXTERNAL:
            row.queued += one["n"]
        elif row.agent_since is None:
            row.agent_seat, row.agent_since = one["seat"], one["since"]


def _add_roots(rows: Mapping[int, ProjectRow]) -> None:
    found = (
        Task.objects.filter(parent__isnull=True, kind=TaskKind.TASK.value)
        .exclude(status=TaskStatus.CANCELLED.value)
        .order_by()
        .values_list("project", "status")
        .annotate(n=Count("*"))
    )
    for project_id, status, n in found:
        row = rows.get(project_id)
        if row is not None:
            row.total += n
            row.done += n if status == TaskStatus.DONE else 0


# --- Cost -----------------------------------------------------------------------------------------


def costs_by_project() -> Mapping[int, Cost]:
    """Add up what agents reported, by project; work of our own backends costs nothing."""
    return _costs(Assignment.objects.all())


def cost_of_project(project_id: int) -> Cost:
    """Add up what agents reported for a project."""
    return _costs(Assignment.objects.filter(project=project_id)).get(project_id, Cost())


def cost_of(rows: QuerySet[Assignment]) -> Cost:
    """Add up what agents reported for some assignments, of a task or of a few."""
    found = _of_agents(rows).aggregate(usd=Sum(USD), told=Count(USD), n=Count("pk"))
    return Cost(found["usd"] or 0.0, found["n"] - found["told"])


USD = Cast(KeyTextTransform("cost_usd", "usage"), FloatField())


def _of_agents(rows: QuerySet[Assignment]) -> QuerySet[Assignment]:
    return rows.filter(backend=Backend.EXTERNAL.value, leased_at__isnull=False).order_by()


def _costs(rows: QuerySet[Assignment]) -> Mapping[int, Cost]:
    """Count all work from an index alone, and read the usage only of what told its cost."""
    done = _of_agents(rows)
    counts = dict(done.values_list("project").annotate(n=Count("*")))
    told = done.filter(usage__has_key="cost_usd").values_list("project")
    sums = {pk: (usd, n) for pk, usd, n in told.annotate(usd=Sum(USD), n=Count(USD))}
    costs = {}
    for pk, worked in counts.items():
        reported, known = sums.get(pk, (None, 0))
        costs[pk] = Cost(reported or 0.0, worked - known)
    return costs


# --- Decided without Sir --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WithoutYou:
    """What the method decided by itself. Units: counts of the last 24 hours."""

    direct: int
    messages: int
    fixed_critical: int
    fixed_high: int
    low_accepted: int
    replanned: int
    upgraded: int

    @property
    def fixed(self) -> int:
        """Defects fixed by rule."""
        return self.fixed_critical + self.fixed_high


def decided_without_sir(hours: int = 24) -> WithoutYou:
    """Count what Sir was not asked."""
    since = timezone.now() - timedelta(hours=hours)
    first = Assessment.objects.filter(
        stage="S0", created_at__gte=since, traffic_of__isnull=False
    ).aggregate(n=Count("pk"), direct=Count("pk", filter=Q(outcome="direct")))
    verified = Q(status=DefectStatus.VERIFIED.value)
    defects = Defect.objects.filter(updated_at__gte=since).aggregate(
        critical=Count("pk", filter=verified & Q(severity=Severity.CRITICAL.value)),
        high=Count("pk", filter=verified & Q(severity=Severity.HIGH.value)),
        low=Count(
            "pk",
            filter=Q(severity=Severity.LOW.value, status=DefectStatus.ACCEPTED_AS_IS.value),
        ),
    )
    again = AuditEvent.objects.filter(
        at__gte=since, kind="task.pending", before__status=TaskStatus.FAILED.value
    ).filter(task__parent__isnull=True)
    upgraded = Assessment.objects.filter(stage="S1", created_at__gte=since).exclude(trigger="")
    return WithoutYou(
        direct=first["direct"],
        messages=first["n"],
        fixed_critical=defects["critical"],
        fixed_high=defects["high"],
        low_accepted=defects["low"],
        replanned=again.count(),
        upgraded=upgraded.filter(outcome="three_step").count(),
    )


# --- Since you last looked, and this machine ------------------------------------------------------

NOTABLE = (
    "task.done",
    "task.failed",
    "task.fatal",
    "blueprint.locked",
    "decision.opened",
    "project.suspended",
    "project.safe_stop",
    "project.completed",
)


def notable_events(*, after: int, limit: int) -> tuple[list[AuditEvent], int]:
    """List the newest events worth a line after a sealed position, and count all after it.

    Of tasks only roots are worth a line.
    """
    rows = AuditEvent.objects.filter(seal__position__gt=after)
    # Positions have no gaps: the newest one tells how many there are.
    newest = AuditSeal.objects.order_by("-position").values_list("position", flat=True).first() or 0
    worth = rows.filter(kind__in=NOTABLE).exclude(
        kind__startswith="task.", task__parent__isnull=False
    )
    found = worth.select_related("project", "task__root", "seal").order_by("-seal__position")
    return list(found[:limit]), max(newest - after, 0)


def count_agents() -> tuple[int, int]:
    """Count the agents that may work, and those of them seen in the last 15 minutes."""
    since = timezone.now() - SEEN_AGENT
    found = Agent.objects.filter(revoked_at__isnull=True).aggregate(
        n=Count("pk"), seen=Count("pk", filter=Q(last_seen_at__gte=since))
    )
    return found["n"], found["seen"]


def oldest_open_at(rows: Iterable[ProjectRow]) -> datetime | None:
    """When the oldest decision that waits was opened."""
    known = [row.waiting_since for row in rows if row.waiting_since is not None]
    return min(known, default=None)


def stopped_projects(rows: Sequence[ProjectRow]) -> list[ProjectRow]:
    """The projects that cannot go on without Sir."""
    return [row for row in rows if row.health in ("safe_stop", "stopped")]


def count_unfinished(project: Project) -> tuple[int, int]:
    """Count what would end with a project: its unfinished tasks and its open questions."""
    ended = [TaskStatus.DONE.value, TaskStatus.CANCELLED.value]
    tasks = Task.objects.filter(project=project, is_superseded=False).exclude(status__in=ended)
    questions = Decision.objects.filter(project=project, status=DecisionStatus.OPEN.value)
    return tasks.count(), questions.count()
