"""Measures of the method: each with the number of cases it rests on, and no fact below ten.

Every measure is one statement over the rows as they stand; the number of statements is the same
for ten tasks and for hundreds of thousands. Only trust reads rows, the newest 5,000 that count.
Source: DESIGN section 12 ("Measures") and section 5 (traffic).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import (
    Case,
    CharField,
    Count,
    DurationField,
    Exists,
    ExpressionWrapper,
    F,
    Model,
    OuterRef,
    Q,
    QuerySet,
    Value,
    When,
    Window,
)
from django.db.models.functions import RowNumber

from orchestration.contracts.results import DefectCategory
from orchestration.models import (
    Assignment,
    Blueprint,
    Decision,
    Defect,
    Deviation,
    Handshake,
    Output,
    Task,
    Verification,
)
from orchestration.policy import Backend
from orchestration.rules.trust import proven_trust, trust_band
from orchestration.selectors.board import Traffic, read_traffic
from orchestration.selectors.costs import Spent, spent_by_seat
from orchestration.states import (
    HANDSHAKE_PASSED,
    AssignmentStatus,
    DecisionStatus,
    DefectStatus,
    LayerOutcome,
    Seat,
    Severity,
    TaskKind,
    TaskStatus,
)

ENOUGH = 10
"""Cases below which nothing is said as a fact."""
TRUST_OUTPUTS = 5_000
BANDS = ("low", "partial", "high")
ANCHOR_KINDS = ("command", "file", "build", "test")
CHANGES = ("added", "skipped", "changed")
ENDED = (TaskStatus.DONE.value, TaskStatus.FAILED.value, TaskStatus.FATAL.value)
_UNREAL = (DefectStatus.VOID.value, DefectStatus.REJECTED.value)
_GRAVE = (Severity.CRITICAL.value, Severity.HIGH.value, Severity.MEDIUM.value)


@dataclass(frozen=True, slots=True)
class Rate:
    """How many of some cases. Shape: `share` is None below ten cases: too few to say."""

    hits: int = 0
    cases: int = 0

    @property
    def share(self) -> float | None:
        """The hits among the cases, 0 to 1."""
        return self.hits / self.cases if self.cases >= ENOUGH else None


@dataclass(frozen=True, slots=True)
class Delay:
    """How long Sir took over one kind of item. Units: seconds; None below ten cases."""

    kind: str
    decided: int
    asked: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Mean:
    """How many of one thing to each of another. Shape: `value` is None below ten cases."""

    total: int
    cases: int

    @property
    def value(self) -> float | None:
        """The mean."""
        return self.total / self.cases if self.cases >= ENOUGH else None


@dataclass(frozen=True, slots=True)
class Overhead:
    """Tokens that scoring cost. `unknown` scorings reported none; rules cost none.

    Shape: `per_message` is None below ten messages, and where a scoring is unknown.
    """

    tokens: int
    unknown: int
    messages: int

    @property
    def per_message(self) -> float | None:
        """Tokens a message, all messages counted."""
        if self.messages < ENOUGH or self.unknown:
            return None
        return self.tokens / self.messages


@dataclass(frozen=True, slots=True)
class Insights:
    """Every measure, of one project or of all."""

    rework_with: Rate
    rework_without: Rate
    trust: Mapping[str, Rate]
    trust_is_cut: bool
    deviations: Mapping[str, int]
    deviating: Rate
    findings: Mapping[str, Rate]
    anchors: Mapping[str, Rate]
    retried: Rate
    replanned: Rate
    transient: int
    decisions: Mean
    delays: Sequence[Delay]
    costs: Sequence[Spent]
    traffic: Traffic
    overhead: Overhead


def read_insights(project_id: int | None = None) -> Insights:
    """Measure one project, or all of them. Shape: the same number of queries for any size."""
    rework = _rework(project_id)
    trust, trust_is_cut = _trust(project_id)
    deviations, deviating = _deviations(project_id)
    retried, replanned = _retries(project_id)
    roots = _of(Task, project_id, "project").filter(
        parent__isnull=True, kind=TaskKind.TASK.value
    ).count()  # fmt: skip
    delays = _delays(project_id)
    costs = spent_by_seat(project_id)
    traffic = read_traffic(project_id)
    return Insights(
        rework_with=rework[True],
        rework_without=rework[False],
        trust=trust,
        trust_is_cut=trust_is_cut,
        deviations=deviations,
        deviating=deviating,
        findings=_findings(project_id),
        anchors=_anchors(project_id),
        retried=retried,
        replanned=replanned,
        transient=sum(one.transient for one in costs),
        decisions=Mean(sum(one.asked for one in delays), roots),
        delays=delays,
        costs=costs,
        traffic=traffic,
        overhead=_overhead(costs, traffic),
    )


def _of(model: type[Model], project_id: int | None, path: str) -> QuerySet[Any]:
    rows: QuerySet[Any] = model._default_manager.order_by()
    return rows if project_id is None else rows.filter(**{path: project_id})


def _rework(project_id: int | None) -> dict[bool, Rate]:
    """Of the work that agents ended: how much was sent back, with and without a handshake.

    Sent back: a defect that stood, a failed attempt, or another try.
    """
    worked = Assignment.objects.filter(
        task=OuterRef("pk"),
        seat=Seat.EXECUTOR.value,
        backend=Backend.EXTERNAL.value,
        status__in=[AssignmentStatus.DONE.value, AssignmentStatus.FAILED.value],
    )
    shaken = Handshake.objects.filter(
        task=OuterRef("pk"), status__in=[one.value for one in HANDSHAKE_PASSED]
    )
    found = {True: Rate(), False: Rate()}
    rows = (
        _of(Task, project_id, "project")
        .filter(Exists(worked), status__in=ENDED)
        .annotate(shaken=Exists(shaken), is_back=Exists(_defects()))
        .values("shaken")
        .annotate(
            n=Count("pk"),
            back=Count("pk", filter=Q(is_back=True) | Q(failure_count__gt=0) | Q(tries__gt=0)),
        )
    )
    for row in rows:
        found[bool(row["shaken"])] = Rate(row["back"], row["n"])
    return found


def _defects() -> QuerySet[Defect]:
    return Defect.objects.filter(task=OuterRef("pk")).exclude(status__in=_UNREAL)


def _trust(project_id: int | None) -> tuple[dict[str, Rate], bool]:
    """Hold the proven trust of each hand-in against what came later, by band.

    It turned out true when its step ended done and no defect of Medium or above came after it.
    """
    later = Defect.objects.filter(
        task=OuterRef("task"), severity__in=_GRAVE, created_at__gte=OuterRef("created_at")
    ).exclude(status__in=_UNREAL)
    rows = (
        _of(Output, project_id, "task__project")
        .filter(task__status__in=ENDED, is_orphan=False)
        .exclude(assertions=[])
        .annotate(was_wrong=Exists(later))
        .order_by("-pk")
        .values_list("assertions", "task__status", "was_wrong")[: TRUST_OUTPUTS + 1]
    )
    counted = {band: [0, 0] for band in BANDS}
    seen = list(rows)
    for assertions, status, was_wrong in seen[:TRUST_OUTPUTS]:
        cell = counted[trust_band(proven_trust(assertions))]
        cell[0] += status == TaskStatus.DONE.value and not was_wrong
        cell[1] += 1
    return {band: Rate(*cell) for band, cell in counted.items()}, len(seen) > TRUST_OUTPUTS


def _deviations(project_id: int | None) -> tuple[dict[str, int], Rate]:
    """Count deviations by what they did, and the blueprints that have any."""
    rows = _of(Deviation, project_id, "blueprint__task__project").values("change")
    found = dict.fromkeys(CHANGES, 0)
    found |= {row["change"]: row["n"] for row in rows.annotate(n=Count("pk"))}
    deviating = Deviation.objects.filter(blueprint=OuterRef("pk"))
    plans = _of(Blueprint, project_id, "task__project").annotate(left=Exists(deviating))
    told = plans.aggregate(n=Count("pk"), left_n=Count("pk", filter=Q(left=True)))
    return found, Rate(told["left_n"], told["n"])


def _findings(project_id: int | None) -> dict[str, Rate]:
    """Tell what was found apart: real defects, and the three ways of understanding it otherwise."""
    rows = _of(Defect, project_id, "task__project").exclude(status__in=_UNREAL).values("category")
    counts = {row["category"]: row["n"] for row in rows.annotate(n=Count("pk"))}
    whole = sum(counts.values())
    return {one.value: Rate(counts.get(one.value, 0), whole) for one in DefectCategory}


def _anchors(project_id: int | None) -> dict[str, Rate]:
    """Count what was checked again and failed: planned commands, and claims by what they name."""
    kind = Case(
        *(
            When(name__startswith=f"claim:{one}:", then=Value(one))
            for one in ANCHOR_KINDS
            if one != "command"
        ),
        default=Value("command"),
        output_field=CharField(),
    )
    rows = (
        _of(Verification, project_id, "task__project")
        .filter(layer="L3", outcome__in=[LayerOutcome.PASSED.value, LayerOutcome.FAILED.value])
        .exclude(name="")
        .annotate(anchor=kind)
        .values("anchor")
        .annotate(n=Count("pk"), bad=Count("pk", filter=Q(outcome=LayerOutcome.FAILED.value)))
    )
    found = dict.fromkeys(ANCHOR_KINDS, Rate())
    return found | {row["anchor"]: Rate(row["bad"], row["n"]) for row in rows}


def _retries(project_id: int | None) -> tuple[Rate, Rate]:
    """Count the ended leaves that took another try or fix round, and the roots planned again."""
    told = (
        _of(Task, project_id, "project")
        .filter(kind=TaskKind.TASK.value, status__in=ENDED)
        .aggregate(
            leaves=Count("pk", filter=Q(is_planned=False)),
            again=Count("pk", filter=Q(is_planned=False) & (Q(tries__gt=0) | Q(fix_round__gt=0))),
            roots=Count("pk", filter=Q(is_planned=True, parent__isnull=True)),
            replanned=Count("pk", filter=Q(is_planned=True, parent__isnull=True, attempt__gt=1)),
        )
    )
    return Rate(told["again"], told["leaves"]), Rate(told["replanned"], told["roots"])


def _delays(project_id: int | None) -> list[Delay]:
    """Find how many items of each kind were asked, and the median of those a person decided."""
    rows = _of(Decision, project_id, "project").values("kind")
    asked = {row["kind"]: row["n"] for row in rows.annotate(n=Count("pk"))}
    took = ExpressionWrapper(F("decided_at") - F("created_at"), output_field=DurationField())
    ranked = (
        _of(Decision, project_id, "project")
        .filter(status=DecisionStatus.DECIDED.value, decided_by__isnull=False)
        .annotate(
            took=took,
            place=Window(RowNumber(), partition_by=F("kind"), order_by=[F("took"), F("pk")]),
            n=Window(Count("pk"), partition_by=F("kind")),
        )
    )
    middle = ranked.filter(place__gte=F("n") / 2.0, place__lte=F("n") / 2.0 + 1)
    held: dict[str, list[float]] = {}
    counts: dict[str, int] = {}
    for kind, n, duration in middle.values_list("kind", "n", "took"):
        held.setdefault(kind, []).append(duration.total_seconds())
        counts[kind] = n
    return [
        Delay(
            kind,
            counts.get(kind, 0),
            total,
            sum(held[kind]) / len(held[kind]) if counts.get(kind, 0) >= ENOUGH else None,
        )
        for kind, total in sorted(asked.items())
    ]


def _overhead(costs: Sequence[Spent], traffic: Traffic) -> Overhead:
    scorer = next((one for one in costs if one.seat == Seat.SCORER), None)
    if scorer is None:
        return Overhead(0, 0, traffic.messages)
    return Overhead(scorer.tokens, scorer.tokens_unknown, traffic.messages)
