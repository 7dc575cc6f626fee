"""Reads for a task's page: everything the method recorded about one task, in the method's order.

The number of queries does not grow with the task's history; long lists are cut and say so.
Source: UI.md section 5.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models import Count, Q, QuerySet

from orchestration.models import (
    Artifact,
    ArtifactRead,
    Assessment,
    Assignment,
    AuditReport,
    Blueprint,
    Comment,
    Decision,
    Defect,
    DeliveryArchive,
    Deviation,
    Output,
    Plan,
    Task,
    Verification,
)
from orchestration.policy import Backend
from orchestration.states import AssignmentStatus, DecisionKind, DecisionStatus, TaskStatus

SHOWN_OUTPUTS = 5
SHOWN_ROWS = 50
SHOWN_READERS, SHOWN_READS = 20, 1000
COMPARED_PLANS = 5
"""One attempt has three revisions, and more only where Sir guided it or plans were light."""


@dataclass(slots=True)
class PlanRevision:
    """One revision with its newest audit and, when it was locked, its blueprint.

    Shape: `steps` and `phases` count what stands under the blueprint now.
    """

    plan: Plan
    audit: AuditReport | None = None
    blueprint: Blueprint | None = None
    deviations: list[Deviation] = field(default_factory=list)
    steps: int = 0
    phases: int = 0


def read_assessments(task: Task) -> tuple[Assessment | None, list[Assessment]]:
    """The newest S0 record and every S1 record, newest first."""
    rows = list(task.assessments.select_related("agent").order_by("-pk")[:20])
    first = next((one for one in rows if one.stage == "S0"), None)
    return first, [one for one in rows if one.stage == "S1"]


def list_revisions(task: Task) -> list[PlanRevision]:
    """Every plan revision of a task, oldest first, with audit, blueprint and deviations."""
    plans = task.plans.select_related("agent").defer("body").order_by("-pk")[:SHOWN_ROWS]
    return _with_audits(task, list(reversed(plans)))


def planned_attempts(task: Task) -> list[int]:
    """The attempts of a task that have a plan, in order."""
    return sorted(set(task.plans.order_by().values_list("attempt", flat=True)))


def compared_revisions(task: Task, attempt: int) -> list[PlanRevision]:
    """The newest revisions of one attempt with their bodies, oldest first."""
    plans = task.plans.select_related("agent").filter(attempt=attempt)
    return _with_audits(task, list(reversed(plans.order_by("-pk")[:COMPARED_PLANS])))


def compared_plans(task: Task) -> list[PlanRevision]:
    """The newest plans of a task over its attempts with their bodies, oldest first."""
    plans = task.plans.select_related("agent").filter(is_light=False).exclude(body={})
    return _with_audits(task, list(reversed(plans.order_by("-pk")[:COMPARED_PLANS])))


def _with_audits(task: Task, plans: Sequence[Plan]) -> list[PlanRevision]:
    found = {plan.pk: PlanRevision(plan) for plan in plans}
    for audit in AuditReport.objects.filter(plan__in=found).select_related("agent").order_by("pk"):
        found[audit.plan_id].audit = audit
    for blueprint in task.blueprints.filter(plan__in=found).defer("canonical").order_by("pk"):
        found[blueprint.plan_id].blueprint = blueprint
    locked = {one.blueprint.pk: one for one in found.values() if one.blueprint is not None}
    for deviation in Deviation.objects.filter(blueprint__in=locked).order_by("pk"):
        locked[deviation.blueprint_id].deviations.append(deviation)
    sizes = Task.objects.filter(blueprint__in=locked).order_by().values_list("blueprint")
    for pk, steps, phases in sizes.annotate(Count("pk"), Count("phase", distinct=True)):
        locked[pk].steps, locked[pk].phases = steps, phases
    return list(found.values())


def _family(task: Task) -> Q:
    """The task itself and, where it is planned, the steps of its plan.

    By ids of the tasks: an OR over the joined table makes PostgreSQL read every row there is.
    """
    if not task.is_planned:
        return Q(task=task)
    return Q(task__in=Task.objects.filter(Q(pk=task.pk) | Q(parent=task)).order_by().values("pk"))


@dataclass(slots=True)
class OutputItem:
    """One output with its step's newest verification layers: layer → (outcome, findings)."""

    output: Output
    layers: dict[str, tuple[str, list[str]]] = field(default_factory=dict)


def list_outputs(task: Task, *, every: bool = False) -> tuple[list[OutputItem], int]:
    """List the newest outputs of a task and its steps, and count all of them."""
    rows = Output.objects.filter(_family(task)).select_related("task", "assignment__agent")
    total = rows.count()
    limit = SHOWN_ROWS if every else SHOWN_OUTPUTS
    items = [OutputItem(one) for one in rows.order_by("-pk")[:limit]]
    layers = _newest_layers({one.output.task_id for one in items})
    for item in items:
        item.layers = dict(layers.get((item.output.task_id, item.output.attempt), {}))
    return items, total


RANKS = {"failed": 2, "not_possible": 1, "passed": 0}


