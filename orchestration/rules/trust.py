"""How far claims can be trusted: declared and proven, anchors in free text, acceptance by risk.

`declared` counts what an agent says is verified; `proven` what we or a harness proved. The word
"verified" changes no grade.
Source: DESIGN section 8 ("Trust", "Acceptance by risk"), source document 003.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestration.rules.tool_record import (
    NONE,
    OBSERVED,
    RERUN,
    SELF_REPORTED,
    Call,
    normal_command,
    proves_nothing,
)
from orchestration.states import Complexity, RiskLevel

BAND_LOW, BAND_PARTIAL = 0.34, 0.75
PROVEN_GRADES = frozenset({RERUN, OBSERVED})
Assertion = Mapping[str, Any]

_ANCHOR = re.compile(r"[\[［【]\s*L(?P<level>[1-5])\s*[:：](?P<text>[^\]］】\n]{1,300})[\]］】]")
_CLAUSE = re.compile(r"[，,。；;！!？?\n]+|\.(?=\s|$)")
_CONCLUDES = re.compile(
    r"\s*(?:所以|因此|因而|故而?|由此|综上|可见|于是|结论|"
    r"(?:so|therefore|thus|hence|consequently|in conclusion|we conclude|it follows)\b)",
    re.IGNORECASE,
)
_INFERS = re.compile(
    r"因为|由于|导致|说明|表明|意味着|.后.{0,20}(?:降|升|减|增|提高|变|达到|缩短|改善)|"
    r"\b(?:because|caused? by|which means|due to|leads? to|"
    r"(?:after|with|once)\b.{0,60}\b(?:drops?|falls?|rises?|improves?|becomes?|goes))\b",
    re.IGNORECASE,
)
_OPENS = re.compile(
    r"\s*(?:after|once|when|if|since|because|while|given|although|with|如果|虽然|当)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Anchor:
    """A checkable fact named in free text. Shape: `anchor_level` 1 to 5, no verification layer."""

    anchor_level: int
    text: str


@dataclass(frozen=True, slots=True)
class AnchorReading:
    """What was found in free text. `steps` are its reasoning steps."""

    anchors: tuple[Anchor, ...]
    steps: int

    @property
    def density(self) -> float:
        """Anchors to reasoning steps, 0 to 1."""
        return min(1.0, len(self.anchors) / self.steps) if self.steps else 0.0


def read_anchors(text: str) -> AnchorReading:
    """Count anchors and reasoning steps of a text.

    A step is a clause that states something. A conclusion that is drawn and not itself anchored is
    one more, unless it stands as a clause of its own and so is counted already.
    """
    anchors = tuple(
        Anchor(int(found["level"]), found["text"].strip()) for found in _ANCHOR.finditer(text)
    )
    bare = _ANCHOR.sub(" ", text)
    clauses = [part.strip(" 　\t\"'“”「」:：-*#") for part in _CLAUSE.split(bare)]
    clauses = [part for part in clauses if any(map(str.isalnum, part))]
    stated = [
        part
        for at, part in enumerate(clauses)
        if not (_OPENS.match(part) and part.isascii() and at + 1 < len(clauses))
    ]
    concludes = any(_CONCLUDES.match(part) for part in clauses)
    is_drawn = _INFERS.search(bare) is not None
    return AnchorReading(anchors, len(stated) + (is_drawn and not concludes))


def declared_trust(assertions: Sequence[Assertion]) -> float:
    """The share of claims that are called verified; 0 with none."""
    if not assertions:
        return 0.0
    return sum(1 for one in assertions if one.get("confidence") == "verified") / len(assertions)


def proven_trust(assertions: Sequence[Assertion]) -> float:
    """The share of claims that we or a harness proved; 0 with none."""
    if not assertions:
        return 0.0
    return sum(is_proven(one) for one in assertions) / len(assertions)


def is_proven(assertion: Assertion) -> bool:
    """Whether a stored claim was proven: its check succeeded, and not on its agent's word."""
    proof: Mapping[str, Any] = assertion.get("proof") or {}
    return bool(proof.get("ok")) and proof.get("grade") in PROVEN_GRADES


def trust_band(trust: float) -> str:
    """Name a trust figure: low, partial or high."""
    return "low" if trust < BAND_LOW else "partial" if trust < BAND_PARTIAL else "high"


def to_validate(
    assertions: Sequence[Assertion], complexity: Complexity, risk: RiskLevel
) -> list[int]:
    """Say which claims have their own commands run: the indexes, in order.

    From medium complexity (layer L3) every anchor; at medium risk what is inferred; at high and
    critical risk everything.
    """
    every = complexity is not Complexity.LOW or risk in (RiskLevel.HIGH, RiskLevel.CRITICAL)
    return [
        at
        for at, one in enumerate(assertions)
        if one.get("verify_command")
        and (every or (risk is RiskLevel.MEDIUM and one.get("confidence") == "inferred"))
    ]


def unvalidated(assertions: Sequence[Assertion], risk: RiskLevel) -> list[str]:
    """Name the claims that high and critical risk may not take as they are.

    Every one that is not verified and that nothing proved.
    """
    if risk not in (RiskLevel.HIGH, RiskLevel.CRITICAL):
        return []
    return [
        str(one.get("claim", ""))
        for one in assertions
        if one.get("confidence") != "verified" and not is_proven(one)
    ]


def proof_of(
    assertion: Assertion, calls: Sequence[Call], rerun: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Grade one claim: what we ran ourselves, else the newest recorded call of its own command.

    Shape: grade, ok (None where nothing was run), evidence (ids of tool calls), note.
    """
    if rerun is not None and rerun.get("outcome") != "not_possible":
        return {"grade": RERUN, "ok": bool(rerun["ok"]), "evidence": [],
                "exit_code": rerun.get("exit_code")}  # fmt: skip
    command = str(assertion.get("verify_text") or "")
    if command and not proves_nothing(command):
        wanted = normal_command(command)
        same = [one for one in calls if one.command and normal_command(one.command) == wanted]
        best = [one for one in same if one.grade == OBSERVED] or same
        if best:
            last = best[-1]
            return {"grade": last.grade, "ok": last.is_ok, "evidence": [last.id],
                    "exit_code": last.exit_code}  # fmt: skip
    told = assertion.get("confidence") == "verified" or bool(assertion.get("evidence"))
    return {"grade": SELF_REPORTED if told else NONE, "ok": None, "evidence": []}
