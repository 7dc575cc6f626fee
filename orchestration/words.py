"""Words of verdicts and their consequences, by the codes of `contracts.options`.

The API gives them beside the codes, in the reader's language. A text is chosen by the parameters
it finds, so that no gap stands where a number should.
Source: DESIGN sections 9 and 14 ("Decision").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

Texts = Sequence[tuple[tuple[str, ...], "str | StrPromise"]]

VERDICTS: Mapping[str, str | StrPromise] = MappingProxyType(
    {
        "medium_defect.approve": _("Approve the fix"),
        "medium_defect.have_it_fixed": _("Have it fixed"),
        "medium_defect.request_changes": _("Request changes"),
        "medium_defect.accept_as_is": _("Accept as is"),
        "medium_defect.reject": _("Reject the step"),
        "final_review.approve": _("Approve the result"),
        "final_review.request_changes": _("Request changes"),
        "final_review.reject": _("Reject the result"),
        "command_approval.amend": _("Amend the commands"),
        "command_approval.reject": _("Reject the commands"),
        "plan_rejected.accept": _("Accept, overriding the audit"),
        "plan_rejected.guide": _("Guide the planner"),
        "plan_rejected.cancel": _("Cancel the task"),
        "clarification.confirmed": _("Confirm"),
        "clarification.confirmed_with_correction": _("Confirm with a correction"),
        "negotiation.confirmed": _("The last proposal stands"),
        "negotiation.confirmed_with_correction": _("Decide otherwise"),
        "negotiation.rejected": _("Reject the proposal"),
        "clarification.rejected": _("Reject the understanding"),
        "waiting_human.answer": _("Answer"),
        "waiting_human.approve": _("Approve"),
        "waiting_human.reject": _("Reject the request"),
        "waiting_human.abort": _("Abort the task"),
        "budget_exceeded.raise": _("Raise the limit"),
        "budget_exceeded.abort": _("Abort the task"),
        "high_notice.acknowledge": _("Acknowledge"),
        "max_retries.retry": _("Retry with guidance"),
        "max_retries.amend": _("Amend the task"),
        "max_retries.waive": _("Waive"),
        "max_retries.abort": _("Abort"),
        "safe_stop.resume": _("Resume"),
    }
)

COUNTED_VERDICTS: Mapping[str, Texts] = MappingProxyType(
    {
        "command_approval.approve": [
            (
                ("commands",),
                ngettext_lazy(
                    "Approve the command", "Approve the %(commands)s commands", "commands"
                ),
            ),
            ((), _("Approve the commands")),
        ]
    }
)

CONSEQUENCES: Mapping[str, Texts] = MappingProxyType(
    {
        "applies_fix": [
            (("round", "rounds"), _("Applies the patch, round %(round)s/%(rounds)s")),
            ((), _("Applies the shown fix")),
        ],
        "fixer_fixes": [
            (("round", "rounds"), _("A fixer mends it, round %(round)s/%(rounds)s")),
            ((), _("A fixer mends it")),
        ],
        "reruns_and_verifies": [((), _("Re-runs, verifies, QA again"))],
        "locks_on_pass": [
            (("next_version", "frees"), _("On pass: locks v%(next_version)s, frees %(frees)s")),
            (("frees",), _("On pass: locks, frees %(frees)s")),
            ((), _("On pass: locks the result")),
        ],
        "fixer_proposes": [((), _("Fixer proposes another"))],
        "returns_as_new_item": [((), _("Returns as a new item"))],
        "uses_round": [
            (("round", "rounds"), _("Uses round %(round)s of %(rounds)s")),
            ((), _("Uses one fix round")),
        ],
        "locks_exception": [
            (("version",), _("Locks v%(version)s as an exception")),
            ((), _("Locks it as an exception")),
        ],
        "archive_names_it": [((), _("Archive names it"))],
        "frees_now": [
            (
                ("frees",),
                ngettext_lazy("Frees %(frees)s task now", "Frees %(frees)s tasks now", "frees"),
            ),
            (("frees_none",), _("Nothing waits for it")),
            ((), _("Frees what waits now")),
        ],
        "fix_task_starts": [((), _("A fix task starts; the step stays done"))],
        "locks_new_version": [
            ((), _("Locks a new version; what read the old one is verified again")),
        ],
        "stays_as_locked": [((), _("The locked version stays as it is"))],
        "report_dismissed": [((), _("The report is dismissed"))],
        "step_fails": [
            (("step",), _("%(step)s fails, no more tries")),
            ((), _("The step fails, no more tries")),
        ],
        "root_replans": [
            (
                ("root", "next_attempt", "max_attempts"),
                _("%(root)s re-plans (%(next_attempt)s of %(max_attempts)s)"),
            ),
            (("root",), _("%(root)s plans again")),
            ((), _("The task plans again")),
        ],
        "asks_again": [((), _("Asks once more"))],
        "agent_gets_answer": [((), _("The agent gets your text"))],
        "task_resumes": [((), _("Work goes on"))],
        "task_fails": [((), _("The task fails"))],
        "agent_starts": [((), _("The agent starts"))],
        "agent_gets_correction": [((), _("Your text is its correction"))],
        "attempt_counts": [((), _("Counts as one attempt"))],
        "task_goes_on": [((), _("Both are told; the task goes on"))],
        "your_words_stand": [((), _("Your text is the result"))],
        "no_agreement": [((), _("Ends without agreement"))],
        "task_cancelled": [
            (("is_step", "step"), _("Step %(step)s is cancelled")),
            ((), _("The task is cancelled")),
        ],
        "not_asked_again": [((), _("You are not asked this again"))],
        "root_ends": [
            (("root",), _("%(root)s ends: its plan is fixed")),
            ((), _("Its task ends: the plan is fixed")),
        ],
        "child_fails": [((), _("It fails; its spawner is told"))],
        "agent_plans_otherwise": [((), _("The agent plans otherwise"))],
        "agent_goes_on_without": [((), _("The agent goes on without it"))],
        "loop_looks_again": [((), _("The loop looks again"))],
        "blockers_cancelled": [((), _("What cannot start is cancelled"))],
        "count_reset": [((), _("Attempts start over"))],
        "replans_with_guidance": [((), _("Plans again with your text"))],
        "text_changed": [((), _("You edit the task text"))],
        "done_with_exception": [((), _("Closes without GO"))],
        "plan_locked_overridden": [((), _("Locks the plan as it is"))],
        "shown_as_overridden": [((), _("Shown as audit overridden"))],
        "planner_gets_text": [((), _("The planner gets your text"))],
        "revisions_start_again": [((), _("Revisions start over"))],
        "commands_run": [
            (
                ("commands",),
                ngettext_lazy(
                    "%(commands)s command may run", "%(commands)s commands may run", "commands"
                ),
            ),
            ((), _("The commands may run")),
        ],
        "shown_commands_run": [((), _("The commands shown may run"))],
        "commands_stay_unconfirmed": [((), _("The commands shown stay forbidden"))],
        "plan_back_to_planner": [((), _("The plan goes back"))],
        "redo_with_text": [((), _("Done again with your text"))],
        "uses_attempt": [((), _("Uses one attempt"))],
        "project_resumes": [((), _("The project runs again"))],
        "nothing_waits": [((), _("Nothing waits for it"))],
    }
)
"""At most 34 Latin or 16 Chinese characters a line, never cut (a test counts them)."""

SAME_AS: Mapping[str, str] = MappingProxyType({"frees": "blocks", "commands": "count"})
"""Parameters a service may name by another of our words: what an item blocks is what it frees."""


def verdict_text(code: str, params: Mapping[str, Any]) -> str:
    """Say a verdict with its object. Errors: KeyError for a code that nothing names."""
    counted = COUNTED_VERDICTS.get(code)
    if counted is not None:
        return choose_text(counted, params)
    return str(VERDICTS[code])


def consequence_text(code: str, params: Mapping[str, Any]) -> str:
    """Say what a verdict would do. Errors: KeyError for a code that nothing names."""
    return choose_text(CONSEQUENCES[code], params)


def choose_text(texts: Texts, params: Mapping[str, Any]) -> str:
    """Return the first text whose parameters are all known, filled in.

    Errors: LookupError when no text fits, which a last line without parameters prevents.
    """
    known = {name: params[other] for name, other in SAME_AS.items() if other in params}
    known |= params
    if known.get("frees") == 0:
        known |= {"frees": None, "frees_none": True}
    for needed, text in texts:
        if all(known.get(name) not in (None, "") for name in needed):
            # A counted text chooses its plural when it is filled in, not before.
            return str(text % known) if needed else str(text)
    raise LookupError("no text fits the parameters")
