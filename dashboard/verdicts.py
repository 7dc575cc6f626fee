"""Words of the inbox: kinds, groups and keys, verdicts, consequences and their full sentences.

Codes come from `orchestration.contracts.options`. A text is chosen by the parameters it finds, so
a card never shows a gap where a number should stand.
Source: UI.md sections 5.1 and 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy, pgettext_lazy

from dashboard.vocabulary import Label, Role
from orchestration.models import Decision
from orchestration.states import DecisionKind
from orchestration.words import Texts, choose_text, consequence_text

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise


@dataclass(frozen=True, slots=True)
class KindWords:
    """How one kind of decision shows. Keys map a single letter or digit to a verdict."""

    icon: str
    word: str | StrPromise
    keys: Mapping[str, str]


KINDS: Mapping[DecisionKind, KindWords] = MappingProxyType(
    {
        DecisionKind.MEDIUM_DEFECT: KindWords(
            "bug",
            _("Medium defect"),
            {"a": "approve", "c": "request_changes", "s": "accept_as_is", "r": "reject"},
        ),
        DecisionKind.FINAL_REVIEW: KindWords(
            "eye-check",
            _("Final review"),
            {"a": "approve", "c": "request_changes", "r": "reject"},
        ),
        DecisionKind.COMMAND_APPROVAL: KindWords(
            "terminal-2", _("Commands"), {"a": "approve", "c": "amend", "r": "reject"}
        ),
        DecisionKind.PLAN_REJECTED: KindWords(
            "file-x", _("Plan rejected"), {"c": "guide", "r": "cancel", "s": "accept"}
        ),
        DecisionKind.CLARIFICATION: KindWords(
            "message-question",
            _("Clarification"),
            {"a": "confirmed", "c": "confirmed_with_correction", "r": "rejected"},
        ),
        DecisionKind.WAITING_HUMAN: KindWords(
            "message-question",
            _("Question"),
            {"a": "answer", "r": "reject"},
        ),
        DecisionKind.BUDGET_EXCEEDED: KindWords(
            "coin", _("Over budget"), {"a": "raise", "r": "abort"}
        ),
        DecisionKind.HIGH_NOTICE: KindWords("bell-ringing", _("Notice"), {"a": "acknowledge"}),
        DecisionKind.MAX_RETRIES: KindWords("alert-octagon", _("Max retries"), {}),
        DecisionKind.SAFE_STOP: KindWords("alert-hexagon", _("Safe stop"), {}),
    }
)
DIGITS_ONLY = frozenset({DecisionKind.MAX_RETRIES, DecisionKind.SAFE_STOP})
"""Kinds that letters never decide and nobody selects in bulk; they open on their full page."""


def ending_verdict(decision: Decision) -> str:
    """The verdict that says no to an item; nothing where its kind has none, or is a stop."""
    key = KINDS[DecisionKind(decision.kind)].keys.get("r", "")
    offered = [option["verdict"] for option in decision.options]
    return key if key in offered else ""


GROUPS: Mapping[int, str | StrPromise] = MappingProxyType(
    {
        1: _("Stopped projects"),
        2: _("Medium defects and final reviews"),
        3: _("Plans and commands"),
        4: _("Questions"),
        5: _("Notices, nothing waits"),
    }
)
"""Heads of the inbox by priority, first 1. A group without rows is not shown."""
MEDIUM_ONLY = _("Medium defects")
FINAL_ONLY = _("Final reviews")

SHORT_BUTTONS: Mapping[str, str | StrPromise] = MappingProxyType(
    {
        "approve": pgettext_lazy("bar", "Approve"),
        "request_changes": pgettext_lazy("bar", "Changes"),
        "reject": pgettext_lazy("bar", "Reject"),
        "amend": pgettext_lazy("bar", "Amend"),
        "guide": pgettext_lazy("bar", "Guide"),
        "cancel": pgettext_lazy("bar", "Cancel"),
        "accept": pgettext_lazy("bar", "Accept"),
        "confirmed": pgettext_lazy("bar", "Confirm"),
        "confirmed_with_correction": pgettext_lazy("bar", "Correct"),
        "rejected": pgettext_lazy("bar", "Reject"),
        "answer": pgettext_lazy("bar", "Answer"),
        "abort": pgettext_lazy("bar", "Abort"),
        "raise": pgettext_lazy("bar", "Raise"),
        "acknowledge": pgettext_lazy("bar", "Acknowledge"),
        "retry": pgettext_lazy("bar", "Retry"),
        "waive": pgettext_lazy("bar", "Waive"),
        "resume": pgettext_lazy("bar", "Resume"),
        "accept_as_is": pgettext_lazy("bar", "As is"),
    }
)
"""Words of the bar on a phone, where a button has a third of the width."""

VERDICT_LABELS: Mapping[str, Label] = MappingProxyType(
    {
        "approve": Label("circle-check", pgettext_lazy("verdict", "Approved"), Role.GREEN),
        "request_changes": Label("pencil", pgettext_lazy("verdict", "Changes requested"), Role.INK),
        "accept_as_is": Label("lock", pgettext_lazy("verdict", "Accepted as is"), Role.INK),
        "reject": Label("circle-x", pgettext_lazy("verdict", "Rejected"), Role.RED),
        "amend": Label("pencil", pgettext_lazy("verdict", "Amended"), Role.INK),
        "accept": Label("writing-sign", pgettext_lazy("verdict", "Audit overridden"), Role.INK),
        "guide": Label("message-check", pgettext_lazy("verdict", "Guided"), Role.INK),
        "cancel": Label("ban", pgettext_lazy("verdict", "Cancelled"), Role.GREY),
        "confirmed": Label("circle-check", pgettext_lazy("verdict", "Confirmed"), Role.GREEN),
        "confirmed_with_correction": Label(
            "pencil", pgettext_lazy("verdict", "Confirmed with a correction"), Role.INK
        ),
        "rejected": Label("circle-x", pgettext_lazy("verdict", "Rejected"), Role.RED),
        "answer": Label("message-check", pgettext_lazy("verdict", "Answered"), Role.GREEN),
        "abort": Label("ban", pgettext_lazy("verdict", "Aborted"), Role.RED),
        "raise": Label("coin", pgettext_lazy("verdict", "Limit raised"), Role.INK),
        "acknowledge": Label("check", pgettext_lazy("verdict", "Acknowledged"), Role.INK),
        "retry": Label("refresh", pgettext_lazy("verdict", "Retried with guidance"), Role.INK),
        "waive": Label("writing-sign", pgettext_lazy("verdict", "Waived"), Role.INK),
        "resume": Label("player-play", pgettext_lazy("verdict", "Resumed"), Role.INK),
    }
)
"""A decided item shows its verdict's own word."""

