"""The measures as small tables: a figure with its count, and words where there are too few cases.

Source: UI.md section 5.8 ("Insights"), DESIGN section 12 ("Measures").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext, ngettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from dashboard.boards import seat_word
from dashboard.clock import long_age
from dashboard.defect_lines import CATEGORY_WORDS
from dashboard.verdicts import KINDS
from dashboard.vocabulary import TRUST_BANDS
from orchestration.selectors.costs import Spent
from orchestration.selectors.insights import ENOUGH, Delay, Insights, Rate
from orchestration.states import DecisionKind

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

Words = Mapping[str, "str | StrPromise"]
CHANGE_WORDS: Words = {
    "added": pgettext_lazy("deviation", "step added"),
    "skipped": pgettext_lazy("deviation", "step skipped"),
    "changed": pgettext_lazy("deviation", "step changed"),
}
FINDING_WORDS: Words = {
    "defect": pgettext_lazy("finding", "defect of the work"),
    **CATEGORY_WORDS,
}
ANCHOR_WORDS: Words = {
    "command": _("planned commands and commands of claims"),
    "file": _("“this file was made”"),
    "build": _("“it builds”"),
    "test": _("“the tests pass”"),
}
EXPECTED_SHARES = {"direct": 60, "direct_by_score": 20, "light": 15, "three_step": 5}
EXPECTED_TOKENS = "50–80"


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of a table. `is_fact` is false where there are too few cases to say."""

    word: str
    value: str
    count: str
    is_fact: bool = True
    note: str = ""
    share: float | None = None


@dataclass(frozen=True, slots=True)
class CostLine:
    """What one seat cost, kinds kept apart."""

    word: str
    assignments: int
    own: int
    reported: str
    told: int
    unknown: int
    tokens: str


@dataclass(frozen=True, slots=True)
class InsightTables:
    """The page's tables."""

    rework: Sequence[Figure]
    trust: Sequence[Figure]
    deviations: Sequence[Figure]
    findings: Sequence[Figure]
    anchors: Sequence[Figure]
    retries: Sequence[Figure]
    decisions: Sequence[Figure]
    costs: Sequence[CostLine]
    traffic: Sequence[Figure]


def too_few(cases: int) -> str:
    """Say that there are too few cases."""
    return gettext("too few to say (n = %(n)s)") % {"n": cases}


def rate_figure(word: str | StrPromise, rate: Rate, *, note: str = "") -> Figure:
    """Show a rate in per cent with its count; below ten cases only that there are too few."""
    count = gettext("%(hits)s of %(n)s") % {"hits": rate.hits, "n": rate.cases}
    if rate.share is None:
        return Figure(str(word), too_few(rate.cases), count, is_fact=False, note=note)
    return Figure(str(word), _per_cent(rate.share), count, note=note, share=rate.share)


def _per_cent(share: float) -> str:
    return gettext("%(n)s %%") % {"n": f"{share * 100:.0f}"}


def make_tables(held: Insights) -> InsightTables:
    """Make every table of the page."""
    return InsightTables(
        rework=[
            rate_figure(_("with a confirmed intent"), held.rework_with),
            rate_figure(_("without one"), held.rework_without),
        ],
        trust=[
            rate_figure(gettext("proven trust %(band)s") % {"band": TRUST_BANDS[band]}, rate)
            for band, rate in held.trust.items()
        ],
        deviations=_deviations(held),
        findings=[rate_figure(FINDING_WORDS[code], rate) for code, rate in held.findings.items()],
        anchors=[rate_figure(ANCHOR_WORDS[kind], rate) for kind, rate in held.anchors.items()],
        retries=[
            rate_figure(_("steps that took another try or a fix"), held.retried),
            rate_figure(_("tasks planned again"), held.replanned),
            Figure(gettext("passing faults retried"), str(held.transient), ""),
        ],
        decisions=_decisions(held),
        costs=[_cost(one) for one in held.costs],
        traffic=_traffic(held),
    )


def _deviations(held: Insights) -> list[Figure]:
    lines = [
        Figure(str(CHANGE_WORDS.get(change, change)), str(count), "")
        for change, count in held.deviations.items()
    ]
    return [*lines, rate_figure(_("plans that were left at least once"), held.deviating)]


def _decisions(held: Insights) -> list[Figure]:
    mean = held.decisions
    count = ngettext("%(total)s items, %(n)s task", "%(total)s items, %(n)s tasks", mean.cases) % {
        "total": mean.total, "n": mean.cases,
    }  # fmt: skip
    value = too_few(mean.cases) if mean.value is None else f"{mean.value:.2f}"
    first = Figure(gettext("items a task"), value, count, is_fact=mean.value is not None)
    return [first, *(_delay(one) for one in held.delays)]


def _delay(one: Delay) -> Figure:
    kind = DecisionKind(one.kind)
    count = gettext("%(n)s decided of %(asked)s") % {"n": one.decided, "asked": one.asked}
    if one.seconds is None:
        value, is_fact = too_few(one.decided), False
    else:
        value, is_fact = gettext("median %(time)s") % {"time": long_age(one.seconds)}, True
    return Figure(str(KINDS[kind].word), value, count, is_fact=is_fact)


def _cost(one: Spent) -> CostLine:
    agents = one.told + one.unknown
    if not agents:
        reported = gettext("nothing, our own")
    else:
        reported = f"${one.cost_usd:,.2f}" if one.told else gettext("unknown")
    has_tokens = agents > one.tokens_unknown
    tokens = f"{one.tokens:,}" if has_tokens else (gettext("unknown") if agents else "0")
    return CostLine(
        seat_word(one.seat), one.assignments, one.own, reported, one.told, one.unknown, tokens
    )


def _traffic(held: Insights) -> list[Figure]:
    traffic, whole = held.traffic, held.traffic.messages
    rows = (
        (_("S0: direct by rule"), traffic.direct_by_rule, "direct"),
        (_("S1: direct by score"), traffic.direct_by_score, "direct_by_score"),
        (_("S1: light plan"), traffic.light, "light"),
        (_("S2 and S3: three steps"), traffic.three_step, "three_step"),
    )
    lines = [
        rate_figure(
            word,
            Rate(count, whole),
            note=gettext("expected %(n)s %%") % {"n": EXPECTED_SHARES[code]},
        )
        for word, count, code in rows
    ]
    return [*lines, _overhead(held)]


def _overhead(held: Insights) -> Figure:
    cost, note = held.overhead, gettext("expected %(n)s") % {"n": EXPECTED_TOKENS}
    count = ngettext(
        "%(tokens)s tokens, %(n)s message", "%(tokens)s tokens, %(n)s messages", cost.messages
    ) % {
        "tokens": f"{cost.tokens:,}", "n": cost.messages,
    }  # fmt: skip
    word = gettext("tokens of scoring, a message")
    if cost.per_message is not None:
        return Figure(word, f"{cost.per_message:.1f}", count, note=note)
    if cost.messages >= ENOUGH:
        said = ngettext(
            "unknown: %(n)s scoring told no tokens",
            "unknown: %(n)s scorings told no tokens",
            cost.unknown,
        )
        return Figure(word, said % {"n": cost.unknown}, count, is_fact=False, note=note)
    return Figure(word, too_few(cost.messages), count, is_fact=False, note=note)
