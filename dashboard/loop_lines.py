"""The loop's verdicts on a task as lines of its page: validation packages and control commands.

Source: UI.md section 5.5 (compact lists), DESIGN section 10.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from dashboard.assessments import backend_word
from dashboard.engine_texts import engine_words
from dashboard.http import DashboardRequest
from dashboard.vocabulary import PACKAGE_LABELS, WAITING, Label, Role
from orchestration.contracts.loop import NextAction
from orchestration.models import Project, Task
from orchestration.selectors.loop import VerdictRow, list_verdicts
from orchestration.services.packages import evidence_link

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

ACTIONS: Mapping[str, str | StrPromise] = {
    NextAction.RESTART_FROM_STEP_2.value: _("plans it again"),
    NextAction.PROCEED_TO_NEXT_TASK.value: _("goes on with %(task)s"),
    NextAction.TERMINATE_SUCCESS.value: _("ends: every task is done"),
    NextAction.SUSPEND_FOR_HUMAN.value: _("stops for Sir"),
}


@dataclass(frozen=True, slots=True)
class VerdictLine:
    """One verdict and what the loop did on it. `report` is the final report, as Markdown."""

    attempt: int
    label: Label
    cause: str
    cases: tuple[str, ...]
    by: str
    is_overruled: bool
    action: str
    action_code: str
    url: str
    report: str
    at: datetime


def verdict_line(row: VerdictRow) -> VerdictLine:
    """Shape one verdict; a waiver has a command and no package."""
    package, command = row.package, row.command
    action = ""
    if command is not None:
        context = command.context_for_step_2 or {}
        action = str(ACTIONS[command.next_action]) % {"task": context.get("task_to_process", "")}
    is_waiting = package is not None and package.concluded_at is None
    verdict = PACKAGE_LABELS[package.verdict] if package is not None else WAIVED
    return VerdictLine(
        attempt=package.attempt if package is not None else 0,
        label=WAITING if is_waiting else verdict,
        cause=engine_words(package.root_cause) if package is not None else "",
        cases=tuple(one["id"] for one in package.body.get("failed_cases", ())) if package else (),
        by=package.posted_by or backend_word(package.backend) if package is not None else "",
        is_overruled=bool(package is not None and package.claimed),
        action=action,
        action_code=command.next_action if command is not None else "",
        url=evidence_link(package) if package is not None else "",
        report=(command.final_report or "") if command is not None else "",
        at=row.at,
    )


WAIVED = Label("writing-sign", pgettext_lazy("verdict", "Waived"), Role.INK)


def loop_part(request: DashboardRequest, project: Project, found: Task) -> dict[str, Any]:
    """The verdicts on a root, newest first; a step has none of its own."""
    rows = list_verdicts(found) if found.parent_id is None else []
    return {"verdicts": [verdict_line(row) for row in rows]}
