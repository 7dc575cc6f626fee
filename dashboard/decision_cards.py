"""The card of one decision: what is asked, what it stands on, what waits, and what can be signed.

The pane and the decision page show the same card; the page adds the rail.
Source: UI.md sections 5.1 and 5.2, DESIGN section 9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.utils import timezone
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from dashboard.cards import closed_card, make_dock
from dashboard.charts import Impact
from dashboard.clock import clock_text, long_age
from dashboard.costs import cost_words
from dashboard.evidence import EvidenceView, FixView, evidence_view, fix_view, rounds_of
from dashboard.impacts import impact_of_decision
from dashboard.inbox_rows import closing_words, kind_words, round_words, row_title
from dashboard.places import address, decision_place, decision_url, task_key, task_url
from dashboard.presenters import decision_label, severity_label
from dashboard.shapes import ClosedCard, Dock, DockField, Round
from dashboard.verdicts import KINDS
from dashboard.vocabulary import Label
from orchestration.models import Decision, Task
from orchestration.selectors.inbox import successor_of
from orchestration.selectors.overview import cost_of
from orchestration.states import DecisionKind, DecisionStatus, Seat

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

K = DecisionKind


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the rail: a word and its value, with an address where it leads somewhere."""

    word: str | StrPromise
    text: str
    url: str = ""
    is_strong: bool = False
    key: str = ""
    note: str = ""


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
    waits: list[Fact] = field(default_factory=list)
    about: list[Fact] = field(default_factory=list)
    impact: Impact | None = None

    @property
    def is_open(self) -> bool:
        """Whether it can still be decided."""
        return self.decision.status == DecisionStatus.OPEN

    @property
    def problem(self) -> str:
        """Why nobody may say a clean yes: what would be signed cannot be shown whole."""
        if self.fix is None or not self.fix.problem:
            return ""
        return gettext("The fix cannot be shown whole, so it cannot be approved: %(why)s") % {
            "why": self.fix.problem
        }


def make_card(decision: Decision, *, blocks: int, is_page: bool) -> Card:
    """Build the card; the rail and the earlier rounds only for the page. Costs a few queries."""
    content = decision.content
    kind = DecisionKind(decision.kind)
    severity = content.get("severity")
    defect = decision.defect
    place = step_word(decision)
    source = defect.source_key if defect is not None else ""
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
        evidence=evidence_view(content.get("evidence") or {}, place=place, source_key=source),
        fix=fix_view(content.get("fix")),
        commands=[_command(one) for one in content.get("commands", ()) if isinstance(one, dict)],
        findings=[str(one) for one in content.get("findings", ())],
        matches=[str(one.get("text", "")) for one in content.get("matches", ())],
        steps=_plan_steps(content),
        attempts=_attempts(decision),
    )
    if is_page:
        card.impact = impact_of_decision(decision)
        card.waits = _waits(decision, blocks, card.impact)
        card.about = _about(decision)
        if defect is not None and kind is K.MEDIUM_DEFECT:
            card.rounds = rounds_of(decision, defect)
    return card


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
}


def question_words(decision: Decision) -> str:
    """The question in the reader's language where we asked it; an agent's question as it stands."""
    kind = DecisionKind(decision.kind)
    reason = decision.content.get("reason")
    if kind is K.WAITING_HUMAN and reason == "red_line":
        return gettext("This task crosses a red line. May it start?")
    if kind is K.CLARIFICATION and reason == "blocked":
        return gettext("This task is blocked. Can it go on?")
    known = QUESTIONS.get((kind, bool(decision.content.get("fix"))))
    if known is None:
        return decision.question
    step = gettext("step %(key)s") % {"key": quoted_key(step_word(decision))}
    if decision.task is None or decision.task.parent_id is None:
        step = step_word(decision)
    return str(known) % {"step": step}


def _description(decision: Decision) -> str:
    content = decision.content
    description = content.get("description")
    if description == (content.get("fix") or {}).get("description"):
        description = ""  # said beside the fix, once is enough
    parts = [description, content.get("detail"), content.get("amended")]
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


def _plan_steps(content: Mapping[str, Any]) -> list[tuple[str, str]]:
    steps = (content.get("plan") or {}).get("steps", ())
    return [(str(one.get("id", "")), str(one.get("action", ""))) for one in steps]


def _attempts(decision: Decision) -> Sequence[Mapping[str, Any]]:
    if decision.kind != K.MAX_RETRIES:
        return ()
    given = decision.content.get("attempts") or decision.content.get("packages")
    if given:
        return list(given)
    return list(decision.task.failure_context) if decision.task is not None else ()


# --- The rail -------------------------------------------------------------------------------------


def _waits(decision: Decision, blocks: int, impact: Impact | None) -> list[Fact]:
    words = ngettext("%(n)s task", "%(n)s tasks", blocks) % {"n": blocks}
    if impact is not None and impact.phases > 1:
        words = gettext("%(tasks)s in %(n)s phases") % {"tasks": words, "n": impact.phases}
    facts = [Fact(_("Blocks"), words if blocks else gettext("nothing"), is_strong=bool(blocks))]
    if decision.status == DecisionStatus.OPEN:
        age = (timezone.now() - decision.created_at).total_seconds()
        facts.append(Fact(_("Waiting"), long_age(age)))
    facts.append(Fact(_("Deadline"), _deadline_words(decision.deadline)))
    rule = decision.on_expiry or {}
    if rule.get("policy_id"):
        facts.append(Fact(_("Then"), f"{rule['policy_id']}: {rule.get('outcome', '')}"))
    return facts


def _deadline_words(deadline: datetime | None) -> str:
    return clock_text(deadline) if deadline is not None else gettext("none, keeps waiting")


def _about(decision: Decision) -> list[Fact]:
    task, project = decision.task, decision.project
    facts = [Fact(_("Project"), project.name, address("board", project.slug))]
    if task is not None:
        root = task.root if task.root is not None else task
        key = task_key(task, project)
        facts.append(Fact(_("Task"), root.title, task_url(root, project), key=key))
        if task.parent_id is not None:
            url = task_url(task, project)
            facts.append(Fact(_("Step"), task.title, url, key=task.step_key))
    if decision.defect is not None:
        by = decision.defect.raised_by
        facts.append(Fact(_("Raised by"), gettext("rules") if by == "rules" else by))
    if decision.content.get("asked_by"):
        facts.append(Fact(_("Asked by"), str(decision.content["asked_by"])))
    return facts + (_work_facts(task) if task is not None else [])


def _work_facts(task: Task) -> list[Fact]:
    """Who fixes, what was handed in, and what it cost so far."""
    facts = []
    fixer = task.assignments.filter(seat=Seat.FIXER.value).select_related("agent").last()
    if fixer is not None:
        name = fixer.agent.name if fixer.agent is not None else fixer.backend
        facts.append(Fact(_("Fixer"), name))
    output = task.outputs.filter(is_orphan=False).exclude(path="").last()
    if output is not None:
        name = output.path.rpartition("/")[2]
        facts.append(Fact(_("Artifact"), "", key=f"{name} v{output.version}"))
    cost = cost_words(cost_of(task.assignments.all()))
    return [*facts, Fact(_("Cost so far"), cost)] if cost else facts


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
        ]


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
    return live


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
        word = _("The task's text, for “Amend the task”")
        return [DockField("text", word, kind="textarea", value=decision.task.description)]
    return []


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
