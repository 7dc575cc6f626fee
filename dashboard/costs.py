"""What agents cost, in words that say where the figure comes from.

Source: UI.md sections 1.6 and 7.
"""

from __future__ import annotations

from django.utils.translation import gettext

from orchestration.selectors.overview import Cost


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
