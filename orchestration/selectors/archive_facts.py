"""Read what an archive is made of: one query a kind of row, whatever the size of the tree.

Source: FORMATS ("Delivery archive").
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db.models import Count, Q, QuerySet

from orchestration.models import (
    Artifact,
    ArtifactRead,
    Assignment,
    AuditReport,
    Blueprint,
    Comment,
    Decision,
    Defect,
    Deviation,
    Plan,
    QAReview,
    Task,
    TaskDependency,
    Verification,
)
from orchestration.models.prepared import Prepared
from orchestration.models.rows import fetch_rows
from orchestration.states import (
    SUPERSEDED_REASON,
    AssignmentStatus,
    CommentType,
    DecisionKind,
    DecisionStatus,
    Seat,
)

ARCHIVE_NAMES = frozenset({"delivery-archive.md", "delivery-archive.json"})
MOST_LESSONS = 200
_STEP_FIELDS = (
    "pk", "number", "parent_id", "step_key", "title", "role", "phase", "depth", "status",
    "cancel_reason", "run", "verify", "resources", "failure_context", "attempt",
)  # fmt: skip
_ARTIFACT_FIELDS = (
    "pk", "task_id", "name", "version", "type", "size_bytes", "content_id", "exception_note",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step of the tree. Shape: `label` is its path of step keys below the root."""

    pk: int
    label: str
    title: str
    role: str
    phase: int
    status: str
    cancel_reason: str
    run: list[Mapping[str, Any]]
    verify: list[Mapping[str, Any]]
    resources: list[str]
    failures: list[Mapping[str, Any]]


def _tree_of(root_id: int) -> QuerySet[Task, int]:
    return Task.objects.filter(Q(pk=root_id) | Q(root=root_id)).values_list("pk", flat=True)


@Prepared
def _steps(root_id: int) -> QuerySet[Any, Any]:
    rows = Task.objects.filter(root=root_id, is_superseded=False)
    rows = rows.exclude(cancel_reason=SUPERSEDED_REASON).order_by("depth", "phase", "pk")
    return rows.values_list(*_STEP_FIELDS)


@Prepared
def _edges(root_id: int) -> QuerySet[Any, Any]:
    rows = TaskDependency.objects.filter(task__root=root_id).order_by("pk")
    return rows.values_list("requires_id", "task_id")


@Prepared
def _artifacts(root_id: int) -> QuerySet[Any, Any]:
    rows = Artifact.objects.filter(task__in=_tree_of(root_id)).order_by("version", "pk")
    return rows.values_list(*_ARTIFACT_FIELDS)


@Prepared
def _reads(root_id: int) -> QuerySet[Any, Any]:
    rows = ArtifactRead.objects.filter(artifact__task__in=_tree_of(root_id)).order_by("pk")
    return rows.values_list("artifact__task_id", "task_id", "artifact__name", "artifact__version")


@Prepared
def _makers(root_id: int) -> QuerySet[Any, Any]:
    rows = Assignment.objects.filter(
        task__in=_tree_of(root_id),
        seat=Seat.EXECUTOR.value,
        status=AssignmentStatus.DONE.value,
    )
    return rows.order_by("pk").values_list("task_id", "agent__name", "backend")


@Prepared
def _layers(root_id: int) -> QuerySet[Any, Any]:
    rows = Verification.objects.filter(task__in=_tree_of(root_id)).order_by()
    return rows.values_list("layer", "outcome").annotate(Count("pk"))


@Prepared
def _runs(root_id: int) -> QuerySet[Any, Any]:
    rows = Verification.objects.filter(task__in=_tree_of(root_id), command__isnull=False)
    return rows.order_by("pk").values_list("task_id", "command", "outcome", "exit_code")


@Prepared
def _reviews(root_id: int) -> QuerySet[Any, Any]:
    rows = QAReview.objects.filter(task__in=_tree_of(root_id)).order_by()
    return rows.values_list("verdict").annotate(Count("pk"))


