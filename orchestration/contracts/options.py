"""What each kind of decision offers: verdicts, whether they need a reason, and their consequences.

Consequences are codes with parameters; the dashboard and the API render them in the reader's
language. The verdict codes are part of what is signed; the texts are not.
Source: DESIGN section 9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from orchestration.states import DecisionKind


class Words(TypedDict):
    """A text by code, with its parameters."""

    code: str
    params: dict[str, Any]


class Option(TypedDict):
    """One verdict of a decision."""

    verdict: str
    label: Words
    consequences: list[Words]
    requires_reason: bool
    destructive: bool


LOOP = "loop"
"""`about` and `reason` of the item of a project in which nothing can start any more."""
QUESTION = "question"
"""`reason` of an item that an agent asks in its own words."""
LOOP_VERDICTS = frozenset({"approve", "abort"})
COMMANDS = "commands"
"""`about` of an agent's question that shows commands: only `approve` lets them run."""
NO_REASON = frozenset({"approve", "confirmed", "answer", "acknowledge"})
"""Verdicts that need no reason; every other one does."""
DESTRUCTIVE = frozenset({"reject", "rejected", "abort", "cancel", "waive"})

_KINDS: Mapping[DecisionKind, Sequence[tuple[str, tuple[str, ...]]]] = {
    DecisionKind.MEDIUM_DEFECT: (
        ("approve", ("applies_fix", "reruns_and_verifies", "locks_on_pass")),
        ("request_changes", ("fixer_proposes", "returns_as_new_item", "uses_round")),
        ("accept_as_is", ("locks_exception", "archive_names_it", "frees_now")),
        ("reject", ("step_fails", "root_replans", "asks_again")),
    ),
    DecisionKind.WAITING_HUMAN: (
        ("answer", ("agent_gets_answer", "task_resumes")),
        ("approve", ("task_resumes",)),
        ("reject", ("task_fails",)),
        ("abort", ("task_cancelled",)),
    ),
    DecisionKind.MAX_RETRIES: (
        ("retry", ("count_reset", "replans_with_guidance")),
        ("amend", ("text_changed", "count_reset", "replans_with_guidance")),
        ("waive", ("done_with_exception",)),
        ("abort", ("task_cancelled",)),
    ),
    DecisionKind.PLAN_REJECTED: (
        ("accept", ("plan_locked_overridden", "shown_as_overridden")),
        ("guide", ("planner_gets_text", "revisions_start_again")),
        ("cancel", ("task_cancelled",)),
    ),
    DecisionKind.CLARIFICATION: (
        ("confirmed", ("task_resumes",)),
        ("confirmed_with_correction", ("agent_gets_answer", "task_resumes")),
        ("rejected", ("task_fails",)),
    ),
    DecisionKind.COMMAND_APPROVAL: (
        ("approve", ("commands_run", "frees_now")),
        ("amend", ("returns_as_new_item",)),
        ("reject", ("plan_back_to_planner",)),
    ),
    DecisionKind.BUDGET_EXCEEDED: (
        ("raise", ("task_resumes",)),
        ("abort", ("task_fails",)),
    ),
    DecisionKind.FINAL_REVIEW: (
        ("approve", ("locks_on_pass",)),
        ("request_changes", ("redo_with_text", "uses_attempt")),
        ("reject", ("step_fails",)),
    ),
    DecisionKind.SAFE_STOP: (("resume", ("project_resumes",)),),
    DecisionKind.HIGH_NOTICE: (("acknowledge", ("nothing_waits",)),),
}


def options_for(
    kind: DecisionKind, params: Mapping[str, Any], *, is_question: bool = False
) -> list[Option]:
    """List what a kind offers, with the parameters of this item in every text.

    The answer to an agent's own question (`is_question`) is its reason, so it needs one.
    """
    shared = dict(params)
    return [
        Option(
            verdict=verdict,
            label=Words(code=_label(kind, verdict, shared), params=shared),
            consequences=[
                Words(code=_code(code, shared), params=shared)
                for code in _codes(verdict, codes, shared)
            ],
            requires_reason=verdict not in NO_REASON or (is_question and verdict == "answer"),
            destructive=verdict in DESTRUCTIVE
            or (kind, verdict) in {(DecisionKind.PLAN_REJECTED, "accept")}
            or kind is DecisionKind.SAFE_STOP,
        )
        for verdict, codes in _KINDS[kind]
        if shared.get("about") != LOOP or verdict in LOOP_VERDICTS
        if shared.get("about") != LOCKED or verdict != "request_changes"
    ]


def _label(kind: DecisionKind, verdict: str, params: Mapping[str, Any]) -> str:
    if kind is DecisionKind.MEDIUM_DEFECT and verdict == "approve" and not params.get("has_fix"):
        return "medium_defect.have_it_fixed"
    if params.get("about") == "negotiation":
        return f"negotiation.{verdict}"
    return f"{kind}.{verdict}"


LOCKED = "locked"
"""`about` of a Medium defect of a locked artifact: its step stays done, whatever is decided."""
_OTHER_CODES: Mapping[str, Mapping[str, str]] = {
    LOCKED: {
        "fixer_fixes": "fix_task_starts",
        "locks_on_pass": "locks_new_version",
        "locks_exception": "stays_as_locked",
        "frees_now": "nothing_waits",
        "step_fails": "report_dismissed",
        "root_replans": "stays_as_locked",
        "asks_again": "nothing_waits",
    },
    "intent": {
        "task_resumes": "agent_starts",
        "agent_gets_answer": "agent_gets_correction",
        "task_fails": "attempt_counts",
    },
    LOOP: {
        "task_resumes": "loop_looks_again",
        "task_cancelled": "blockers_cancelled",
    },
    "negotiation": {
        "task_resumes": "task_goes_on",
        "agent_gets_answer": "your_words_stand",
        "task_fails": "no_agreement",
    },
}
"""What an item does that is about something else than its task, by the parameter `about`."""


RED_LINE_NO: Mapping[str, Sequence[str]] = {
    "red_line_root": ("task_cancelled", "not_asked_again"),
    "red_line_end": ("root_ends", "not_asked_again"),
    "red_line_step": ("step_fails", "root_replans", "not_asked_again"),
    "red_line_child": ("child_fails", "not_asked_again"),
    "red_line_plan": ("agent_plans_otherwise", "uses_attempt", "not_asked_again"),
    "red_line_command": ("agent_goes_on_without", "not_asked_again"),
}
"""What a "no" to a red line does, by the parameter `about`: it depends on where it was found."""


COMMANDS_ASKED: Mapping[str, Sequence[str]] = {
    "answer": ("agent_gets_answer", "commands_stay_unconfirmed", "task_resumes"),
    "approve": ("shown_commands_run", "task_resumes"),
}
"""What is said to a question that shows commands: words alone let none of them run."""


def _codes(verdict: str, codes: Sequence[str], params: Mapping[str, Any]) -> Sequence[str]:
    about = str(params.get("about"))
    if about == COMMANDS and verdict in COMMANDS_ASKED:
        return COMMANDS_ASKED[verdict]
    return RED_LINE_NO.get(about, codes) if verdict == "reject" else codes


def _code(code: str, params: Mapping[str, Any]) -> str:
    if code == "applies_fix" and not params.get("has_fix"):
        code = "fixer_fixes"
    return _OTHER_CODES.get(str(params.get("about")), {}).get(code, code)


def verdicts_of(kind: DecisionKind) -> tuple[str, ...]:
    """The verdict codes of a kind, in the order of its card."""
    return tuple(verdict for verdict, _ in _KINDS[kind])
