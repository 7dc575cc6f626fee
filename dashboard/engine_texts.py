"""Fixed texts that the engine writes down in English, for the page in the reader's language.

Rows and the sealed trail keep what was written; only what a page shows of it is translated. Any
other text, so what agents and people wrote, stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from django.utils.translation import gettext, ngettext_lazy, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from dashboard.assessments import backend_word
from dashboard.boards import seat_word
from dashboard.finding_texts import FINDING_PATTERNS, step_names
from dashboard.format_texts import FORMAT_PATTERNS, FORMAT_TEXTS, yaml_words
from dashboard.phrases import sentences
from dashboard.presenters import project_label, severity_label, task_label
from dashboard.refusal_texts import DELIVERY_PATTERNS, REFUSED, REFUSED_PATTERNS, STOP_PATTERNS
from orchestration.policy import Backend
from orchestration.states import ProjectStatus, Seat, Severity, TaskStatus

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

REASONS: Mapping[str, str | StrPromise] = {
    "planning starts": _("planning starts"),
    "resumed": _("resumed"),
    "new work": _("new work arrived"),
    "every root is done": _("every task is done"),
    "every step is done or skipped": _("every step is done or skipped"),
    "its blockers are done already": _("its blockers are done already"),
    "blocked": _("blocked"),
    "upgraded": _("upgraded"),
    "superseded": _("superseded by a new plan"),
    "skipped": _("skipped"),
    "replaced": _("replaced by a new item"),
    "malformed": _("the plan is malformed"),
    "rejected": _("rejected"),
    "audit": _("its audit"),
    "red_line": _("a red line"),
    "red line refused": _("a red line that Sir refused"),
    "red line: needs Sir": _("a red line: needs Sir"),
    "step skipped": _("the step was skipped"),
    "its parent was skipped": _("its parent was skipped"),
    "task ended": _("its task ended"),
    "task finished": _("its task finished"),
    "task cancelled": _("its task was cancelled"),
    "the task failed": _("the task failed"),
    "a step failed": _("a step failed"),
    "attempt ends": _("the attempt ended"),
    "attempt ended": _("the attempt ended"),
    "its review ended with the attempt": _("its review ended with the attempt"),
    "one more try with its failure context": _("one more try with its failure context"),
    "re-plan with its failure context": _("planned again with its failure context"),
    "re-plan": _("planned again"),
    "lease expired": _("the lease ran out"),
    "lease_expired": _("the lease ran out"),
    "its worker process ended": _("its worker process ended"),
    "the assignment's time ran out": _("the assignment’s time ran out"),
    "stopped": _("stopped"),
    "cut off while it ran; irreversible": _("cut off while it ran; irreversible"),
    "commands refused": _("commands refused"),
    "another fix was proposed": _("another fix was proposed"),
    "another report came after the one that stands": _("another report came after this one"),
    "the fix did not verify": _("the fix did not verify"),
    "QA accepts a Low defect": _("QA accepts a Low defect"),
    "approved by rule": _("approved by rule"),
    "audit overridden by Sir": _("audit overridden by Sir"),
    "Sir answered": _("Sir answered"),
    "Sir decided": _("Sir decided"),
    "cleared by Sir": _("cleared by Sir"),
    "approved by Sir": _("approved by Sir"),
    "rejected by Sir": _("rejected by Sir"),
    "paused by Sir": _("paused by Sir"),
    "the agent revised its intent": _("the agent revised its intent"),
    "its assignment ended": _("its assignment ended"),
    "the intent was answered": _("the intent was answered"),
    "passed on to Sir": _("passed on to Sir"),
    "no answer in time": _("no answer in time"),
    "spawner gone": _("who spawned it has gone"),
    "the agent asks": _("the agent asks"),
    "both accept": _("both accept"),
    "no agreement in time": _("no agreement after the last round"),
    "lease expired before execution_start": _("the lease ran out before the work began"),
    "over budget": _("over budget"),
    "final review by Sir": _("your final review"),
    "Sir raised the limit": _("Sir raised the limit"),
    "no agent is left for it": _("no agent is left for it"),
    "validated": _("validated"),
    "judged by another package": _("another verdict came in"),
    "the project goes on": _("the project goes on"),
    "the project is archived": _("the project is archived"),
    "archived by Sir": _("archived by Sir"),
    "the attempt failed": _("the attempt failed"),
    "its result came before its figures": _("its result came before its figures"),
}
"""Why something moved, and what a task's state adds to its word."""

