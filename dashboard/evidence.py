"""What a card shows as proof and proposal: output of the failing check, the diff of a fix, rounds.

Source: UI.md sections 5.1 and 5.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext

from dashboard.clock import clock_text
from dashboard.highlighting import DiffSet, diff_set
from dashboard.presenters import decision_label, output_view
from dashboard.shapes import OutputView, Round
from dashboard.vocabulary import WAITING, Label, Role
from orchestration.errors import Invalid
from orchestration.models import Decision, Defect
from orchestration.rules.diffs import parse_diff
from orchestration.rules.test_guides import loosened_tests
from orchestration.rules.tool_record import OBSERVED, SELF_REPORTED
from orchestration.states import DecisionStatus

EVIDENCE_LINES = 20
PANE_LINES = 10
"""The tail of a failing check that a card shows at once; the earlier lines are one press away.
The pane shows fewer, so that the proposed fix is in sight above the dock.
"""
ROUND_OUTCOMES: Mapping[str, Label] = {
    "verified": Label("circle-check", "", Role.GREEN),
    "did_not_verify": Label("circle-x", "", Role.RED),
    "not_applied": Label("circle-x", "", Role.RED),
    "changes_requested": Label("pencil", "", Role.INK),
}


@dataclass(frozen=True, slots=True)
class EvidenceView:
    """The failing check: output that we ran, or words of a reviewer, and who says so and when.

    Shape: `beside` is what else speaks against the same claim, weaker evidence last.
    """

    output: OutputView | None
    text: str
    note: str
    beside: tuple[EvidenceView, ...] = ()


@dataclass(frozen=True, slots=True)
class FixView:
    """A proposed fix.

    Shape: `problem` says why it cannot be shown whole, so not be signed; `weakened` the tests that
    it deletes, disables or loosens.
    """

    description: str
    diff: DiffSet | None
    commands: tuple[str, ...]
    raw: str = ""
    problem: str = ""
    weakened: tuple[str, ...] = ()


def moment_of(value: object) -> datetime | None:
    """Read a moment that was stored as text in a document."""
    found = parse_datetime(value) if isinstance(value, str) else None
    return found if found is not None and found.tzinfo is not None else None


def evidence_view(
    evidence: Mapping[str, Any],
    *,
    place: str,
    source_key: str,
    tail_lines: int = EVIDENCE_LINES,
) -> EvidenceView:
    """Show the evidence of a defect: who ran it and when is said beside it."""
    if not evidence:
        return EvidenceView(None, "", "")
    if "output_tail" not in evidence:
        by = str(evidence.get("by", ""))
        note = gettext("reported by %(name)s") % {"name": by} if by else ""
        return EvidenceView(None, str(evidence.get("text", "")), note)
    command = str(evidence.get("command", ""))
    tail = str(evidence.get("output_tail", ""))
    code = evidence.get("exit_code")
    view = output_view(
        tail,
        command=command,
        tail_lines=tail_lines,
        title=check_title(place, source_key),
        exit_code=code if isinstance(code, int) else None,
        note="" if isinstance(code, int) else str(evidence.get("outcome", "")),
    )
    beside = tuple(
        evidence_view(one, place=place, source_key="", tail_lines=tail_lines)
        for one in evidence.get("beside") or ()
        if isinstance(one, Mapping)
    )
    return EvidenceView(view, "", _ran_by(evidence), beside)


def check_title(place: str, source_key: str) -> str:
    """Name a check by its step and its place in it: `2b run 1`."""
    kind, _, index = source_key.partition(":")
    if not index.isdigit():
        return place
    words = gettext("run %(n)s") if kind == "run" else gettext("verify %(n)s")
    return f"{place} · {words % {'n': int(index) + 1}}"


def _ran_by(evidence: Mapping[str, Any]) -> str:
    if evidence.get("grade") == OBSERVED:
        return gettext("from the record of its agent’s tool calls")
    if evidence.get("grade") == SELF_REPORTED:
        return gettext("a tool call that its agent reported")
    at = moment_of(evidence.get("at"))
    if at is None:
        return gettext("run by us")
    return gettext("run by us, %(time)s") % {"time": clock_text(at, seconds=True)}


def fix_view(fix: Mapping[str, Any] | None) -> FixView | None:
    """Show a proposed fix. What cannot be shown whole is shown raw and says why."""
    if not fix:
        return None
    patch = str(fix.get("patch") or "")
    commands = tuple(" ".join(one.get("argv", ())) for one in fix.get("commands", ()))
    description = str(fix.get("description") or "")
    if not patch.strip():
        return FixView(description, None, commands)
    try:
        shown = diff_set(parse_diff(patch))
    except Invalid as error:
        return FixView(description, None, commands, raw=patch, problem=error.detail)
    return FixView(description, shown, commands, weakened=tuple(loosened_tests(patch)))


def rounds_of(decision: Decision, defect: Defect) -> list[Round]:
    """List what was tried before this item, and this item, highlighted, with what became of it."""
    opened = decision.created_at
    earlier = [one for one in defect.rounds if (moment_of(one.get("at")) or opened) <= opened]
    ran_again = any(one.get("outcome") == "did_not_verify" for one in earlier)
    first_code = (decision.content.get("evidence") or {}).get("exit_code")
    first = Round(
        word=gettext("Step output"),
        tried=gettext("as handed in"),
        outcome=Label("circle-x", gettext("Check failed"), Role.RED),
        evidence_note="" if ran_again else _exit_words(first_code),
        at=defect.created_at,
    )
    return [first, *(tried_round(one) for one in earlier), _this_round(decision, defect)]


def _this_round(decision: Decision, defect: Defect) -> Round:
    """The round that the item proposes: open, or what came of it, or the verdict that stands."""
    number = decision.content.get("round", 1)
    fix = decision.content.get("fix") or {}
    row = Round(
        word=gettext("Fix round %(n)s") % {"n": number},
        tried=plain_words(str(fix.get("description") or "")) or gettext("no fix proposed"),
        outcome=WAITING,
        evidence_note=gettext("not tried yet"),
        at=decision.created_at,
        is_current=True,
    )
    if decision.status == DecisionStatus.OPEN:
        return row
    came = [
        one
        for one in defect.rounds
        if one.get("round") == number
        and (moment_of(one.get("at")) or decision.created_at) > decision.created_at
    ]
    if came:
        known = tried_round(came[0])
        tried = known.tried if came[0].get("outcome") == "changes_requested" else row.tried
        return replace(known, tried=tried, is_current=True)
    label = decision_label(decision.status, decision.verdict)
    return replace(row, outcome=label, evidence_note="", at=decision.decided_at)


def plain_words(text: str) -> str:
    """Markdown as one line of plain words, for a table's cell."""
    return " ".join(text.replace("`", "").replace("**", "").split())


