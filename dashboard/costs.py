"""What agents cost, in words that say where the figure comes from.

Source: UI.md sections 1.6, 5.4 and 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext

from dashboard.boards import seat_word
from dashboard.places import task_url
from orchestration.models import Project
from orchestration.selectors.costs import Spent, spent_by_root, spent_by_seat
from orchestration.selectors.overview import Cost

SHOWN_ROOTS = 20


def money(amount: float) -> str:
    """An amount in USD; very small ones keep their digits."""
    return f"${amount:.4f}" if 0 < amount < 0.01 else f"${amount:,.2f}"


def cost_words(cost: Cost) -> str:
    """What was reported and how much is unknown; nothing where no agent worked."""
    if cost.reported and cost.unknown:
        return gettext("%(money)s reported · %(n)s unknown") % {
            "money": money(cost.reported), "n": cost.unknown,
        }  # fmt: skip
    if cost.reported:
        return gettext("%(money)s reported") % {"money": money(cost.reported)}
    return gettext("unknown") if cost.unknown else ""


def cost_cell(cost: Cost) -> str:
    """The cost in a table: a figure, the word "unknown", or a plain nothing."""
    if cost.reported:
        return money(cost.reported)
    return gettext("unknown") if cost.unknown else money(0)


# --- The panel of the board -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CostRow:
    """What one seat or one root cost. Shape: the three kinds in words, each by itself."""

    word: str
    reported: str
    computed: str
    unknown: str
    url: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class CostPanel:
    """The panel's tables. `more` is the number of roots that are not shown."""

    seats: Sequence[CostRow]
    whole: CostRow
    roots: Sequence[CostRow]
    more: int


def make_cost_panel(project: Project) -> CostPanel:
    """Read and say what a project cost, by seat and by root; unknown is never added as nothing."""
    seats = spent_by_seat(project.pk)
    roots, total = spent_by_root(project.pk, limit=SHOWN_ROOTS)
    whole = Spent(
        seat="",
        assignments=sum(one.assignments for one in seats),
        own=sum(one.own for one in seats),
        told=sum(one.told for one in seats),
        unknown=sum(one.unknown for one in seats),
        cost_usd=sum(one.cost_usd for one in seats),
        tokens=0, tokens_unknown=0, transient=0,
    )  # fmt: skip
    return CostPanel(
        seats=[_row(seat_word(one.seat), one) for one in seats],
        whole=_row(gettext("All"), whole),
        roots=[
            _row(
                f"{project.key_prefix}-{one.task.number}", one.spent,
                url=task_url(one.task, project), title=one.task.title,
            )
            for one in roots
        ],
        more=total - len(roots),
    )  # fmt: skip


def _row(word: str, spent: Spent, *, url: str = "", title: str = "") -> CostRow:
    reported = computed = unknown = ""
    if spent.told:
        reported = gettext("%(money)s of %(n)s") % {"money": money(spent.cost_usd), "n": spent.told}
    if spent.own:
        computed = gettext("$0 of %(n)s, no model") % {"n": spent.own}
    if spent.unknown:
        unknown = gettext("unknown for %(n)s") % {"n": spent.unknown}
    return CostRow(word, reported, computed, unknown, url, title)