REFUSALS: Mapping[str, str | StrPromise] = {
    "this item has expired": _("this item has expired"),
    "the project is archived": _("the project is archived"),
    "the stored content of this item does not match its digest; it cannot be signed": _(
        "the stored content of this item does not match its digest; it cannot be signed"
    ),
    "the form does not say what is signed": _("the form does not say what is signed"),
    "the reason is too long": _("the reason is too long"),
    "the draft is too long": _("the draft is too long"),
    "a malformed plan cannot be accepted": _("a malformed plan cannot be accepted"),
    "this item has no task any more": _("this item has no task any more"),
    "cancelling needs a reason": _("cancelling needs a reason"),
    "only a planned root is planned again": _("only a planned root is planned again"),
    "the message is empty": _("the message is empty"),
}
"""Why the engine refused what a person asked for on a page."""

QUESTIONS: Mapping[str, str | StrPromise] = {
    "This task is blocked. Can it go on?": _("This task is blocked. Can it go on?"),
    "This task crosses a red line. May it start?": _("This task crosses a red line. May it start?"),
    "The plan for this task crosses a red line. May it go on?": _(
        "The plan for this task crosses a red line. May it go on?"
    ),
    "The plan did not pass its audit. What now?": _("The plan did not pass its audit. What now?"),
    "A High defect is being fixed by rule.": _("A High defect is being fixed by rule."),
    "Has the agent understood this task?": _("Has the agent understood this task?"),
    "Two agents do not agree. Does the last proposal stand?": _(
        "Two agents do not agree. Does the last proposal stand?"
    ),
    "No task can start any more, and not every one is done. What now?": _(
        "No task can start any more, and not every one is done. What now?"
    ),
    "This irreversible step was cut off while it ran. May it run again?": _(
        "This irreversible step was cut off while it ran. May it run again?"
    ),
}
"""What the engine asks Sir in its own words."""

TITLES: Mapping[str, str | StrPromise] = {
    "Run record": _("Run record"),
    "Step report": _("Step report"),
    "verification, QA and the plan's checks, by rules": _(
        "verification, QA and the plan’s checks, by rules"
    ),
}

WHO: Mapping[str, str | StrPromise] = {
    "system": _("system"),
    "negotiation": pgettext_lazy("source", "negotiation"),
    "plan": pgettext_lazy("source", "plan"),
    "audit": pgettext_lazy("source", "audit"),
}

FIXED = {**REASONS, **REFUSALS, **QUESTIONS, **REFUSED, **TITLES, **FORMAT_TEXTS}

PATTERNS: tuple[tuple[re.Pattern[str], str | StrPromise], ...] = tuple(
    (re.compile(pattern, re.DOTALL), text)
    for pattern, text in (
        (r"rejected by Sir: (?P<why>.+)", _("rejected by Sir: %(why)s")),
        (r"red line refused: (?P<why>.+)", _("red line refused: %(why)s")),
        (
            r"this plan crosses a red line that Sir refused: (?P<why>.+)",
            _("this plan crosses a red line that Sir refused: %(why)s"),
        ),
        (
            r"step (?P<step>\S+) crosses a red line that Sir refused: (?P<why>.+)",
            _("step %(step)s crosses a red line that Sir refused: %(why)s"),
        ),
        (r"waived: (?P<why>.+)", _("waived: %(why)s")),
        (r"planned check failed: (?P<why>.+)", _("a planned check failed: %(why)s")),
        (r"open (?P<severity>\w+) defect: (?P<why>.+)", _("a defect is open: %(why)s")),
        (r"intent rejected: (?P<why>.+)", _("its intent was rejected: %(why)s")),
        (
            r"outside the task's scope: (?P<why>.+)",
            _("outside the task’s scope: %(why)s"),
        ),
        (r"re-plan: (?P<why>.+)", _("planned again: %(why)s")),
        (r"deviation: (?P<why>.+)", _("deviation: %(why)s")),
        (r"blueprint (?P<n>\d+)", _("blueprint %(n)s")),
        (r"(?P<key>\S+) is done", _("%(key)s is done")),
        (r"(?P<why>.+) \((?P<n>\d+) times\)", _("%(why)s (%(n)s times)")),
        (r"stopped after (?P<n>\d+) tool calls", _("stopped after %(n)s tool calls")),
        (
            r"(?P<passed>\d+) of (?P<n>\d+) commands? succeeded(?P<rest>; .+)?",
            ngettext_lazy(
                "%(passed)s of %(n)s command succeeded%(rest)s",
                "%(passed)s of %(n)s commands succeeded%(rest)s",
                "n",
            ),
        ),
        (
            r"(?P<n>\d+) steps? done, (?P<skipped>\d+) skipped; every artifact is locked\.",
            ngettext_lazy(
                "%(n)s step done, %(skipped)s skipped; every artifact is locked.",
                "%(n)s steps done, %(skipped)s skipped; every artifact is locked.",
                "n",
            ),
        ),
        (r"(?P<seat>[a-z_]+) failed three times", _("the %(seat)s seat failed three times")),
        (
            r"The seat (?P<seat>[a-z_]+) failed three times in a row\. Try again\?",
            _("The %(seat)s seat failed three times in a row. Try again?"),
        ),
        (
            r"(?P<n>\d+) attempts failed in a row\. What now\?",
            ngettext_lazy(
                "%(n)s attempt failed. What now?",
                "%(n)s attempts failed in a row. What now?",
                "n",
            ),
        ),
        (
            r"May these (?P<n>\d+) commands run on this machine\?",
            ngettext_lazy(
                "May this command run on this machine?",
                "May these %(n)s commands run on this machine?",
                "n",
            ),
        ),
        (
            r"Apply the proposed fix to step (?P<step>[^?]+)\?",
            _("Apply the proposed fix to step %(step)s?"),
        ),
        (r"the task is (?P<task_state>\w+)", _("the task stands at “%(task_state)s”")),
        (
            r"the task is (?P<task_state>\w+) already",
            _("the task stands at “%(task_state)s” already"),
        ),
        (r"the project is archived: (?P<why>.+)", _("the project is archived: %(why)s")),
        (r"the project is (?P<project_state>\w+)", _("the project stands at “%(project_state)s”")),
        (
            r"only a suspended project resumes; this one is (?P<project_state>\w+)",
            _("only a suspended project resumes; this one stands at “%(project_state)s”"),
        ),
        (
            r"the message has (?P<n>\d+) bytes; at most (?P<most>\d+) are accepted",
            _("the message has %(n)s bytes; at most %(most)s are accepted"),
        ),
        (
            r"there is no command (?P<name>/\S+); known: (?P<known>.+)",
            _("there is no command %(name)s; known: %(known)s"),
        ),
        (
            r"(?P<name>/\S+) has no text: say what to do after it, as in: .+",
            _("%(name)s has no text: say after it what to do"),
        ),
        *REFUSED_PATTERNS,
        *DELIVERY_PATTERNS,
        *STOP_PATTERNS,
        *FINDING_PATTERNS,
        *FORMAT_PATTERNS,
    )
)


