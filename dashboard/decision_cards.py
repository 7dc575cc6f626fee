"""The card of one decision: what is asked, what it stands on, what waits, and what can be signed.

The pane and the decision page show the same card; the page adds the rail.
Source: UI.md sections 5.1 and 5.2, DESIGN section 9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from dashboard.cards import closed_card, make_dock
from dashboard.charts import Impact
from dashboard.check_texts import check_words, over_budget_words
from dashboard.clock import clock_text
from dashboard.decision_facts import Fact, about_of, waits_of
from dashboard.engine_texts import engine_words, finding_words
from dashboard.escalations import Escalation, escalation_of
from dashboard.evidence import (
    EVIDENCE_LINES,
    PANE_LINES,
    EvidenceView,
    FixView,
    evidence_view,
    fix_view,
    rounds_of,
)
from dashboard.failure_words import class_word
from dashboard.impacts import impact_of_decision
from dashboard.inbox_rows import closing_words, kind_words, round_words, row_title
from dashboard.mesh_lines import FieldLine, RoundLine, intent_lines, round_lines
from dashboard.places import address, decision_place, decision_url, task_key
from dashboard.presenters import decision_label, severity_label
from dashboard.reviewed import Reviewed, budget_fields, reviewed_of
from dashboard.shapes import ClosedCard, Dock, DockField, Round
from dashboard.verdicts import KINDS, ending_verdict
from dashboard.vocabulary import Label
from orchestration.contracts.options import LOOP
from orchestration.models import Decision, Task
from orchestration.selectors.blocked import count_needing
from orchestration.selectors.inbox import successor_of
from orchestration.states import DecisionKind, DecisionStatus

K = DecisionKind


@dataclass(frozen=True, slots=True)
class CommandLine:
    """One command that asks for approval."""

    step: str
    action: str
    text: str
    cwd: str
    digest: str


@dataclass(slots=True)
class Card:
    """Everything the card's templates show. Empty parts are not drawn."""

    decision: Decision
    title: str
    question: str
    kind_word: str
    kind_icon: str
    label: Label
    severity: Label | None
    place: str
    round_words: str
    description: str
    evidence: EvidenceView
    fix: FixView | None
    rounds: Sequence[Round] = ()
    commands: Sequence[CommandLine] = ()
    findings: Sequence[str] = ()
    matches: Sequence[str] = ()
    steps: Sequence[tuple[str, str]] = ()
    attempts: Sequence[Mapping[str, Any]] = ()
    intent: Sequence[FieldLine] = ()
    talk: Sequence[RoundLine] = ()
    reviewed: Reviewed | None = None
    waits: list[Fact] = field(default_factory=list)
    about: list[Fact] = field(default_factory=list)
    impact: Impact | None = None
    escalation: Escalation | None = None

    @property
    def is_open(self) -> bool:
        """Whether it can still be decided."""
        return self.decision.status == DecisionStatus.OPEN

    @property
    def may_end(self) -> bool:
        """Whether it can be rejected, and so can those beside it."""
        has_siblings = self.decision.task_id is not None
        return self.is_open and has_siblings and bool(ending_verdict(self.decision))

    @property
    def may_strike(self) -> bool:
        """Whether single commands can be struck out: only where they may be amended."""
        return self.is_open and self.decision.kind == DecisionKind.COMMAND_APPROVAL

    @property
    def problem(self) -> str:
        """Why nobody may say a clean yes: what would be signed cannot be shown whole."""
        if self.fix is None or not self.fix.problem:
            return ""
        return gettext("The fix cannot be shown whole, so it cannot be approved: %(why)s") % {
            "why": self.fix.problem
        }