@Prepared
def _defects(root_id: int) -> QuerySet[Any, Any]:
    return Defect.objects.filter(task__in=_tree_of(root_id)).values_list("pk")


@Prepared
def _decisions(root_id: int) -> QuerySet[Any, Any]:
    rows = Decision.objects.filter(
        task__in=_tree_of(root_id),
        status__in=[DecisionStatus.DECIDED.value, DecisionStatus.EXPIRED.value],
    )
    return rows.values_list("pk")


@Prepared
def _blueprints(root_id: int) -> QuerySet[Any, Any]:
    rows = Blueprint.objects.filter(task=root_id).order_by("-number")
    return rows.values_list("number", "sha256", "plan_id")[:1]


@Prepared
def _deviations(root_id: int) -> QuerySet[Any, Any]:
    return Deviation.objects.filter(blueprint__task__in=_tree_of(root_id)).values_list("pk")


@Prepared
def _handoffs(root_id: int) -> QuerySet[Any, Any]:
    rows = Comment.objects.filter(
        task__in=_tree_of(root_id),
        comment_type=CommentType.HANDOFF.value,
        agent__isnull=False,
    )
    return rows.order_by("-pk").values_list("task_id", "body")[:MOST_LESSONS]


@dataclass(frozen=True, slots=True)
class LockedPlan:
    """What an archive says of a blueprint."""

    number: int
    sha256: str
    plan_id: int


