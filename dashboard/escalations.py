"""The page of a task that failed too often: its attempts side by side, and what changed between.

Source: UI.md section 5.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from dashboard.clock import long_age
from dashboard.costs import cost_words
from dashboard.engine_texts import engine_words
from dashboard.failure_words import class_word
from dashboard.phrases import listed
from dashboard.places import address
from dashboard.plan_matrix import PlanMatrix, plan_matrix
from dashboard.vocabulary import PACKAGE_LABELS, Label
from orchestration.models import Decision, Task
from orchestration.selectors.attempts import (
    AttemptPlan,
    attempt_plans,
    cost_between,
    count_running,
    first_start,
)
from orchestration.selectors.overview import Cost

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

SHOWN_ATTEMPTS = 3
TAIL_LINES = 4
HEADLINES: Mapping[int, StrPromise] = {
    1: _("One attempt failed: "),
    2: _("Two attempts failed: "),
    3: _("Three attempts failed: "),
    4: _("Four attempts failed: "),
    5: _("Five attempts failed: "),
}
COMPARED = ("label", "word", "cause", "cases", "output", "digest", "cost")
"""Rows of the comparison that may say the same as an earlier attempt did."""


@dataclass(frozen=True, slots=True)
class AttemptColumn:
    """One failed attempt. Shape: empty where nothing is known of it."""

    number: int
    began_at: datetime | None
    ended_at: datetime | None
    label: Label | None
    word: str
    cause: str
    step: str
    cases: Sequence[str]
    output: str
    plan: AttemptPlan | None
    cost: str
    url: str
    same: Mapping[str, int] = field(default_factory=dict)
    """By row: the earliest attempt shown that said the same."""

    @property
    def digest(self) -> str:
        """The digest of its plan, if it was locked."""
        return self.plan.digest if self.plan is not None else ""


@dataclass(frozen=True, slots=True)
class PlanPair:
    """Two plans one after the other, and where their text is compared."""

    old: int
    new: int
    url: str


@dataclass(frozen=True, slots=True)
class Window:
    """One choice of the picker: the attempts that the page shows beside each other."""

    first: int
    last: int
    url: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class Escalation:
    """What the page shows beside the form. Shape: `windows` is empty where all attempts fit."""

    headline: str
    attempts: str
    spent: str
    cost: str
    waits: str
    running: str
    repeats: Sequence[str]
    columns: Sequence[AttemptColumn]
    windows: Sequence[Window]
    guidance: Sequence[str]
    matrix: PlanMatrix | None = None
    plans: Sequence[AttemptPlan] = field(default_factory=tuple)
    pairs: Sequence[PlanPair] = field(default_factory=tuple)


def escalation_of(
    decision: Decision, task: Task, *, blocks: int, until: int | None = None
) -> Escalation:
    """Set the failed attempts of a fatal root side by side, the newest unless `until` names one.

    Costs about ten queries.
    """
    failures = [one for one in decision.content.get("failures", ()) if "verdict" in one]
    told = [one for one in decision.content.get("failures", ()) if one.get("class") == "guidance"]
    plans = {one.attempt: one for one in attempt_plans(task)}
    began = first_start(task)
    columns = _columns(task, failures, plans, began)
    shown = _with_same(_shown(columns, until))
    held = [one.plan for one in shown if one.plan is not None]
    ended = columns[-1].ended_at if columns else None
    running = count_running(task)
    most = task.project.policy.thresholds.max_retries
    return Escalation(
        headline=_headline(task.failure_count),
        attempts=gettext("%(n)s of %(all)s") % {"n": task.failure_count, "all": most},
        spent=long_age((ended - began).total_seconds()) if began and ended else "",
        cost=cost_words(cost_between(task, None, None)) or gettext("nothing"),
        waits=ngettext("%(n)s task", "%(n)s tasks", blocks) % {"n": blocks}
        if blocks else gettext("nothing"),
        running=str(running) if running else gettext("nothing"),
        repeats=_repeats(columns),
        columns=shown,
        windows=_windows(decision, columns, shown),
        guidance=[str(one.get("root_cause", "")) for one in told],
        matrix=plan_matrix([one.revision for one in held]) if len(held) > 1 else None,
        plans=held,
        pairs=_pairs(task, held),
    )  # fmt: skip


def _headline(count: int) -> str:
    if count in HEADLINES:
        return str(HEADLINES[count])
    return ngettext("%(n)s attempt failed: ", "%(n)s attempts failed: ", count) % {"n": count}


def _shown(columns: Sequence[AttemptColumn], until: int | None) -> list[AttemptColumn]:
    """The attempts up to one, at most SHOWN_ATTEMPTS; the newest where none has the number."""
    chosen = [one for one in columns if until is None or one.number <= until]
    return list((chosen or columns)[-SHOWN_ATTEMPTS:])


def _with_same(columns: Sequence[AttemptColumn]) -> list[AttemptColumn]:
    """Say of each column which earlier one said the same: a phone shows one column at a time."""
    told = []
    for place, one in enumerate(columns):
        same: dict[str, int] = {}
        for name in COMPARED:
            value = getattr(one, name)
            equal = (other for other in columns[:place] if value and getattr(other, name) == value)
            first = next(equal, None)
            if first is not None:
                same[name] = first.number
        told.append(replace(one, same=same))
    return told


def _windows(
    decision: Decision, columns: Sequence[AttemptColumn], shown: Sequence[AttemptColumn]
) -> list[Window]:
    """Cut the attempts from the newest backwards into what the page shows at once."""
    if len(columns) <= SHOWN_ATTEMPTS:
        return []
    made = []
    for end in range(len(columns), 0, -SHOWN_ATTEMPTS):
        part = columns[max(end - SHOWN_ATTEMPTS, 0) : end]
        url = address("decision", decision.pk, until=part[-1].number)
        is_current = shown[-1].number == part[-1].number
        made.append(Window(part[0].number, part[-1].number, url, is_current))
    return made


def _pairs(task: Task, held: Sequence[AttemptPlan]) -> list[PlanPair]:
    slug = task.project.slug
    return [
        PlanPair(
            old.attempt,
            new.attempt,
            address("plan_text", slug, task.pk, old.revision.plan.pk, new.revision.plan.pk),
        )
        for old, new in pairwise(held)
    ]


def _columns(
    task: Task,
    failures: Sequence[Mapping[str, Any]],
    plans: Mapping[int, AttemptPlan],
    began: datetime | None,
) -> list[AttemptColumn]:
    columns: list[AttemptColumn] = []
    for one in failures:
        ended = parse_datetime(str(one.get("at", "")))
        number = int(one.get("attempt") or len(columns) + 1)
        columns.append(_column(one, number, began, ended, plans.get(number), task))
        began = ended
    return columns


def _column(
    one: Mapping[str, Any],
    number: int,
    began: datetime | None,
    ended: datetime | None,
    plan: AttemptPlan | None,
    task: Task,
) -> AttemptColumn:
    cases = one.get("failed_cases") or ()
    cost: Cost = cost_between(task, began, ended)
    return AttemptColumn(
        number=number,
        began_at=began,
        ended_at=ended,
        label=PACKAGE_LABELS.get(str(one.get("verdict", ""))),
        word=class_word(str(one.get("class", ""))),
        cause=engine_words(str(one.get("root_cause", ""))),
        step=str(one.get("step", "")),
        cases=[str(case.get("id", "")) for case in cases],
        output=_tail(cases),
        plan=plan,
        cost=cost_words(cost) or gettext("nothing"),
        url=str(one.get("evidence_link", "")),
    )


def _tail(cases: Sequence[Mapping[str, Any]]) -> str:
    """The last lines of the first case that shows any."""
    for case in cases:
        lines = str(case.get("output_tail", "")).rstrip().splitlines()
        if lines:
            return "\n".join(lines[-TAIL_LINES:])
    return ""


def _repeats(columns: Sequence[AttemptColumn]) -> list[str]:
    """Say which cases failed more than once, from their ids alone; nothing else is concluded."""
    counted = Counter(case for one in columns for case in set(one.cases))
    said = []
    for case, count in counted.most_common(SHOWN_ATTEMPTS):
        if count > 1:
            where = [str(one.number) for one in columns if case in one.cases]
            said.append(
                gettext("%(case)s failed in attempts %(numbers)s.")
                % {"case": case, "numbers": listed(where)}
            )
    return said