def make_card(decision: Decision, *, blocks: int, is_page: bool, until: int | None = None) -> Card:
    """Build the card; the rail and the earlier rounds only for the page. Costs a few queries."""
    content = decision.content
    kind = DecisionKind(decision.kind)
    severity = content.get("severity")
    defect = decision.defect
    card = Card(
        decision=decision,
        title=row_title(decision),
        question=question_words(decision),
        kind_word=kind_words(decision),
        kind_icon=KINDS[kind].icon,
        label=decision_label(decision.status, decision.verdict),
        severity=severity_label(severity) if severity else None,
        place=decision_place(decision) if decision.task is not None else "",
        round_words=round_words(decision),
        description=_description(decision),
        evidence=evidence_view(
            content.get("evidence") or {},
            place=step_word(decision),
            source_key=defect.source_key if defect is not None else "",
            tail_lines=EVIDENCE_LINES if is_page else PANE_LINES,
        ),
        fix=fix_view(content.get("fix")),
        commands=[_command(one) for one in content.get("commands", ()) if isinstance(one, dict)],
        findings=_findings(decision),
        matches=list(dict.fromkeys(str(one.get("text", "")) for one in content.get("matches", ()))),
        steps=_plan_steps(content),
        attempts=_attempts(decision),
        intent=intent_lines(content),
        talk=round_lines(content) if content.get("reason") == "negotiation" else (),
        reviewed=reviewed_of(decision),
    )
    if is_page:
        _add_page_parts(card, blocks, until)
    return card


def _add_page_parts(card: Card, blocks: int, until: int | None) -> None:
    """Add what only the page shows: the rail, earlier rounds, failed attempts side by side."""
    decision = card.decision
    card.impact = impact_of_decision(decision) if card.is_open else None
    card.waits = waits_of(decision, blocks, card.impact)
    card.about = about_of(decision)
    if decision.defect is not None and decision.kind == K.MEDIUM_DEFECT:
        card.rounds = rounds_of(decision, decision.defect)
    if decision.kind == K.MAX_RETRIES and decision.task is not None:
        card.escalation = escalation_of(decision, decision.task, blocks=blocks, until=until)


def step_word(decision: Decision) -> str:
    """The step key of a decision, else the key of its root."""
    if decision.task is None:
        return decision.project.name
    return decision.task.step_key or task_key(decision.task, decision.project)


def quoted_key(key: str) -> str:
    """A step key inside a sentence: one that is a plain word stands in quotes."""
    return f"“{key}”" if key.isalpha() else key


QUESTIONS = {
    (K.MEDIUM_DEFECT, True): _("Apply the proposed fix to %(step)s?"),
    (K.MEDIUM_DEFECT, False): _("Have %(step)s fixed?"),
    (K.COMMAND_APPROVAL, False): _("May these commands run on this machine?"),
    (K.PLAN_REJECTED, False): _("The plan did not pass its audit. What now?"),
    (K.HIGH_NOTICE, False): _("A High defect is being fixed by rule. Nothing waits for you."),
    (K.HIGH_NOTICE, True): _("A High defect is being fixed by rule. Nothing waits for you."),
    (K.MAX_RETRIES, False): _("No attempt passed. What now?"),
    (K.FINAL_REVIEW, False): _("Is the result what you wanted?"),
    (K.BUDGET_EXCEEDED, False): _("This work used more than it may. Raise its limit?"),
}


def question_words(decision: Decision) -> str:
    """The question in the reader's language where we asked it; an agent's question as it stands."""
    kind = DecisionKind(decision.kind)
    reason = decision.content.get("reason")
    if kind is K.WAITING_HUMAN and reason == "red_line" and decision.content.get("asked_by"):
        return gettext("An agent is about to run a command across a red line. May it?")
    if kind is K.WAITING_HUMAN and reason == "red_line":
        return engine_words(decision.question)
    if kind is K.CLARIFICATION and reason == "blocked":
        return gettext("This task is blocked. Can it go on?")
    known = QUESTIONS.get((kind, bool(decision.content.get("fix"))))
    if known is None:
        return engine_words(decision.question)
    step = gettext("step %(key)s") % {"key": quoted_key(step_word(decision))}
    if decision.task is None or decision.task.parent_id is None:
        step = step_word(decision)
    return str(known) % {"step": step}


