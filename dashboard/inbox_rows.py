"""Rows and groups of the inbox, and lines of its history, from what the selectors read.

Source: UI.md section 5.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from dashboard.cards import may_bulk
from dashboard.clock import long_age, short_age
from dashboard.engine_texts import engine_words
from dashboard.places import address, decision_place, decision_url, task_key
from dashboard.presenters import decision_label
from dashboard.shapes import InboxGroup, InboxRow, KeyGroup, KeyLine
from dashboard.verdicts import FINAL_ONLY, GROUPS, KINDS, MEDIUM_ONLY
from dashboard.vocabulary import Label
from orchestration.models import Decision
from orchestration.selectors.inbox import HistoryItem, InboxItem
from orchestration.states import DecisionKind, DecisionStatus

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

MIXED_GROUPS = frozenset({3, 4})
K = DecisionKind


def kind_words(decision: Decision) -> str:
    """The word of a decision's kind."""
    return str(KINDS[DecisionKind(decision.kind)].word)


def round_words(decision: Decision) -> str:
    """How far a decision's matter has come: fix round, revision, or attempt."""
    content = decision.content
    if decision.kind == K.MEDIUM_DEFECT:
        if not content.get("fix"):
            return gettext("no fix proposed")
        return gettext("fix round %(n)s of %(all)s") % {
            "n": content.get("round", 1),
            "all": content.get("rounds", 1),
        }
    if decision.kind == K.PLAN_REJECTED:
        return gettext("revision %(n)s") % {"n": content.get("revision", 1)}
    if decision.kind == K.MAX_RETRIES and decision.task is not None:
        return gettext("attempt %(n)s of %(all)s") % {
            "n": decision.task.attempt,
            "all": decision.project.policy.thresholds.max_retries,
        }
    return ""


def row_title(decision: Decision) -> str:
    """The title of a decision; commands are counted in the reader's language."""
    if decision.kind == K.COMMAND_APPROVAL:
        n = len(decision.content.get("commands", ()))
        words = ngettext(
            "%(n)s command outside the allow-list", "%(n)s commands outside the allow-list", n
        )
        return words % {"n": n}
    return engine_words(decision.title)


def make_row(item: InboxItem, *, current: int | None = None, shows_kind: bool = False) -> InboxRow:
    """Build one row of the list."""
    decision = item.decision
    where = [decision.project.name]
    if shows_kind:
        where.insert(0, kind_words(decision))
    if decision.task is not None:
        where.append(decision_place(decision))
    where.append(round_words(decision))
    return InboxRow(
        id=str(decision.pk),
        url=decision_url(decision),
        icon=KINDS[DecisionKind(decision.kind)].icon,
        title=row_title(decision),
        where=[part for part in where if part],
        opened_at=decision.created_at,
        version=decision.version,
        digest=decision.digest,
        kind=decision.kind,
        blocks=item.blocks,
        is_unseen=item.is_unseen,
        is_p0=decision.is_p0,
        is_current=decision.pk == current,
        is_selectable=may_bulk(decision.kind),
        pane_url=address("decision_pane", decision.pk),
        fragment_url=address("decision_row", decision.pk),
    )


def make_groups(items: Sequence[InboxItem], *, current: int | None = None) -> list[InboxGroup]:
    """Cut the ordered items into their groups; a group without rows is not there."""
    groups = []
    for priority, members in groupby(items, key=lambda item: item.decision.priority):
        held = list(members)
        kinds = {item.decision.kind for item in held}
        mixed = priority in MIXED_GROUPS or (priority == 2 and len(kinds) > 1)
        rows = [make_row(item, current=current, shows_kind=mixed) for item in held]
        groups.append(InboxGroup(str(priority), _group_word(priority, kinds), rows))
    return groups


def _group_word(priority: int, kinds: set[str]) -> str | StrPromise:
    if priority == 2 and kinds == {K.MEDIUM_DEFECT.value}:
        return MEDIUM_ONLY
    if priority == 2 and kinds == {K.FINAL_REVIEW.value}:
        return FINAL_ONLY
    return GROUPS[priority]


