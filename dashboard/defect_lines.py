"""The defects of a task as lines of its page, each with its fix and what was tried.

Source: UI.md section 5.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext, ngettext, pgettext_lazy

from dashboard.evidence import evidence_note, tried_round
from dashboard.http import DashboardRequest
from dashboard.phrases import listed
from dashboard.places import address, decision_url
from dashboard.presenters import defect_label, severity_label
from dashboard.shapes import Round
from dashboard.vocabulary import Label
from orchestration.models import Decision, Defect, Project, Task
from orchestration.selectors.task_page import decisions_about, list_defects, open_decisions_of
from orchestration.states import DefectStatus

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

SHOWN_PATCH = 20_000
CATEGORY_WORDS: Mapping[str, StrPromise] = {
    "scope": pgettext_lazy("finding", "deviation in scope"),
    "granularity": pgettext_lazy("finding", "deviation in granularity"),
    "assumption": pgettext_lazy("finding", "deviation in an assumption"),
}
"""What is no fault of the work itself, but another understanding of what was asked."""


@dataclass(frozen=True, slots=True)
class DefectLine:
    """One defect with what is known of it; its address leads to the open decision about it."""

    id: int
    step_key: str
    severity: Label
    title: str
    category: str | StrPromise
    label: Label
    rounds: str
    url: str
    description: str
    note: str
    fix: str
    commands: Sequence[str]
    patch: str
    tried: Sequence[Round]
    history_url: str

    @property
    def has_more(self) -> bool:
        """Whether there is anything to unfold."""
        return bool(
            self.description or self.note or self.fix or self.commands or self.patch or self.tried
        )


def defect_lines(
    defects: Sequence[Defect],
    decisions: Sequence[Decision],
    rounds: int,
    history: Mapping[int, int] | None = None,
) -> list[DefectLine]:
    """The defects, newest first; `history` names the newest decision about each."""
    urls = {one.defect_id: decision_url(one) for one in decisions if one.defect_id is not None}
    return [
        _line(one, urls.get(one.pk, ""), rounds, (history or {}).get(one.pk)) for one in defects
    ]


def _line(one: Defect, url: str, rounds: int, decision_id: int | None) -> DefectLine:
    fix = one.proposed_fix or {}
    return DefectLine(
        id=one.pk,
        step_key=one.task.step_key,
        severity=severity_label(one.severity),
        title=one.title,
        category=CATEGORY_WORDS.get(one.category, ""),
        label=defect_label(one.status),
        rounds=gettext("round %(n)s/%(all)s") % {"n": one.fix_round, "all": rounds},
        url=url,
        description="" if one.description == one.title else one.description,
        note=evidence_note(one.evidence),
        fix=str(fix.get("description") or ""),
        commands=[" ".join(command.get("argv", ())) for command in fix.get("commands") or ()],
        patch=str(fix.get("patch") or "")[:SHOWN_PATCH],
        tried=[tried_round(row) for row in one.rounds],
        history_url=address("decision", decision_id) if decision_id and not url else "",
    )


def defect_summary(defects: Sequence[Defect]) -> str:
    """How many wait for Sir, are being fixed, and are closed."""
    waiting = sum(one.status == DefectStatus.AWAITING_SIR for one in defects)
    closed_states = {"verified", "accepted_as_is", "rejected", "void"}
    closed = sum(one.status in closed_states for one in defects)
    fixing = len(defects) - waiting - closed
    parts = []
    if waiting:
        words = ngettext("%(n)s waits for you", "%(n)s wait for you", waiting)
        parts.append(words % {"n": waiting})
    if fixing:
        parts.append(gettext("%(n)s fixing") % {"n": fixing})
    if closed:
        parts.append(gettext("%(n)s closed") % {"n": closed})
    return listed(parts)


def defects_part(request: DashboardRequest, project: Project, found: Task) -> dict[str, Any]:
    """The defects of a task and its steps, newest first."""
    defects = list_defects(found)
    lines = defect_lines(
        defects, open_decisions_of(found), project.policy.thresholds.fix_rounds,
        decisions_about(defects),
    )  # fmt: skip
    return {"defects": lines, "defect_summary": defect_summary(defects)}
