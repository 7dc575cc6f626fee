"""Words of the policy page: sections, settings with their units, choices and faults.

A setting without words of its own shows its code, so that none is ever missing from the page.
Source: UI.md sections 5.8 and 7, DESIGN section 14 ("Policy").
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from dashboard.assessments import ROUTE_WORDS
from orchestration.rules.foresight import MESSAGE

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

Words = Mapping[str, "str | StrPromise"]

SECTION_WORDS: Mapping[str, tuple[str | StrPromise, str | StrPromise]] = {
    "thresholds": (_("Thresholds"), _("The numbers on which the method turns.")),
    "triggers": (
        _("Trigger words"),
        _("One a line. “…” stands for any text between two parts."),
    ),
    "seats": (_("Seats"), _("Who may fill each seat, the first that can.")),
    "models": (_("Model hints"), _("What an agent is advised to use; empty means as needed.")),
    "limits": (_("Limits"), _("What one task, assignment or command may use.")),
    "commands": (
        _("Commands that run unasked"),
        _("One a line: a command that starts with these words runs; any other waits for you."),
    ),
    "expiry": (
        _("What silence does"),
        _("Without a rule an item waits for you, for ever if need be. The card names its rule."),
    ),
    "notifications": (_("Reminders and notifications"), ""),
    "workflow": (_("Switches"), ""),
    "guardrails": (_("Guardrails"), _("What every executor is told, in this order.")),
    "checks": (_("Our own checks"), _("How what agents claim is checked on this machine.")),
}  # fmt: skip

FIELD_WORDS: Words = {
    "thresholds.s0_message_length_threshold": _("A message longer than this is scored"),
    "thresholds.s1_simple_threshold": _("Up to this score: direct"),
    "thresholds.s1_medium_threshold": _("Up to this score: light plan; above it: three steps"),
    "thresholds.s2_max_revision_rounds": _("Plan revisions before it is rejected"),
    "thresholds.dynamic_upgrade_failure_threshold": _("Failures before it is scored again"),
    "thresholds.max_retries": _("Failed attempts in a row before the project stops"),
    "thresholds.step_attempts": _("Attempts of one step"),
    "thresholds.fix_rounds": _("Fix rounds of one defect"),
    "limits.depth": _("Levels of spawned tasks"),
    "limits.parallel_children": _("Steps of a task in parallel"),
    "limits.children": _("Children of one task"),
    "limits.turns": _("Turns of one assignment"),
    "limits.cost_usd": _("Cost of one assignment (US$)"),
    "limits.timeouts_seconds_by_depth": _("Time of one assignment (seconds, by depth)"),
    "limits.lease_seconds": _("Lease (seconds)"),
    "limits.transient_retries": _("Retries after a passing fault"),
    "limits.concurrent_roots": _("Tasks of the master list at a time"),
    "limits.handshake_ack_seconds": _("Answer to an intent before it goes on to you (seconds)"),
    "limits.agent_seen_seconds": _("An agent counts as here for (seconds)"),
    "limits.tool_calls": _("Tool calls of one assignment"),
    "limits.repeated_tool_calls": _("The same tool call in a row"),
    "limits.command_timeout_seconds": _("Time of one command (seconds)"),
    "limits.command_output_bytes": _("Output of one command (bytes)"),
    "limits.command_memory_bytes": _("Memory of one command (bytes)"),
    "triggers.intent_verbs": _("Intent verbs"),
    "triggers.scope_words": _("Scope words"),
    "triggers.explicit_triggers": _("Explicit triggers"),
    "triggers.uncertainty": _("Uncertainty"),
    "triggers.multi_step": _("Several steps"),
    "triggers.action_verbs": _("Action verbs"),
    "triggers.small_talk": _("Small talk (direct)"),
    "triggers.continuations": _("Continuations (direct)"),
    "triggers.questions": _("Questions (direct)"),
    "triggers.question_endings": _("Question endings (direct)"),
    "triggers.instructions": _("Simple instructions (direct)"),
    "triggers.red_lines": _("Red lines (always asked)"),
    "commands.allow": _("Allowed commands"),
    "notifications.reminder_seconds": _("Remind me of an open item every (seconds)"),
    "notifications.reminder_growth": _("Each reminder comes later than the last by (times)"),
    "notifications.reminder_longest_seconds": _("Longest time between reminders (seconds)"),
    "notifications.deadline_warning_seconds": _("Word before a deadline (seconds)"),
    "notifications.delay_seconds": _("Wait before a message leaves (seconds)"),
    "notifications.p0_delay_seconds": _("Wait before a P0 message leaves (seconds)"),
    "notifications.digest_at": _("Daily digest at"),
    "notifications.time_zone": _("Time zone"),
    "workflow.subcoding_may_spawn": _("Coding agents may spawn tasks"),
    "guardrails.rules": _("Rules"),
    "checks.build_seconds": _("Time of a build (seconds)"),
    "checks.test_seconds": _("Time of the tests (seconds)"),
    "checks.toolchains": _("Further toolchains (JSON)"),
}  # fmt: skip

GOES_WORDS: Words = {
    **ROUTE_WORDS,
    MESSAGE: pgettext_lazy("route", "direct, as a message"),
}
"""Where a message goes, in the words of the task page."""

FAULTS: tuple[tuple[re.Pattern[str], str | StrPromise], ...] = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"Input should be a valid integer.*", _("must be a whole number")),
        (r"Input should be a valid number.*", _("must be a number")),
        (r"Input should be a valid string", _("must be text")),
        (r"Input should be a valid boolean.*", _("must be on or off")),
        (r"Input should be a valid (?:tuple|list|array).*", _("must be a list")),
        (r"Input should be greater than or equal to (?P<n>.+)", _("must be at least %(n)s")),
        (r"Input should be greater than (?P<n>.+)", _("must be more than %(n)s")),
        (r"Input should be less than or equal to (?P<n>.+)", _("must be at most %(n)s")),
        (
            r"String should have at most (?P<n>\d+) characters?",
            _("must have at most %(n)s characters"),
        ),
        (r"String should have at least 1 character", _("must not be empty")),
        (r"Field required", _("must not be empty")),
        (r"must not be blank", _("must not be empty")),
        (r"String should match pattern .+", _("holds a character that is not allowed here")),
        (
            r"Tuple should have at most (?P<n>\d+) items.*",
            _("must have at most %(n)s entries"),
        ),
        (
            r"Tuple should have at least (?P<n>\d+) items?.*",
            _("must have at least %(n)s entries"),
        ),
        (r"unknown key", _("is no setting")),
        (r"name at least one backend, each once", _("name at least one, each once")),
        (r"(?P<n>.+) cannot fill the seat \w+", _("%(n)s cannot fill this seat")),
        (
            r"s1_medium_threshold must not be below s1_simple_threshold",
            _("the light plan must not end below direct"),
        ),
        (r"cannot be split into words: (?P<n>.+)", _("cannot be split into words: %(n)s")),
        (r"… must stand between two parts", _("“…” must stand between two parts")),
        (r"each key once; twice: (?P<n>.+)", _("each key once; twice: %(n)s")),
        (
            r"silence is never consent: (?P<n>\w+) cannot happen by expiry.*",
            _("silence is never consent: “%(n)s” cannot happen by expiry"),
        ),
    )
)


def fault_words(message: str) -> str:
    """Say a fault of the policy in the reader's language; an unknown one stays as it is."""
    for pattern, words in FAULTS:
        found = pattern.fullmatch(message)
        if found is not None:
            return str(words) % found.groupdict()
    return message


def field_word(path: str) -> str:
    """The words of a setting, else its code."""
    return str(FIELD_WORDS.get(path) or path.partition(".")[2])


def goes_word(goes: str) -> str:
    """Where a message goes, in words."""
    return str(GOES_WORDS.get(goes, goes))