SENTENCES: Mapping[str, Texts] = MappingProxyType(
    {
        "step_fails": [
            (("step",), _("Step %(step)s fails. It gets no more tries.")),
            ((), _("The step fails. It gets no more tries.")),
        ],
        "root_replans": [
            (
                ("root", "next_attempt", "max_attempts"),
                _(
                    "Running steps finish, then %(root)s re-plans as attempt "
                    "%(next_attempt)s of %(max_attempts)s."
                ),
            ),
            ((), _("Running steps finish, then the task plans again.")),
        ],
        "task_fails": [((), _("The task fails with your reason."))],
        "attempt_counts": [
            ((), _("The task goes back and is told why. It counts as one attempt.")),
        ],
        "no_agreement": [
            ((), _("The negotiation ends without agreement, and your reason is its result.")),
        ],
        "task_cancelled": [
            (
                ("is_step", "step", "root"),
                _(
                    "Cancels step %(step)s and what needs it. %(root)s plans again; this counts as "
                    "no attempt."
                ),
            ),
            (("is_child",), _("Cancels the task and its steps; who spawned it is told.")),
            (
                ("root", "needed_by"),
                ngettext_lazy(
                    "Cancels %(root)s and its steps. %(needed_by)s task that needs it stays "
                    "blocked.",
                    "Cancels %(root)s and its steps. %(needed_by)s tasks that need it stay "
                    "blocked.",
                    "needed_by",
                ),
            ),
            (
                ("root", "needed_by_none"),
                _("Cancels %(root)s and its steps. No other task needs it."),
            ),
            ((), _("The task and its steps are cancelled. What depends on it stays blocked.")),
        ],
        "done_with_exception": [
            ((), _("Closes the task without GO. The report says PASSED WITH EXCEPTIONS.")),
        ],
        "plan_locked_overridden": [
            ((), _("The plan that failed its audit is locked and its steps start.")),
        ],
        "shown_as_overridden": [((), _("It is shown as audit overridden, with your reason."))],
        "plan_back_to_planner": [((), _("No command runs. The plan goes back for revision."))],
        "project_resumes": [((), _("The project runs again and held results are applied."))],
    }
)
"""Full sentences for the second question, where the short line leaves something out."""
REASON_HINTS: Mapping[str, StrPromise] = MappingProxyType(
    {
        "max_retries.retry": _("Goes into the planner's input, next to all packages."),
        "max_retries.amend": _("Say why; the planner reads it beside the new text."),
        "max_retries.waive": _("Stands in the report as the reason of the exception."),
        "max_retries.abort": _("Stands in the audit trail as your reason."),
    }
)
"""Where the words go that a choice asks for."""
LEFT_OUT_OF_DIALOG = frozenset({"asks_again"})
FINAL_SENTENCE = _("A verdict is final. There is no undo.")

DIALOG_TITLES: Mapping[str, Texts] = MappingProxyType(
    {
        "medium_defect.reject": [
            (("step",), _("Reject step %(step)s?")),
            ((), _("Reject the step?")),
        ],
        "final_review.reject": [((), _("Reject the result?"))],
        "command_approval.reject": [((), _("Reject the commands?"))],
        "plan_rejected.accept": [((), _("Accept, overriding the audit?"))],
        "plan_rejected.cancel": [((), _("Cancel the task?"))],
        "clarification.rejected": [((), _("Reject the understanding?"))],
        "negotiation.rejected": [((), _("Reject the proposal?"))],
        "waiting_human.reject": [((), _("Reject the request?"))],
        "waiting_human.abort": [((), _("Abort the task?"))],
        "budget_exceeded.abort": [((), _("Abort the task?"))],
        "max_retries.waive": [((), _("Waive?"))],
        "max_retries.abort": [((), _("Abort?"))],
        "safe_stop.resume": [((), _("Resume the project?"))],
    }
)


def consequence_sentence(code: str, params: Mapping[str, Any]) -> str:
    """The full sentence for the second question, else the short line as a sentence."""
    if code in SENTENCES:
        return choose_text(SENTENCES[code], params)
    return consequence_text(code, params)
