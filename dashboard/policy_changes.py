"""What a form of the policy page would change, in lines to read before it is saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext

from dashboard.places import task_key, task_url
from dashboard.policy_fields import backend_words, kind_of, shown, shown_default
from dashboard.policy_fields import setting_word as word_of
from dashboard.policy_words import goes_word
from orchestration.models import Project
from orchestration.policy import Policy
from orchestration.selectors.policy import Trial

SHOWN_CHARACTERS = 160


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """One setting before and after. Shape: `removed` and `added` are entries of a list."""

    word: str
    path: str
    before: str
    after: str
    removed: Sequence[str] = ()
    added: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ReroutedLine:
    """A message that would go elsewhere."""

    url: str
    key: str
    text: str
    before: str
    after: str


def patch_of(standing: Policy, wanted: Policy, section: str) -> dict[str, Any]:
    """The settings of a section that differ, as PATCH takes them."""
    before, after = standing.document()[section], wanted.document()[section]
    return {key: value for key, value in after.items() if value != before.get(key)}


def change_lines(standing: Policy, wanted: Policy, section: str) -> list[ChangeLine]:
    """Say each difference of a section."""
    before = standing.document()[section]
    return [
        _line(f"{section}.{key}", before.get(key), value)
        for key, value in patch_of(standing, wanted, section).items()
    ]


def _line(path: str, before: Any, after: Any) -> ChangeLine:
    kind = kind_of(path)
    if kind == "lines":
        old, new = shown(kind, before).splitlines(), shown(kind, after).splitlines()
        removed = [one for one in old if one not in new]
        added = [one for one in new if one not in old]
        if removed or added:
            return ChangeLine(word_of(path), path, "", "", removed, added)
    return ChangeLine(word_of(path), path, _said(path, kind, before), _said(path, kind, after))


def _said(path: str, kind: str, value: Any) -> str:
    if kind == "choice":
        return backend_words(value)
    if kind == "switch":
        return gettext("on") if value else gettext("off")
    if kind == "expiry" and value:
        return gettext("%(outcome)s after %(n)s s, policy %(name)s") % {
            "outcome": value["outcome"], "n": value["after_seconds"], "name": value["policy_id"],
        }  # fmt: skip
    return shown(kind, value) or shown_default(path, value)


def rerouted_lines(trial: Trial, project: Project) -> list[ReroutedLine]:
    """Say which messages would go elsewhere."""
    return [
        ReroutedLine(
            url=task_url(one.task, project),
            key=task_key(one.task, project),
            text=" ".join(one.text.split())[:SHOWN_CHARACTERS],
            before=goes_word(one.before),
            after=goes_word(one.after),
        )
        for one in trial.rerouted
    ]