class ArchiveFacts:
    """Everything about one root that an archive says. Each part is read once, when asked for."""

    def __init__(self, root: Task) -> None:
        self.root = root
        self.key = str(root)

    @cached_property
    def steps(self) -> list[StepRow]:
        """Every step that counts, in the order of the plan; a root without steps is its own."""
        found = [dict(zip(_STEP_FIELDS, row, strict=True)) for row in _steps(self.root.pk)]
        if not found:
            own = Task.objects.filter(pk=self.root.pk).values(*_STEP_FIELDS)[0]
            return [_step(own, self.key)]
        labels: dict[int, str] = {}
        for row in found:
            above = labels.get(row["parent_id"])
            own_name = row["step_key"] or f"#{row['number']}"
            labels[row["pk"]] = f"{above}/{own_name}" if above else own_name
        return [_step(row, labels[row["pk"]]) for row in found]

    @cached_property
    def labels(self) -> dict[int, str]:
        """The label of each step, and of the root, by id."""
        return {self.root.pk: self.key} | {row.pk: row.label for row in self.steps}

    @cached_property
    def edges(self) -> list[tuple[int, int]]:
        """Who starts after whom. Shape: (required step, step)."""
        known = self.labels
        return [
            (source, target)
            for source, target in _edges(self.root.pk)
            if source in known and target in known
        ]

    @cached_property
    def artifacts(self) -> list[dict[str, Any]]:
        """The newest locked version of each artifact, without archives, by path."""
        rows = (dict(zip(_ARTIFACT_FIELDS, row, strict=True)) for row in _artifacts(self.root.pk))
        newest: dict[tuple[int, str], dict[str, Any]] = {
            (row["task_id"], row["name"]): row
            for row in rows
            if not (row["task_id"] == self.root.pk and row["name"] in ARCHIVE_NAMES)
        }
        return sorted(newest.values(), key=lambda row: (row["name"], row["task_id"]))

    @cached_property
    def made(self) -> dict[int, list[str]]:
        """The artifact names of each step."""
        names: dict[int, list[str]] = defaultdict(list)
        for row in self.artifacts:
            names[row["task_id"]].append(row["name"])
        return names

    @cached_property
    def reads(self) -> list[tuple[int, int, str, int]]:
        """Who read what. Shape: (making task, reading task, name, version)."""
        return [
            (maker, reader, name, version) for maker, reader, name, version in _reads(self.root.pk)
        ]

    def outside_keys(self, ids: set[int]) -> dict[int, str]:
        """Readable keys of tasks outside this tree."""
        prefix = self.root.project.key_prefix
        rows = Task.objects.filter(pk__in=ids).values_list("pk", "number")
        return {pk: f"{prefix}-{number}" for pk, number in rows}

    @cached_property
    def makers(self) -> dict[int, str]:
        """Who executed each step last: an agent, or one of our own backends."""
        return {
            task_id: f"agent:{agent}" if agent else backend
            for task_id, agent, backend in _makers(self.root.pk)
        }

    @cached_property
    def layers(self) -> dict[str, Counter[str]]:
        """How often each verification layer passed, failed or was impossible."""
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for layer, outcome, count in _layers(self.root.pk):
            counts[layer][outcome] += count
        return dict(sorted(counts.items()))

    @cached_property
    def runs(self) -> dict[int, dict[str, tuple[str, int | None]]]:
        """The newest run of each command of each step. Shape: outcome and exit code by command."""
        found: dict[int, dict[str, tuple[str, int | None]]] = defaultdict(dict)
        for task_id, command, outcome, code in _runs(self.root.pk):
            found[task_id][" ".join((command or {}).get("argv", ()))] = (outcome, code)
        return found

    @cached_property
    def reviews(self) -> Counter[str]:
        """QA's verdicts, counted."""
        return Counter(dict(_reviews(self.root.pk)))

    @cached_property
    def defects(self) -> list[Defect]:
        """Every defect, oldest first."""
        ids = [pk for (pk,) in _defects(self.root.pk)]
        return list(Defect.objects.filter(pk__in=ids).order_by("pk")) if ids else []

    @cached_property
    def decisions(self) -> list[Decision]:
        """Every verdict that was given, oldest first."""
        ids = [pk for (pk,) in _decisions(self.root.pk)]
        rows = Decision.objects.filter(pk__in=ids).select_related("decided_by")
        return list(rows.order_by("decided_at", "pk")) if ids else []

    @cached_property
    def waiver(self) -> Decision | None:
        """The decision that waived this root, if that is how it ended: done can move no more."""
        for row in reversed(self.decisions):
            is_own = row.task_id == self.root.pk and row.kind == DecisionKind.MAX_RETRIES
            if is_own and row.verdict == "waive":
                return row
        return None

    @cached_property
    def plan(self) -> Plan | None:
        """The plan that was carried out last: the newest locked one, else the light plan."""
        if self.blueprint is not None:
            return fetch_rows(Plan, "id = %s", [self.blueprint.plan_id])[0]
        light = fetch_rows(
            Plan, "task_id = %s AND is_light ORDER BY id DESC LIMIT 1", [self.root.pk]
        )
        return light[0] if light else None

    @cached_property
    def blueprint(self) -> LockedPlan | None:
        """The newest locked blueprint of the root."""
        rows = _blueprints(self.root.pk)
        return LockedPlan(*rows[0]) if rows else None

    @cached_property
    def plan_audit(self) -> AuditReport | None:
        """What the audit said of the plan that was carried out."""
        if self.plan is None:
            return None
        rows = fetch_rows(AuditReport, "plan_id = %s ORDER BY id DESC LIMIT 1", [self.plan.pk])
        return rows[0] if rows else None

    @cached_property
    def deviations(self) -> list[Deviation]:
        """Every deviation in the tree, oldest first."""
        ids = [pk for (pk,) in _deviations(self.root.pk)]
        return list(Deviation.objects.filter(pk__in=ids).order_by("pk")) if ids else []

    @cached_property
    def handoffs(self) -> list[tuple[int, str]]:
        """The newest hand-offs that agents wrote, oldest first. Shape: (task, text)."""
        return [(task_id, body) for task_id, body in reversed(_handoffs(self.root.pk))]


def _step(row: Mapping[str, Any], label: str) -> StepRow:
    return StepRow(
        pk=row["pk"],
        label=label,
        title=row["title"],
        role=row["role"],
        phase=row["phase"],
        status=row["status"],
        cancel_reason=row["cancel_reason"],
        run=row["run"],
        verify=row["verify"],
        resources=row["resources"],
        failures=row["failure_context"],
    )