def _description(decision: Decision) -> str:
    content = decision.content
    description = content.get("description")
    if description == (content.get("fix") or {}).get("description"):
        description = ""  # said beside the fix, once is enough
    # Why an intent comes to Sir stands beside what was understood.
    detail = content.get("detail") if "understanding" not in content else ""
    if decision.kind == K.BUDGET_EXCEEDED:
        detail = over_budget_words(content.get("exceeded") or {})
        if content.get("is_finished"):
            detail = f"{detail}\n\n{gettext('Its result is handed in and waits for your word.')}"
    elif decision.defect is not None and description is not None:
        description = check_words(str(description))
    before = content.get("refused_before")
    said = gettext("You refused this before: %(reason)s") % {"reason": before} if before else ""
    parts = [description, detail, content.get("amended"), said]
    text = "\n\n".join(str(one) for one in parts if one)
    return "" if text == decision.title else text


def _command(one: Mapping[str, Any]) -> CommandLine:
    return CommandLine(
        step=str(one.get("step", "")),
        action=str(one.get("action", "")),
        text=" ".join(str(part) for part in one.get("argv", ())),
        cwd=str(one.get("cwd") or ""),
        digest=str(one.get("digest", "")),
    )


def _findings(decision: Decision) -> list[str]:
    """What an audit found; a final review shows its own beside the work."""
    if decision.kind == K.FINAL_REVIEW:
        return []
    if decision.content.get("reason") == LOOP:
        return [_blocker(one) for one in decision.content.get("blockers", ())]
    return [finding_words(str(one)) for one in decision.content.get("findings", ())]


def _blocker(one: Mapping[str, Any]) -> str:
    """A task that cannot start, and what it still needs."""
    needs = ", ".join(str(need) for need in one.get("needs", ()))
    words = f"{one.get('key', '')} {one.get('title', '')}"
    return gettext("%(task)s needs %(needs)s") % {"task": words, "needs": needs} if needs else words


def _plan_steps(content: Mapping[str, Any]) -> list[tuple[str, str]]:
    steps = (content.get("plan") or {}).get("steps", ())
    return [(str(one.get("id", "")), str(one.get("action", ""))) for one in steps]


def _attempts(decision: Decision) -> Sequence[Mapping[str, Any]]:
    if decision.kind != K.MAX_RETRIES:
        return ()
    return [
        {
            **one,
            "class": class_word(str(one.get("class", ""))),
            "root_cause": engine_words(str(one.get("root_cause", ""))),
        }
        for one in decision.content.get("failures", ())
    ]


# --- The dock -------------------------------------------------------------------------------------


class _Shown:
    """A decision with the live figures its consequences speak of; they are not signed."""

    def __init__(self, decision: Decision, live: Mapping[str, Any]) -> None:
        self.kind, self.version, self.digest = decision.kind, decision.version, decision.digest
        self.deadline, self.on_expiry = decision.deadline, decision.on_expiry
        self.options: Sequence[Mapping[str, Any]] = [
            {
                **option,
                "label": _with_params(option["label"], live),
                "consequences": [_with_params(one, live) for one in option["consequences"]],
            }
            for option in decision.options
            if not (option["verdict"] == "answer" and _asks_yes_or_no(decision))
        ]


YES_OR_NO = frozenset({"red_line", "seat_failed", "irreversible_cut_off", "loop"})
"""Reasons of a question that a yes answers; only an agent's own question takes words."""


def _asks_yes_or_no(decision: Decision) -> bool:
    is_question = decision.kind == K.WAITING_HUMAN
    return is_question and decision.content.get("reason") in YES_OR_NO


def _with_params(words: Mapping[str, Any], live: Mapping[str, Any]) -> dict[str, Any]:
    return {**words, "params": {**words["params"], **live}}


