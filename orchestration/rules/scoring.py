"""S1: score a text in five dimensions, from evidence that can be counted, and route by the total.

The `rules` scorer reads the text only. Other scorers send the same shape, checked here.
Source: DESIGN section 6.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, Literal

from orchestration.errors import Fault, Invalid
from orchestration.policy import DEFAULT_POLICY, Policy
from orchestration.rules.evidence import (
    DIMENSIONS,
    HIGHEST,
    LOWEST,
    Dimensions,
    Evidence,
    RunRecord,
    assess,
)
from orchestration.states import Complexity, RiskLevel, Route

__all__ = [
    "COLLABORATION",
    "CollaborationMode",
    "Dimensions",
    "Evidence",
    "RunRecord",
    "Score",
    "complexity_of",
    "parse_external_score",
    "rescore",
    "risk_of",
    "route_of",
    "score",
    "score_of",
    "upgrade_due",
    "verification_layers",
]

MAX_DEPTH = 3
MAX_RATIONALE_LENGTH = 4_000


@dataclass(frozen=True, slots=True)
class CollaborationMode:
    """How agents work together on a task of one complexity."""

    handshake: bool
    annotation: Literal["minimal", "full"]
    layers: tuple[str, ...]
    effort: Literal["low", "medium", "high"]
    thinking: Literal["disabled", "adaptive"]


COLLABORATION: Mapping[Complexity, CollaborationMode] = MappingProxyType(
    {
        Complexity.LOW: CollaborationMode(
            handshake=False,
            annotation="minimal",
            layers=("L1", "L2"),
            effort="low",
            thinking="disabled",
        ),
        Complexity.MEDIUM: CollaborationMode(
            handshake=True,
            annotation="full",
            layers=("L1", "L2", "L3"),
            effort="medium",
            thinking="adaptive",
        ),
        Complexity.HIGH: CollaborationMode(
            handshake=True,
            annotation="full",
            layers=("L1", "L2", "L3", "L4"),
            effort="high",
            thinking="adaptive",
        ),
    }
)
_HIGH_RISKS = frozenset({RiskLevel.HIGH, RiskLevel.CRITICAL})


@dataclass(frozen=True, slots=True)
class Score:
    """What S1 decided. Shape: `total` 5 to 25."""

    dimensions: Dimensions
    total: int
    route: Route
    complexity: Complexity
    risk_level: RiskLevel
    evidence: tuple[Evidence, ...] = ()
    rationale: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the score as the API shows it."""
        return {
            "dimensions": self.dimensions._asdict(),
            "total": self.total,
            "route": str(self.route),
            "complexity": str(self.complexity),
            "risk_level": str(self.risk_level),
            "evidence": [asdict(evidence) for evidence in self.evidence],
            "rationale": self.rationale,
        }


def verification_layers(complexity: Complexity, risk_level: RiskLevel) -> tuple[str, ...]:
    """Return the layers that work of this complexity and risk goes through, cheapest first."""
    layers = COLLABORATION[complexity].layers
    if complexity is Complexity.HIGH and risk_level is RiskLevel.CRITICAL:
        return (*layers, "L5")
    return layers


def risk_of(failure_cost: int) -> RiskLevel:
    """Return the risk that a failure cost stands for where no plan step names one."""
    if failure_cost >= HIGHEST:
        return RiskLevel.HIGH
    return RiskLevel.MEDIUM if failure_cost >= 3 else RiskLevel.LOW


def complexity_of(total: int, risk_level: RiskLevel, policy: Policy) -> Complexity:
    """Return the complexity of a total; a high risk makes any work complex."""
    thresholds = policy.thresholds
    if risk_level in _HIGH_RISKS or total > thresholds.s1_medium_threshold:
        return Complexity.HIGH
    return Complexity.LOW if total <= thresholds.s1_simple_threshold else Complexity.MEDIUM


