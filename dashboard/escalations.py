"""The page of a task that failed too often: its attempts side by side, and what changed between.

Source: UI.md section 5.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext, ngettext

from dashboard.clock import long_age
from dashboard.costs import cost_words
from dashboard.engine_texts import engine_words
from dashboard.failure_words import class_word
from dashboard.phrases import listed
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

SHOWN_ATTEMPTS = 3
TAIL_LINES = 4


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


@dataclass(frozen=True, slots=True)
class Escalation:
    """What the page shows beside the dock. `older` counts the attempts that are not shown."""

    attempts: str
    spent: str
    cost: str
    waits: str
    running: str
    repeats: Sequence[str]
    columns: Sequence[AttemptColumn]
    older: int
    guidance: Sequence[str]
    matrix: PlanMatrix | None = None
    plans: Sequence[AttemptPlan] = field(default_factory=tuple)


def escalation_of(decision: Decision, task: Task, *, blocks: int) -> Escalation:
    """Set the failed attempts of a fatal root side by side. Costs about ten queries."""
    failures = [one for one in decision.content.get("failures", ()) if "verdict" in one]
    told = [one for one in decision.content.get("failures", ()) if one.get("class") == "guidance"]
    plans = {one.attempt: one for one in attempt_plans(task)}
    began = first_start(task)
    columns = _columns(task, failures, plans, began)
    shown = columns[-SHOWN_ATTEMPTS:]
    revisions = [one.plan.revision for one in shown if one.plan is not None]
    ended = shown[-1].ended_at if shown else None
    running = count_running(task)
    most = task.project.policy.thresholds.max_retries
    return Escalation(
        attempts=gettext("%(n)s of %(all)s") % {"n": task.failure_count, "all": most},
        spent=long_age((ended - began).total_seconds()) if began and ended else "",
        cost=cost_words(cost_between(task, None, None)) or gettext("nothing"),
        waits=ngettext("%(n)s task", "%(n)s tasks", blocks) % {"n": blocks}
        if blocks else gettext("nothing"),
        running=str(running) if running else gettext("nothing"),
        repeats=_repeats(columns),
        columns=shown,
        older=len(columns) - len(shown),
        guidance=[str(one.get("root_cause", "")) for one in told],
        matrix=plan_matrix(revisions) if len(revisions) > 1 else None,
        plans=[one.plan for one in shown if one.plan is not None],
    )  # fmt: skip


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
        cost=cost_words(cost),
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