_SENTENCE_ENDS = re.compile(r"(?<=\.) (?=[A-Z'])")


def engine_words(text: str) -> str:
    """Say a fixed text of the engine in the reader's language; any other text stays as it is."""
    known = FIXED.get(text)
    if known is not None:
        return str(known)
    for pattern, words in PATTERNS:
        found = pattern.fullmatch(text)
        if found is not None:
            return put_in(words, found.groupdict())
    return text


def put_in(words: str | StrPromise, found: Mapping[str, str]) -> str:
    """Put what a pattern found into its words; a plural is chosen by `n`."""
    parts: dict[str, object] = {name: _part(name, held) for name, held in found.items()}
    if found.get("n", "").isdecimal():
        parts["n"] = int(found["n"])
    return str(words % parts)


def finding_words(text: str) -> str:
    """Say what an audit found, sentence by sentence; what nobody fixed the words of stays whole."""
    parts = _SENTENCE_ENDS.split(text)
    said = [engine_words(one) for one in parts]
    return text if said == parts else sentences(said)


SEATS, BACKENDS = frozenset(Seat), frozenset(Backend)


def who_words(name: str) -> str:
    """Say who wrote or did something: a seat with its backend, or the system; a name stays."""
    seat, _space, backend = name.partition(" ")
    if seat not in SEATS:
        seat, backend = backend, seat  # comments name the backend first
    if seat in SEATS and backend in BACKENDS:
        return gettext("%(seat)s (%(backend)s)") % {
            "seat": seat_word(seat), "backend": backend_word(backend),
        }  # fmt: skip
    return str(WHO.get(name, name))


def actor_name(actor: str) -> str:
    """The bare name of an actor: `human:sir` is sir; the system says its own word."""
    return who_words(actor.partition(":")[2] or actor)


def _part(name: str, held: str) -> str:
    """Say a code inside a text by its word."""
    if name == "seat" and held in tuple(Seat):
        return seat_word(held)
    if name == "task_state" and held in tuple(TaskStatus):
        return str(task_label(held).word)
    if name == "project_state" and held in tuple(ProjectStatus):
        return str(project_label(held).word)
    if name == "severity" and held in tuple(Severity):
        return str(severity_label(held).word)
    if name == "steps":
        return step_names(held)
    if name == "yaml":
        return yaml_words(held)
    if name == "rest":  # what each command that failed did: its words, then its state
        return held or ""
    return "; ".join(map(engine_words, held.split("; "))) if name == "why" else held
