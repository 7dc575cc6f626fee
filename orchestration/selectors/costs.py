"""What each seat cost: reported by agents, known to be nothing, or unknown; never mixed.

Work of our own backends calls no model, so it costs nothing and is counted apart.
Source: DESIGN section 12 ("Measures"), UI.md section 1.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, FloatField, IntegerField, Q, Sum
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Coalesce

from orchestration.models import Assignment
from orchestration.policy import Backend
from orchestration.states import Seat


@dataclass(frozen=True, slots=True)
class Spent:
    """One seat. Units: `cost_usd` in US dollars, of the `told` assignments that reported one.

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
    rows = Assignment.objects.filter(leased_at__isnull=False).order_by()
    if project_id is not None:
        rows = rows.filter(project=project_id)
    is_agent = Q(backend=Backend.EXTERNAL.value)
    cost = Cast(KeyTextTransform("cost_usd", "usage"), FloatField())
    sent = Cast(KeyTextTransform("input_tokens", "usage"), IntegerField())
    got = Cast(KeyTextTransform("output_tokens", "usage"), IntegerField())
    has_cost = Q(usage__cost_usd__isnull=False) & ~Q(usage__cost_usd=None)
    has_tokens = Q(usage__input_tokens__isnull=False) | Q(usage__output_tokens__isnull=False)
    found: Any = rows.values("seat").annotate(
        n=Count("pk"),
        own=Count("pk", filter=~is_agent),
        told=Count("pk", filter=is_agent & has_cost),
        agents=Count("pk", filter=is_agent),
        cost=Sum(cost, filter=is_agent),
        tokens=Sum(Coalesce(sent, 0) + Coalesce(got, 0), filter=is_agent),
        with_tokens=Count("pk", filter=is_agent & has_tokens),
        transient=Sum("transient_count"),
    )
    order = list(Seat)
    return sorted((_spent(row) for row in found), key=lambda one: order.index(Seat(one.seat)))


def _spent(row: dict[str, Any]) -> Spent:
    return Spent(
        seat=row["seat"],
        assignments=row["n"],
        own=row["own"],
        told=row["told"],
        unknown=row["agents"] - row["told"],
        cost_usd=row["cost"] or 0.0,
        tokens=row["tokens"] or 0,
        tokens_unknown=row["agents"] - row["with_tokens"],
        transient=row["transient"] or 0,
    )
