"""S0 and S1 as they stand on a task's page: the deciding rule, hits with offsets, five dimensions.

Source: UI.md section 5.5, DESIGN sections 5 and 6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext, ngettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from dashboard.charts import Dimension, ScoreScale
from dashboard.drawings import scale_parts
from dashboard.phrases import listed
from orchestration.models import Assessment
from orchestration.policy import Policy, Thresholds
from orchestration.rules.redlines import KIND, red_lines_in
from orchestration.states import Route

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

Words = Mapping[str, "str | StrPromise"]
SIGNAL_WORDS: Words = {
    "length": _("length"),
    "paragraphs": _("paragraphs"),
    "list": _("list"),
    "intent_verb": _("intent verb"),
    "scope_word": _("scope word"),
    "multi_step": _("multi-step"),
    "uncertainty": _("uncertainty"),
    "explicit_trigger": _("trigger"),
    KIND: _("red line"),
}
DIMENSION_WORDS: Words = {
    "steps": _("Steps"),
    "domains": _("Domains"),
    "uncertainty": _("Uncertainty"),
    "failure_cost": _("Failure cost"),
    "toolchain": _("Toolchain"),
}
ROUTE_WORDS: Words = {
    "direct": _("direct"),
    "light_plan": _("light plan"),
    "three_step": _("three-step"),
    "workflow": _("playbook"),
}
COMPLEXITY_WORDS: Words = {
    "low": _("low complexity"),
    "medium": _("medium complexity"),
    "high": _("high complexity"),
}
RISK_WORDS: Words = {
    "low": _("risk low"),
    "medium": _("risk medium"),
    "high": _("risk high"),
    "critical": _("risk critical"),
}
DIRECT_WORDS: Words = {
    "small_talk": _("Sent direct: small talk."),
    "continuation": _("Sent direct: it goes on with earlier work."),
    "question": _("Sent direct: a question."),
    "instruction": _("Sent direct: one simple instruction."),
}
REASON_WORDS: Words = {
    "components": _("parts listed"),
    "implied": _("implied"),
    "actual_steps": _("steps taken"),
    "no_technology_named": _("no technology named"),
    "uncertain": _("reported uncertain"),
    "blockers": _("blockers met"),
    "failures": _("failures"),
}
BACKEND_WORDS: Words = {
    "rules": pgettext_lazy("backend", "rules"),
    "command": pgettext_lazy("backend", "command"),
    "external": pgettext_lazy("backend", "agent"),
    "playbook": pgettext_lazy("backend", "playbook"),
    "workflow": pgettext_lazy("backend", "workflow"),
}
TRIGGER_WORDS: Words = {
    "failures": _("it failed repeatedly"),
    "steps": _("more steps than estimated"),
    "blockers": _("unexpected blockers"),
    "new_domain": _("a new domain"),
    "uncertain": _("its executor is unsure"),
}
RULE_WORDS: Words = {
    "planned_step": _("A step of a plan that says what to run; nothing to assess."),
    "no_signal": _("No signal in the text."),
}
SHOWN_HITS = 6
SHOWN_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class Hit:
    """One match in the text. Shape: `offset` is None where a kind has no place."""

    text: str
    offset: int | None


@dataclass(frozen=True, slots=True)
class SignalLine:
    """All hits of one kind."""

    word: str
    hits: Sequence[Hit]
    more: int


@dataclass(frozen=True, slots=True)
class FilterView:
    """S0: where it sent the text and why."""

    words: str
    lines: Sequence[SignalLine]
    elapsed_us: int
    is_direct: bool


def filter_view(
    *, outcome: str, rule: str, signals: Sequence[Mapping[str, Any]], elapsed_us: int
) -> FilterView:
    """Show what S0 decided; the same for a stored record and for a preview."""
    is_direct = outcome == "direct"
    words = _filter_words(rule, len(signals), is_direct)
    return FilterView(words, _signal_lines(signals), elapsed_us, is_direct)


def red_line_view(text: str, policy: Policy) -> SignalLine | None:
    """Show what Sir is asked about before a text starts; None where it crosses no red line."""
    lines = _signal_lines([one.as_json() for one in red_lines_in([text], policy)])
    return lines[0] if lines else None


def _signal_lines(signals: Sequence[Mapping[str, Any]]) -> list[SignalLine]:
    by_kind: dict[str, list[Hit]] = {}
    for one in signals:
        text = str(one.get("text") or "")
        cut = text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
        offset = one.get("offset")
        hit = Hit(cut, offset if isinstance(offset, int) else None)
        by_kind.setdefault(str(one.get("kind", "")), []).append(hit)
    return [
        SignalLine(
            str(SIGNAL_WORDS.get(kind, kind)), hits[:SHOWN_HITS], max(len(hits) - SHOWN_HITS, 0)
        )
        for kind, hits in by_kind.items()
    ]


def _filter_words(rule: str, count: int, is_direct: bool) -> str:  # noqa: FBT001  # one caller
    if rule in RULE_WORDS:
        return str(RULE_WORDS[rule])
    if is_direct:
        name = rule.rpartition(".")[2]
        known = DIRECT_WORDS.get(name)
        return str(known) if known else gettext("Sent direct: %(rule)s.") % {"rule": name}
    words = ngettext(
        "To scoring. No whitelist pattern matched the whole text; %(n)s signal hit.",
        "To scoring. No whitelist pattern matched the whole text; %(n)s signals hit.",
        count,
    )
    return words % {"n": count}


def score_view(assessment: Assessment, thresholds: Thresholds) -> ScoreScale | None:
    """Show an S1 record on its scale; None for one without a total."""
    if assessment.total is None:
        return None
    simple, medium = thresholds.s1_simple_threshold, thresholds.s1_medium_threshold
    parts, x = scale_parts(assessment.total, simple, medium)
    dimensions = [
        Dimension(
            DIMENSION_WORDS.get(name, name), int(value), _evidence_words(assessment.evidence, name)
        )
        for name, value in assessment.dimensions.items()
    ]
    return ScoreScale(assessment.total, x, parts, simple, medium, dimensions)


def _evidence_words(evidence: object, dimension: str) -> str:
    """What was counted for one dimension: the words found, else the reason's code."""
    rows = evidence if isinstance(evidence, list) else []
    found: dict[str, int] = {}
    for one in rows:
        if isinstance(one, dict) and one.get("dimension") == dimension:
            reason = str(one.get("reason", ""))
            word = str(one.get("text") or "") or str(REASON_WORDS.get(reason, reason))
            found[word] = found.get(word, 0) + int(one.get("count") or 1)
    words = [f"{word} ×{n}" if n > 1 else word for word, n in found.items()]
    return listed(words)


def backend_word(backend: str) -> str:
    """Who of ours filled a seat, in a word; a name that is none of ours stays as it is."""
    return str(BACKEND_WORDS.get(backend, backend))


def scorer_words(score: Assessment) -> str:
    """Who scored a task."""
    return score.agent.name if score.agent is not None else backend_word(score.backend)


def upgrade_lines(scores: Sequence[Assessment]) -> list[tuple[str, int | None, bool]]:
    """Why a task was scored again while it ran, its new total, and whether it is planned now."""
    return [
        (
            str(TRIGGER_WORDS.get(one.trigger, one.trigger)),
            one.total,
            one.outcome == Route.THREE_STEP,
        )
        for one in scores
        if one.trigger
    ]


def route_words(route: str, complexity: str, risk: str) -> str:
    """Route, complexity and risk of a task, as far as they are known."""
    words = [
        ROUTE_WORDS.get(route, route),
        COMPLEXITY_WORDS.get(complexity, complexity),
        RISK_WORDS.get(risk, risk),
    ]
    return listed(words)
