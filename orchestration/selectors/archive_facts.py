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


class ArchiveFacts:
    """Everything about one root that an archive says. Each part is read once, when asked for."""

    def __init__(self, root: Task) -> None:
        self.root = root
        self.key = str(root)

    def _tree(self) -> QuerySet[Task, int]:
        return Task.objects.filter(Q(pk=self.root.pk) | Q(root=self.root.pk)).values_list(
            "pk", flat=True
        )

    @cached_property
    def steps(self) -> list[StepRow]:
        """Every step that counts, in the order of the plan; a root without steps is its own."""
        rows = Task.objects.filter(root=self.root.pk, is_superseded=False).exclude(
            cancel_reason=SUPERSEDED_REASON
        )
        found = list(rows.order_by("depth", "phase", "pk").values(*_STEP_FIELDS))
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
        rows = TaskDependency.objects.filter(task__root=self.root.pk).order_by("pk")
        known = self.labels
        return [
            pair for pair in rows.values_list("requires_id", "task_id")
            if pair[0] in known and pair[1] in known
        ]  # fmt: skip

    @cached_property
    def artifacts(self) -> list[dict[str, Any]]:
        """The newest locked version of each artifact, without archives, by path."""
        rows = Artifact.objects.filter(task__in=self._tree()).order_by("version", "pk")
        newest: dict[tuple[int, str], dict[str, Any]] = {
            (row["task_id"], row["name"]): dict(row)
            for row in rows.values("pk", "task_id", "name", "version", "type", "size_bytes",
                                   "content_id", "exception_note")
            if not (row["task_id"] == self.root.pk and row["name"] in ARCHIVE_NAMES)
        }  # fmt: skip
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
        rows = ArtifactRead.objects.filter(artifact__task__in=self._tree()).order_by("pk")
        return list(
            rows.values_list("artifact__task_id", "task_id", "artifact__name", "artifact__version")
        )

    def outside_keys(self, ids: set[int]) -> dict[int, str]:
        """Readable keys of tasks outside this tree."""
        prefix = self.root.project.key_prefix
        rows = Task.objects.filter(pk__in=ids).values_list("pk", "number")
        return {pk: f"{prefix}-{number}" for pk, number in rows}

    @cached_property
    def makers(self) -> dict[int, str]:
        """Who executed each step last: an agent, or one of our own backends."""
        rows = Assignment.objects.filter(
            task__in=self._tree(),
            seat=Seat.EXECUTOR.value,
            status=AssignmentStatus.DONE.value,
        )
        return {
            task_id: f"agent:{agent}" if agent else backend
            for task_id, agent, backend in rows.order_by("pk").values_list(
                "task_id", "agent__name", "backend"
            )
        }

    @cached_property
    def layers(self) -> dict[str, Counter[str]]:
        """How often each verification layer passed, failed or was impossible."""
        rows = Verification.objects.filter(task__in=self._tree()).order_by()
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for layer, outcome, count in rows.values_list("layer", "outcome").annotate(Count("pk")):
            counts[layer][outcome] += count
        return dict(sorted(counts.items()))

    @cached_property
    def runs(self) -> dict[int, dict[str, tuple[str, int | None]]]:
        """The newest run of each command of each step. Shape: outcome and exit code by command."""
        rows = Verification.objects.filter(task__in=self._tree(), command__isnull=False)
        found: dict[int, dict[str, tuple[str, int | None]]] = defaultdict(dict)
        for task_id, command, outcome, code in rows.order_by("pk").values_list(
            "task_id", "command", "outcome", "exit_code"
        ):
            found[task_id][" ".join((command or {}).get("argv", ()))] = (outcome, code)
        return found

    @cached_property
    def reviews(self) -> Counter[str]:
        """QA's verdicts, counted."""
        rows = QAReview.objects.filter(task__in=self._tree()).order_by()
        return Counter(dict(rows.values_list("verdict").annotate(Count("pk"))))

    @cached_property
    def defects(self) -> list[Defect]:
        """Every defect, oldest first."""
        return list(Defect.objects.filter(task__in=self._tree()).order_by("pk"))

    @cached_property
    def decisions(self) -> list[Decision]:
        """Every verdict that was given, oldest first."""
        rows = Decision.objects.filter(
            task__in=self._tree(),
            status__in=[DecisionStatus.DECIDED.value, DecisionStatus.EXPIRED.value],
        )
        return list(rows.select_related("decided_by").order_by("decided_at", "pk"))

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
        blueprint = self.blueprint
        if blueprint is not None:
            return blueprint.plan
        return self.root.plans.filter(is_light=True).order_by("pk").last()

    @cached_property
    def blueprint(self) -> Blueprint | None:
        """The newest locked blueprint of the root."""
        rows = Blueprint.objects.filter(task=self.root).select_related("plan").defer("canonical")
        return rows.order_by("number").last()

    @cached_property
    def plan_audit(self) -> AuditReport | None:
        """What the audit said of the plan that was carried out."""
        return self.plan.audits.order_by("pk").last() if self.plan is not None else None

    @cached_property
    def deviations(self) -> list[Deviation]:
        """Every deviation in the tree, oldest first."""
        rows = Deviation.objects.filter(blueprint__task__in=self._tree())
        return list(rows.order_by("pk"))

    @cached_property
    def handoffs(self) -> list[tuple[int, str]]:
        """The newest hand-offs that agents wrote, oldest first. Shape: (task, text)."""
        rows = Comment.objects.filter(
            task__in=self._tree(),
            comment_type=CommentType.HANDOFF.value,
            agent__isnull=False,
        )
        newest = rows.order_by("-pk").values_list("task_id", "body")[:MOST_LESSONS]
        return list(reversed(newest))


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
