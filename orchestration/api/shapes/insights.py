"""The measures as the API shows them: each with its count; a figure is null below ten cases."""

from __future__ import annotations

from typing import Self

from orchestration.api.shapes.base import Shape
from orchestration.selectors.insights import Insights, Rate


class RateShape(Shape):
    """Hits among cases. `share` is null below ten cases: too few to say."""

    hits: int
    cases: int
    share: float | None


class ReworkShape(Shape):
    """Work of agents that was sent back, with and without a confirmed intent."""

    with_handshake: RateShape
    without_handshake: RateShape


class DeviationsShape(Shape):
    """Deviations by category, and the blueprints that have any."""

    by_category: dict[str, int]
    blueprints: RateShape


class RetriesShape(Shape):
    """Steps that took another try or fix round, roots planned again, passing faults retried."""

    steps: RateShape
    roots: RateShape
    transient: int


class DelayShape(Shape):
    """One kind of decision. Units: `median_seconds`, of what a person decided; null below ten."""

    kind: str
    asked: int
    decided: int
    median_seconds: float | None


class DecisionsShape(Shape):
    """How often Sir is asked, and how long he takes."""

    total: int
    tasks: int
    per_task: float | None
    by_kind: list[DelayShape]


class SeatCostShape(Shape):
    """What a seat cost. `reported_usd` is of the `reported` assignments; `unknown` said nothing."""

    seat: str
    assignments: int
    own: int
    reported: int
    unknown: int
    reported_usd: float
    tokens: int
    tokens_unknown: int


class TrafficShape(Shape):
    """Where messages went. Units: counts; `tokens_per_message` is null below ten or unknown."""

    messages: int
    direct_by_rule: int
    scored: int
    direct_by_score: int
    light_plan: int
    three_step: int
    scorer_tokens: int
    tokens_per_message: float | None


class InsightsShape(Shape):
    """Every measure of one project."""

    enough: int
    rework: ReworkShape
    trust: dict[str, RateShape]
    deviations: DeviationsShape
    findings: dict[str, RateShape]
    failed_anchors: dict[str, RateShape]
    retries: RetriesShape
    decisions: DecisionsShape
    cost_by_seat: list[SeatCostShape]
    traffic: TrafficShape

    @classmethod
    def of_insights(cls, held: Insights, *, enough: int) -> Self:
        """Shape the measures."""
        return cls(
            enough=enough,
            rework=ReworkShape(
                with_handshake=_rate(held.rework_with),
                without_handshake=_rate(held.rework_without),
            ),
            trust={band: _rate(one) for band, one in held.trust.items()},
            deviations=DeviationsShape(
                by_category=dict(held.deviations), blueprints=_rate(held.deviating)
            ),
            findings={category: _rate(one) for category, one in held.findings.items()},
            failed_anchors={kind: _rate(one) for kind, one in held.anchors.items()},
            retries=RetriesShape(
                steps=_rate(held.retried), roots=_rate(held.replanned), transient=held.transient
            ),
            decisions=_decisions(held),
            cost_by_seat=_costs(held),
            traffic=_traffic(held),
        )


def _rate(one: Rate) -> RateShape:
    return RateShape(hits=one.hits, cases=one.cases, share=one.share)


def _decisions(held: Insights) -> DecisionsShape:
    return DecisionsShape(
        total=held.decisions.total,
        tasks=held.decisions.cases,
        per_task=held.decisions.value,
        by_kind=[
            DelayShape(
                kind=one.kind, asked=one.asked, decided=one.decided, median_seconds=one.seconds
            )
            for one in held.delays
        ],
    )


def _costs(held: Insights) -> list[SeatCostShape]:
    return [
        SeatCostShape(
            seat=one.seat,
            assignments=one.assignments,
            own=one.own,
            reported=one.told,
            unknown=one.unknown,
            reported_usd=one.cost_usd,
            tokens=one.tokens,
            tokens_unknown=one.tokens_unknown,
        )
        for one in held.costs
    ]


def _traffic(held: Insights) -> TrafficShape:
    return TrafficShape(
        messages=held.traffic.messages,
        direct_by_rule=held.traffic.direct_by_rule,
        scored=held.traffic.scored,
        direct_by_score=held.traffic.direct_by_score,
        light_plan=held.traffic.light,
        three_step=held.traffic.three_step,
        scorer_tokens=held.overhead.tokens,
        tokens_per_message=held.overhead.per_message,
    )