def tried_round(one: Mapping[str, Any]) -> Round:
    """One round that is over: what was tried and what came of it."""
    outcome = str(one.get("outcome", ""))
    words = {
        "verified": gettext("Verified"),
        "did_not_verify": gettext("Did not verify"),
        "not_applied": gettext("Could not be applied"),
        "changes_requested": gettext("You asked for changes"),
    }
    tried = plain_words(str(one.get("tried", "")))
    if outcome == "changes_requested":
        tried = f"“{tried}”"
    return Round(
        word=gettext("Fix round %(n)s") % {"n": one.get("round", "")},
        tried=tried,
        outcome=ROUND_OUTCOMES.get(outcome, Label("circle-dot", "", Role.INK)),
        outcome_word=words.get(outcome, outcome),
        evidence_note=str(one.get("detail") or "") or _exit_words(one.get("exit_code")),
        at=moment_of(one.get("at")),
    )


def evidence_note(evidence: Mapping[str, Any]) -> str:
    """What speaks for a defect, in one line: the command and its exit, or a reviewer's words."""
    words = str(evidence.get("command") or evidence.get("text") or "")
    return " · ".join(one for one in (words, _exit_words(evidence.get("exit_code"))) if one)


def _exit_words(code: object) -> str:
    return gettext("exit %(code)s") % {"code": code} if isinstance(code, int) else ""