# --- History --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """One closed decision in the table."""

    label: Label
    title: str
    where: str
    url: str
    reason: str
    is_quoted: bool
    by: str
    at: datetime | None


def history_line(item: HistoryItem) -> HistoryLine:
    """Build one line of the history."""
    decision = item.decision
    where = [decision.project.name]
    if decision.task is not None:
        where.append(decision_place(decision))
    return HistoryLine(
        label=decision_label(decision.status, decision.verdict),
        title=row_title(decision),
        where=" · ".join(where),
        url=decision_url(decision),
        reason=decision.reason or closing_words(decision),
        is_quoted=bool(decision.reason) and decision.decided_by_id is not None,
        by=_by_words(decision, item.took),
        at=decision.decided_at,
    )


CLOSING_WORDS = {
    "replaced": _("It changed; a new item replaced this one."),
    "superseded": _("The plan changed; a new item replaced this one."),
    "task ended": _("Its task ended."),
}


def closing_words(decision: Decision) -> str:
    """Why a decision closed without a verdict."""
    if decision.status != DecisionStatus.WITHDRAWN:
        return ""
    known = CLOSING_WORDS.get(decision.closed_reason)
    return str(known) if known else engine_words(decision.closed_reason)


def _by_words(decision: Decision, took: timedelta | None) -> str:
    if decision.decided_by is None:
        return gettext("policy") if decision.decided_by_policy else gettext("system")
    name = decision.decided_by.get_username()
    if took is None:
        return name
    return gettext("%(name)s, in %(time)s") % {"name": name, "time": took_words(took)}


def took_words(took: timedelta) -> str:
    """How long a verdict took: 41 s, 1 min 50 s, 3 h 04 min."""
    seconds = int(took.total_seconds())
    if seconds < 60 or (seconds % 60 == 0 and seconds < 3600):
        return short_age(seconds)
    if seconds < 3600:
        return f"{short_age(seconds)} {short_age(seconds % 60)}"
    return long_age(seconds)


# --- Keys -----------------------------------------------------------------------------------------

LIST_KEYS = (
    KeyLine(("j", "k"), _("move")),
    KeyLine(("Enter",), _("open")),
    KeyLine(("x",), _("select")),
    KeyLine(("?",), _("keys")),
)
KEY_HELP = (
    KeyGroup(
        _("Everywhere"),
        (
            KeyLine(("g", "i"), _("inbox")),
            KeyLine(("g", "o"), _("overview")),
            KeyLine(("n",), _("new work")),
            KeyLine(("Ctrl K",), _("search or jump to")),
            KeyLine(("?",), _("this help")),
        ),
    ),
    KeyGroup(
        _("Inbox"),
        (
            KeyLine(("j", "k"), _("next, previous")),
            KeyLine(("Enter",), _("open the page of the item")),
            KeyLine(("x", "Shift x"), _("select one, select a range")),
            KeyLine(("/",), _("search the list")),
            KeyLine((".",), _("load the new ones")),
            KeyLine(("u",), _("back to the list")),
        ),
    ),
    KeyGroup(
        _("Verdicts"),
        (
            KeyLine(("a",), _("the clean yes")),
            KeyLine(("c",), _("send it back with words")),
            KeyLine(("s",), _("sign in spite of a known fault")),
            KeyLine(("r",), _("end it")),
            KeyLine(("1 – 9",), _("the first to the ninth option of any kind")),
            KeyLine(("Ctrl Enter",), _("sign from the reason box")),
            KeyLine(("Esc",), _("leave the field")),
        ),
    ),
)


def crumb_words(decision: Decision) -> str:
    """What the breadcrumb of a decision's page says."""
    if decision.task is None:
        return decision.project.name
    if decision.task.parent_id is None:
        return task_key(decision.task, decision.project)
    return decision_place(decision)
