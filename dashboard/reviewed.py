"""What a final review shows: the work itself, its claims with their proofs, what could not be run.

It shows what was signed, from the item's own content, never what the rows became since.
Source: DESIGN sections 8 and 9 (`final_review`), UI.md section 5.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from dashboard.check_texts import check_words
from dashboard.presenters import mark_view, output_view, trust_view
from dashboard.shapes import DockField, MarkView, OutputView, Trust
from dashboard.vocabulary import MARK_LABELS
from orchestration.mark_words import mark_text
from orchestration.models import Decision
from orchestration.rules.tool_record import BY
from orchestration.states import DecisionKind

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

CONFIDENCE: Mapping[str, str | StrPromise] = {
    "verified": _("verified, it says"),
    "inferred": _("inferred"),
    "uncertain": _("uncertain"),
}
FIGURES: Mapping[str, str | StrPromise] = {
    "turns": _("Turns, new limit"),
    "cost_usd": _("Cost in USD, new limit"),
}


@dataclass(frozen=True, slots=True)
class ReviewedOutput:
    """One output of the work under review."""

    title: str
    digest: str
    marks: Sequence[MarkView]
    content: OutputView | None
    note: str


@dataclass(frozen=True, slots=True)
class ReviewedClaim:
    """One claim, what its agent calls it, and what came of its check."""

    text: str
    confidence: str
    proof: str


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The work that a final review is about."""

    outputs: Sequence[ReviewedOutput]
    claims: Sequence[ReviewedClaim]
    trust: Trust | None
    caveats: Sequence[str]


def marks_of(stored: Sequence[Mapping[str, Any]]) -> list[MarkView]:
    """Show stored marks in the reader's language."""
    return [
        mark_view(str(one["kind"]), mark_text(one), by=str(one.get(BY) or ""))
        for one in stored
        if one.get("kind") in MARK_LABELS
    ]


def reviewed_of(decision: Decision) -> Reviewed | None:
    """Show the work of a final review; nothing for any other kind."""
    if decision.kind != DecisionKind.FINAL_REVIEW:
        return None
    content = decision.content
    claims = list(content.get("claims", ()))
    figures = (content.get("declared_trust"), content.get("proven_trust"))
    return Reviewed(
        outputs=[_output(one) for one in content.get("outputs", ())],
        claims=[_claim(one) for one in claims],
        trust=trust_view(*figures) if claims else None,
        caveats=[check_words(str(one)) for one in content.get("findings", ())],
    )


def _output(one: Mapping[str, Any]) -> ReviewedOutput:
    text = str(one.get("content") or "")
    shown = output_view(text, title=str(one.get("title", ""))) if text.strip() else None
    note = str(one.get("path") or "")
    if one.get("is_cut"):
        note = gettext("only its beginning is shown")
    return ReviewedOutput(
        title=str(one.get("title", "")),
        digest=str(one.get("sha256", "")),
        marks=marks_of(one.get("marks") or ()),
        content=shown,
        note=note,
    )


def _claim(one: Mapping[str, Any]) -> ReviewedClaim:
    confidence = str(one.get("confidence", ""))
    return ReviewedClaim(
        text=str(one.get("claim", "")),
        confidence=str(CONFIDENCE.get(confidence, confidence)),
        proof=proof_words(one.get("proof") or {}),
    )


def proof_words(proof: Mapping[str, Any]) -> str:
    """Say what supports a claim, strongest first."""
    grade, is_ok = proof.get("grade"), proof.get("ok")
    if grade == "rerun":
        return gettext("run by us: holds") if is_ok else gettext("run by us: does not hold")
    if grade == "observed":
        return gettext("seen in its record: holds") if is_ok else gettext("its record says no")
    if grade == "self_reported":
        return gettext("only its word")
    return gettext("nothing")


def budget_fields(decision: Decision) -> list[DockField]:
    """The new limits that Sir may type, each with what it would be by itself."""
    over: Mapping[str, Mapping[str, float]] = decision.content.get("exceeded") or {}
    fields = []
    for name, one in over.items():
        if name not in FIGURES:
            continue
        hint = gettext("used %(used)s of %(limit)s") % {
            "used": f"{one['used']:g}", "limit": f"{one['limit']:g}"
        }  # fmt: skip
        value = f"{one['used'] + one['limit']:g}"
        fields.append(DockField(name, FIGURES[name], kind="text", value=value, hint=hint))
    return fields
