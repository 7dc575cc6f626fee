"""Foresee where a message would go under a policy: S0, then S1 by rules. Nothing is stored.

No model is called, so a project whose scorer is an agent may route differently at the S1 stage.
Source: DESIGN sections 5 and 6, UI.md section 5.8 ("Policy").
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestration.policy import Policy
from orchestration.rules.prefilter import PrefilterResult, prefilter
from orchestration.rules.scoring import Score, score

MESSAGE = "message"
DIRECT = "direct"


@dataclass(frozen=True, slots=True)
class Foresight:
    """Where a text would go.

    Shape: `goes` is `message` or a route; `score` is None where S0 decides.
    """

    goes: str
    filtered: PrefilterResult
    score: Score | None


def foresee(text: str, policy: Policy) -> Foresight:
    """Foresee one text."""
    filtered = prefilter(text, policy)
    if filtered.outcome == DIRECT:
        return Foresight(MESSAGE if filtered.is_message else DIRECT, filtered, None)
    scored = score(text, policy)
    return Foresight(scored.route.value, filtered, scored)
