"""Two plans of a task as text: which steps came, went or changed, and the diff of what they say.

Source: UI.md section 5.3 ("version pairs link to a text diff").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from django.utils.translation import gettext

from dashboard.highlighting import DiffSet, diff_set
from dashboard.plan_matrix import ADDED, CHANGED, GONE
from dashboard.vocabulary import Label
from orchestration.models import Plan
from orchestration.rules.diffs import parse_diff
from orchestration.rules.made_diffs import made_diff

FIRST_NAMES = ("id", "action", "title", "summary", "assumptions", "depends_on", "phase")
"""What a reader looks for first; databases give a document's names in an order of their own."""
LINE = 1_000
SHOWN_KEYS = 100


@dataclass(frozen=True, slots=True)
class StepsOfKind:
    """The steps that came, went or changed. Shape: `more` counts those that are not named."""

    label: Label
    keys: Sequence[str]
    more: int


@dataclass(frozen=True, slots=True)
class PlanDiff:
    """What one plan changed of another. Shape: `diff` is None where no page can show it whole."""

    steps: Sequence[StepsOfKind]
    diff: DiffSet | None
    is_same: bool


def plan_word(plan: Plan) -> str:
    """Name a plan: its attempt and its revision."""
    return gettext("attempt %(n)s, rev %(rev)s") % {"n": plan.attempt, "rev": plan.revision}


def plan_diff(old: Plan, new: Plan) -> PlanDiff:
    """Compare what two plans say, word for word."""
    before, after = plan_text(old.body), plan_text(new.body)
    text = made_diff("plan.yaml", before.encode(), after.encode())
    return PlanDiff(
        steps=_steps(old.body, new.body),
        diff=diff_set(parse_diff(text)) if text else None,
        is_same=before == after,
    )


def plan_text(body: object) -> str:
    """Write a plan as YAML, in the same order on every database, one line a text."""
    return yaml.safe_dump(_ordered(body), allow_unicode=True, sort_keys=False, width=LINE)


def _ordered(value: object) -> object:
    if isinstance(value, Mapping):
        names = [name for name in FIRST_NAMES if name in value]
        names += sorted(str(name) for name in value if name not in FIRST_NAMES and name != "steps")
        names += ["steps"] if "steps" in value else []
        return {name: _ordered(value[name]) for name in names}
    if isinstance(value, list | tuple):
        return [_ordered(one) for one in value]
    return value


def _steps(old: object, new: object) -> list[StepsOfKind]:
    before, after = _by_key(old), _by_key(new)
    found = (
        (ADDED, [key for key in after if key not in before]),
        (CHANGED, [key for key in after if key in before and after[key] != before[key]]),
        (GONE, [key for key in before if key not in after]),
    )
    return [
        StepsOfKind(label, keys[:SHOWN_KEYS], max(len(keys) - SHOWN_KEYS, 0))
        for label, keys in found
        if keys
    ]


def _by_key(body: object) -> dict[str, Mapping[str, Any]]:
    steps = body.get("steps", ()) if isinstance(body, Mapping) else ()
    return {str(one.get("id", "")): one for one in steps if isinstance(one, Mapping)}
