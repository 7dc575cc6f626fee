"""What each seat and each root cost: reported by agents, known to be nothing, or unknown.

The kinds are never mixed: work of our own backends calls no model, so it costs nothing.
Source: DESIGN section 12 ("Measures"), UI.md section 1.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, FloatField, IntegerField, Q, QuerySet, Sum
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Coalesce

from orchestration.models import Assignment, Task
from orchestration.policy import Backend
from orchestration.states import Seat


@dataclass(frozen=True, slots=True)
class Spent:
    """One seat, or all of a root. Units: `cost_usd` in USD, of the `told` ones that reported it.

    Shape: `own` assignments ran on our backends; `unknown` are of agents that reported no cost.
    """

    seat: str
    assignments: int
    own: int
    told: int
    unknown: int
    cost_usd: float
    tokens: int
    tokens_unknown: int
    transient: int


def spent_by_seat(project_id: int | None = None) -> list[Spent]:
    """Add up each seat's work in one statement. Shape: seats that worked, in the method's order."""
    found: Any = _worked(project_id).values("seat").annotate(**_sums())
    order = list(Seat)
    return sorted((_spent(row) for row in found), key=lambda one: order.index(Seat(one.seat)))


@dataclass(frozen=True, slots=True)
class SpentRoot:
    """One root with all below it. Units and kinds as those of a seat."""

    task: Task
    spent: Spent


def spent_by_root(project_id: int, *, limit: int) -> tuple[list[SpentRoot], int]:
    """List the roots whose agents told most, unknown ones after them, and count all that worked.

    Shape: at most `limit` rows; roots that only our own backends worked on come last.
    """
    roots: Any = _worked(project_id).values(top=Coalesce("task__root", "task"))
    ranked = roots.annotate(**_sums()).order_by(F("cost").desc(nulls_last=True), "-agents", "-top")
    rows = list(ranked[:limit])
    total = roots.distinct().count() if len(rows) == limit else len(rows)
    tasks = Task.objects.only("number", "title", "project").in_bulk([row["top"] for row in rows])
    return [SpentRoot(tasks[row["top"]], _spent(row)) for row in rows], total


def _worked(project_id: int | None) -> QuerySet[Assignment]:
    rows = Assignment.objects.filter(leased_at__isnull=False).order_by()
    return rows if project_id is None else rows.filter(project=project_id)


def _sums() -> dict[str, Any]:
    """What is counted; the kinds of cost stay apart."""
    is_agent = Q(backend=Backend.EXTERNAL.value)
    sent = Cast(KeyTextTransform("input_tokens", "usage"), IntegerField())
    got = Cast(KeyTextTransform("output_tokens", "usage"), IntegerField())
    has_cost = Q(usage__cost_usd__isnull=False) & ~Q(usage__cost_usd=None)
    has_tokens = Q(usage__input_tokens__isnull=False) | Q(usage__output_tokens__isnull=False)
    return {
        "n": Count("pk"),
        "own": Count("pk", filter=~is_agent),
        "told": Count("pk", filter=is_agent & has_cost),
        "agents": Count("pk", filter=is_agent),
        "cost": Sum(Cast(KeyTextTransform("cost_usd", "usage"), FloatField()), filter=is_agent),
        "tokens": Sum(Coalesce(sent, 0) + Coalesce(got, 0), filter=is_agent),
        "with_tokens": Count("pk", filter=is_agent & has_tokens),
        "transient": Sum("transient_count"),
    }


def _spent(row: dict[str, Any]) -> Spent:
    return Spent(
        seat=row.get("seat", ""),
        assignments=row["n"],
        own=row["own"],
        told=row["told"],
        unknown=row["agents"] - row["told"],
        cost_usd=row["cost"] or 0.0,
        tokens=row["tokens"] or 0,
        tokens_unknown=row["agents"] - row["with_tokens"],
        transient=row["transient"] or 0,
    )