def route_of(total: int, depth: int, policy: Policy) -> Route:
    """Return the route of a total; at the deepest level work is never planned any further."""
    if total <= policy.thresholds.s1_simple_threshold:
        return Route.DIRECT
    deepest = min(MAX_DEPTH, policy.limits.depth)
    if total <= policy.thresholds.s1_medium_threshold or depth >= deepest:
        return Route.LIGHT_PLAN
    return Route.THREE_STEP


def score_of(
    dimensions: Dimensions,
    policy: Policy,
    *,
    depth: int = 0,
    has_red_line: bool = False,
    evidence: Iterable[Evidence] = (),
    rationale: str = "",
) -> Score:
    """Make a score of five dimensions: total, route, risk and complexity follow from them."""
    total = sum(dimensions)
    risk = RiskLevel.CRITICAL if has_red_line else risk_of(dimensions.failure_cost)
    return Score(
        dimensions=dimensions,
        total=total,
        route=route_of(total, depth, policy),
        complexity=complexity_of(total, risk, policy),
        risk_level=risk,
        evidence=tuple(evidence),
        rationale=rationale,
    )


def score(text: str, policy: Policy, record: RunRecord | None = None, *, depth: int = 0) -> Score:
    """Score a text by rules; with a run record, the text and what happened since."""
    dimensions, evidence, has_red_line = assess(text, policy, record)
    return score_of(dimensions, policy, depth=depth, has_red_line=has_red_line, evidence=evidence)


def rescore(text: str, record: RunRecord, policy: Policy, *, depth: int = 0) -> Score:
    """Score a running task again, from its text and its run record."""
    return score(text, policy, record, depth=depth)


def upgrade_due(record: RunRecord, policy: Policy) -> str | None:
    """Return the name of the first thing that calls for a new score, or nothing."""
    triggers = (
        ("failures", record.failure_count >= policy.thresholds.dynamic_upgrade_failure_threshold),
        ("steps", record.actual_steps > 2 * record.estimated_steps),
        ("blockers", record.unexpected_blockers > 0),
        ("new_domain", bool(record.reported_domains)),
        ("uncertain", record.is_uncertain),
    )
    return next((name for name, due in triggers if due), None)


def parse_external_score(
    document: object, policy: Policy = DEFAULT_POLICY, *, depth: int = 0, has_red_line: bool = False
) -> Score:
    """Read a score that another scorer sent. Unknown keys are left to the caller.

    Errors: Invalid with every fault: a dimension missing, not a whole number, or not 1 to 5.
    """
    faults: list[Fault] = []
    given = document if isinstance(document, Mapping) else None
    if given is None:
        faults.append(Fault(path="", message="must be an object"))
        given = {}
    rationale = given.get("rationale")
    if not isinstance(rationale, str):
        faults.append(Fault(path="rationale", message="must be text"))
    elif len(rationale) > MAX_RATIONALE_LENGTH:
        faults.append(
            Fault(path="rationale", message=f"is longer than {MAX_RATIONALE_LENGTH} characters")
        )
    values = _external_dimensions(given.get("dimensions"), faults)
    if faults:
        raise Invalid(
            f"The score has {len(faults)} fault(s): "
            + "; ".join(f"{fault['path']} {fault['message']}" for fault in faults),
            errors=faults,
        )
    return score_of(
        Dimensions(**values),
        policy,
        depth=depth,
        has_red_line=has_red_line,
        rationale=str(rationale),
    )


def _external_dimensions(given: object, faults: list[Fault]) -> dict[str, int]:
    """Read the five dimensions, adding a fault for each that is missing or wrong."""
    if not isinstance(given, Mapping):
        faults.append(Fault(path="dimensions", message="must be an object"))
        return {}
    values: dict[str, int] = {}
    for name in DIMENSIONS:
        value = given.get(name)
        if name not in given:
            faults.append(Fault(path=f"dimensions.{name}", message="is missing"))
        elif type(value) is not int or not LOWEST <= value <= HIGHEST:
            faults.append(
                Fault(
                    path=f"dimensions.{name}",
                    message=f"must be a whole number from {LOWEST} to {HIGHEST}",
                )
            )
        else:
            values[name] = value
    return values
