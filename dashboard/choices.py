"""The choices of the lists' filters, each a link, so that they work without script."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from dashboard.event_words import noun_word
from dashboard.places import with_query
from dashboard.verdicts import KINDS, VERDICT_LABELS
from dashboard.vocabulary import DECISION_LABELS, TASK_LABELS
from orchestration.selectors.board import list_project_names
from orchestration.states import DecisionStatus

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

ALL = _("All")


@dataclass(frozen=True, slots=True)
class Choice:
    """One line of a filter's menu."""

    word: str | StrPromise
    url: str
    is_current: bool = False


def _choices(
    url: str, query: Mapping[str, object], name: str, words: Mapping[str, str | StrPromise]
) -> list[Choice]:
    """One choice a value of a parameter, with "All" first; paging starts over."""
    held = query.get(name) or ""
    lines = [Choice(ALL, with_query(url, {**query, name: ""}), is_current=not held)]
    lines += [
        Choice(word, with_query(url, {**query, name: value}), is_current=value == held)
        for value, word in words.items()
    ]
    return lines


def kind_choices(url: str, query: Mapping[str, object]) -> list[Choice]:
    """Kinds of decisions."""
    words = {kind.value: held.word for kind, held in KINDS.items()}
    return _choices(url, query, "kind", words)


def project_choices(url: str, query: Mapping[str, object]) -> list[Choice]:
    """Projects that are not archived. Costs one query."""
    names = {one.slug: one.name for one in list_project_names()}
    return _choices(url, query, "project", names)


def verdict_choices(url: str, query: Mapping[str, object]) -> list[Choice]:
    """Verdicts, and the two ways to close without one."""
    words = {verdict: label.word for verdict, label in VERDICT_LABELS.items()}
    for status in (DecisionStatus.EXPIRED, DecisionStatus.WITHDRAWN):
        words[status.value] = DECISION_LABELS[status].word
    return _choices(url, query, "verdict", words)


def status_choices(url: str, query: Mapping[str, object]) -> list[Choice]:
    """States of a task."""
    words = {status.value: label.word for status, label in TASK_LABELS.items()}
    return _choices(url, query, "status", words)


SORT_WORDS = {
    "": _("List order"), "-key": _("Newest first"), "key": _("Oldest first"),
    "changed": _("Last changed first"), "-changed": _("Longest unchanged first"),
    "title": _("Title A to Z"), "-title": _("Title Z to A"),
}  # fmt: skip


def sort_choices(url: str, query: Mapping[str, object]) -> list[Choice]:
    """Orders of the master list; its own one is no parameter."""
    held = query.get("sort") or ""
    return [
        Choice(word, with_query(url, {**query, "sort": name}), is_current=name == held)
        for name, word in SORT_WORDS.items()
    ]


def noun_choices(url: str, query: Mapping[str, object], nouns: list[str]) -> list[Choice]:
    """Nouns of the audit trail in words."""
    return _choices(url, query, "noun", {noun: noun_word(noun) for noun in nouns})