def _live_params(decision: Decision, blocks: int) -> dict[str, Any]:
    """Figures of this moment for the consequences: what is freed, which attempt comes next."""
    live: dict[str, Any] = {"frees": blocks, "step": quoted_key(step_word(decision))}
    task = decision.task
    if task is not None:
        root = task.root if task.root is not None else task
        thresholds = decision.project.policy.thresholds
        live |= {"root": task_key(task, decision.project), "next_attempt": root.attempt + 1}
        if root.attempt < thresholds.max_retries:
            live["max_attempts"] = thresholds.max_retries
        live |= _ends_with(decision, task, blocks)
    return live


def _ends_with(decision: Decision, task: Task, blocks: int) -> dict[str, Any]:
    """What cancelling a task touches; what waits only because its project stands is not part."""
    if task.parent_id is not None:
        return {"is_child" if task.is_spawned else "is_step": True}
    needed_by = count_needing(task.pk) if decision.kind == K.MAX_RETRIES else blocks
    return {"needed_by": needed_by} if needed_by else {"needed_by_none": True}


def dock_of(
    card: Card, *, draft: str = "", error: str = "", may_decide: bool = True, blocks: int = 0
) -> Dock | None:
    """The dock of an open card for a reader who decides, else None."""
    decision = card.decision
    if not card.is_open or not may_decide:
        return None
    dock = make_dock(
        _Shown(decision, _live_params(decision, blocks)),
        id=str(decision.pk),
        action=address("decide", decision.pk),
        draft=draft,
        draft_url=address("decision_draft", decision.pk),
        pause_url=address("pause", decision.project.slug),
        error=error,
        blocked_reason=card.problem,
        fields=_fields(decision),
        fragment_url=address("decision_dock", decision.pk),
    )
    if decision.content.get("reason") != "question":
        return dock
    # An agent's question is answered with words, so that verdict too needs them.
    verdicts = [
        replace(one, requires_reason=True) if one.verdict == "answer" else one
        for one in dock.verdicts
    ]
    return replace(dock, verdicts=verdicts)


def _fields(decision: Decision) -> list[DockField]:
    if decision.kind == K.MAX_RETRIES and decision.task is not None:
        text, release = _("The task’s text"), _("Free what waits for it")
        words = decision.task.description
        return [
            DockField("text", text, kind="textarea", value=words, verdict="amend"),
            DockField("release_dependents", release, kind="checkbox", verdict="waive"),
        ]
    return budget_fields(decision) if decision.kind == K.BUDGET_EXCEEDED else []


def closed_of(
    decision: Decision, *, outcome: str = "", next_url: str = "", is_refused: bool = False
) -> ClosedCard:
    """The card that stands where the dock stood: who decided what and when."""
    if decision.status == DecisionStatus.DECIDED and decision.decided_at is not None:
        who = decision.decided_by.get_username() if decision.decided_by else ""
        return closed_card(
            id=str(decision.pk), verdict=decision.verdict,
            who=who or decision.decided_by_policy, at=decision.decided_at,
            reason=decision.reason, version=decision.version, digest=decision.digest,
            outcome=outcome, next_url=next_url, is_refused=is_refused,
        )  # fmt: skip
    label = decision_label(decision.status)
    at = clock_text(decision.decided_at, seconds=True) if decision.decided_at else ""
    headline = gettext("%(state)s, %(time)s") % {"state": label.word, "time": at}
    return ClosedCard(
        str(decision.pk), label.icon, headline, closing_words(decision), decision.version,
        decision.digest, outcome, next_url, is_refused,
    )  # fmt: skip


def successor_url(decision: Decision) -> str:
    """The address of the item that took this one's place, or nothing."""
    if decision.status != DecisionStatus.WITHDRAWN:
        return ""
    following = successor_of(decision)
    return decision_url(following) if following is not None else ""
