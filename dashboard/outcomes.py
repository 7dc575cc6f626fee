"""What a verdict led to, in one line for the list and the live region.

Source: UI.md section 5.1 ("Optimistic").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from dashboard.verdicts import VERDICT_LABELS
from orchestration.models import Decision
from orchestration.states import DecisionKind

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

K = DecisionKind
FOLLOWS: Mapping[tuple[DecisionKind, str], str | StrPromise] = {
    (K.MEDIUM_DEFECT, "approve"): _("Fix round %(round)s of %(rounds)s starts."),
    (K.MEDIUM_DEFECT, "request_changes"): _("The fixer proposes another."),
    (K.MEDIUM_DEFECT, "accept_as_is"): _("It is locked as an exception."),
    (K.MEDIUM_DEFECT, "reject"): _("The step fails."),
    (K.COMMAND_APPROVAL, "approve"): _("The commands may run."),
    (K.COMMAND_APPROVAL, "amend"): _("The rest comes back as a new item."),
    (K.COMMAND_APPROVAL, "reject"): _("The plan goes back."),
    (K.PLAN_REJECTED, "accept"): _("The plan is locked."),
    (K.PLAN_REJECTED, "guide"): _("The planner works on it."),
    (K.WAITING_HUMAN, "answer"): _("Work goes on."),
    (K.WAITING_HUMAN, "approve"): _("Work goes on."),
    (K.CLARIFICATION, "confirmed"): _("Work goes on."),
    (K.CLARIFICATION, "confirmed_with_correction"): _("Work goes on."),
    (K.MAX_RETRIES, "retry"): _("It is planned again."),
    (K.MAX_RETRIES, "amend"): _("It is planned again."),
    (K.MAX_RETRIES, "waive"): _("The task is closed with an exception."),
}


def outcome_words(decision: Decision) -> str:
    """The verdict's own word and what starts now."""
    label = VERDICT_LABELS.get(decision.verdict)
    word = str(label.word) if label is not None else decision.verdict
    follows = FOLLOWS.get((DecisionKind(decision.kind), decision.verdict))
    if follows is None:
        return gettext("%(verdict)s.") % {"verdict": word}
    content = decision.content
    numbers = {"round": content.get("round", 1), "rounds": content.get("rounds", 1)}
    words = {"verdict": word, "follows": str(follows) % numbers}
    return gettext("%(verdict)s. %(follows)s") % words