def _newest_layers(
    task_ids: set[int],
) -> Mapping[tuple[int, int], Mapping[str, tuple[str, list[str]]]]:
    """The outcome of each layer in the newest round of each attempt; the worst row counts."""
    rows = Verification.objects.filter(task__in=task_ids).order_by("pk")
    rounds: dict[tuple[int, int], int] = {}
    found: dict[tuple[int, int], dict[str, tuple[str, list[str]]]] = {}
    for row in rows:
        key = (row.task_id, row.attempt)
        if row.fix_round > rounds.get(key, -1):
            rounds[key] = row.fix_round
            found[key] = {}
        held = found[key].get(row.layer)
        notes = [str(one) for one in row.findings]
        if held is None:
            found[key][row.layer] = (row.outcome, notes)
        elif RANKS.get(row.outcome, 0) >= RANKS.get(held[0], 0):
            found[key][row.layer] = (row.outcome, [*held[1], *notes])
    return found


def list_checks(task: Task) -> list[Verification]:
    """The newest commands that we ran ourselves to check a task, newest first."""
    rows = task.verifications.exclude(command=None).order_by("-pk")
    return list(rows[:SHOWN_OUTPUTS])


def list_defects(task: Task) -> list[Defect]:
    """The defects of a task and its steps, newest first."""
    rows = Defect.objects.filter(_family(task)).select_related("task").order_by("-pk")
    return list(rows[:SHOWN_ROWS])


def decisions_about(defects: Sequence[Defect]) -> Mapping[int, int]:
    """The newest decision about each of some defects: defect id → decision id."""
    rows = Decision.objects.filter(defect__in=[one.pk for one in defects]).order_by("pk")
    return dict(rows.values_list("defect_id", "pk"))


def asking_decisions_of(task: Task) -> list[Decision]:
    """The open decisions about a task and its steps that wait for Sir: a notice does not."""
    notice = DecisionKind.HIGH_NOTICE
    return [one for one in open_decisions_of(task) if one.kind != notice]


def open_decisions_of(task: Task) -> list[Decision]:
    """The open decisions about a task and its steps, oldest first."""
    rows = Decision.objects.filter(_family(task), status=DecisionStatus.OPEN.value)
    return list(rows.select_related("project", "task").order_by("pk")[:SHOWN_ROWS])


@dataclass(frozen=True, slots=True)
class ArtifactItem:
    """A locked artifact, how many steps read it, and the first of them."""

    artifact: Artifact
    readers: int
    read_by: list[Task]


def list_artifacts(task: Task) -> list[ArtifactItem]:
    """The locked artifacts of a task and its steps, newest first."""
    rows = (
        Artifact.objects.filter(_family(task))
        .select_related("task")
        .annotate(readers=Count("reads"))
        .order_by("-pk")[:SHOWN_ROWS]
    )
    items = {one.pk: ArtifactItem(one, one.readers, []) for one in rows}
    reads = ArtifactRead.objects.filter(artifact__in=items).select_related(
        "task__root", "task__assignee"
    )
    for read in reads.order_by("pk")[:SHOWN_READS]:
        if len(items[read.artifact_id].read_by) < SHOWN_READERS:
            items[read.artifact_id].read_by.append(read.task)
    return list(items.values())


def list_children(task: Task) -> list[Task]:
    """What an agent split off below a task that has no plan, oldest first."""
    if task.is_planned:
        return []
    return list(task.children.select_related("assignee").order_by("pk")[:SHOWN_ROWS])


def list_comments(task: Task) -> list[Comment]:
    """Hand-offs and comments on a task and its steps, newest first."""
    rows = Comment.objects.filter(_family(task)).select_related("task", "agent").order_by("-pk")
    return list(rows[:SHOWN_ROWS])


def assignments_of(task: Task) -> QuerySet[Assignment]:
    """The assignments of a task and its steps."""
    return Assignment.objects.filter(_family(task))


def list_assignments(task: Task) -> tuple[list[Assignment], int]:
    """The newest assignments of a task and its steps, and how many there are."""
    rows = assignments_of(task).select_related("task", "agent")
    shown = rows.defer("input", "prompt", "result").order_by("-pk")[:SHOWN_ROWS]
    return list(shown), rows.count()


def newest_prompt(task: Task) -> Assignment | None:
    """The assignment of a task or its steps that a prompt was sent for last."""
    rows = assignments_of(task).exclude(prompt="").select_related("task", "agent")
    return rows.defer("input", "result").order_by("-leased_at", "-pk").first()


def waiting_for_agent(task: Task) -> list[Assignment]:
    """The queued assignments of a task and its steps that only an agent can fill."""
    rows = assignments_of(task).filter(
        status=AssignmentStatus.QUEUED.value, backend=Backend.EXTERNAL.value
    )
    return list(rows.select_related("task").defer("input", "prompt").order_by("pk")[:SHOWN_ROWS])


def find_archive(task: Task) -> DeliveryArchive | None:
    """The newest delivery archive or waiver record of a task; only planned roots have one."""
    if task.parent_id is not None or task.status != TaskStatus.DONE:
        return None
    return DeliveryArchive.objects.filter(task=task).order_by("number").last()
