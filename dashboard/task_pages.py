"""A task's page as lines and cards, section by section.

Source: UI.md section 5.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext, ngettext, pgettext
from django.utils.translation import gettext_lazy as _

from dashboard.assessments import backend_word
from dashboard.boards import band_label
from dashboard.check_texts import check_words
from dashboard.engine_texts import engine_words, finding_words
from dashboard.fault_lines import fault_text
from dashboard.phrases import listed
from dashboard.presenters import layer_view, output_view, plan_label, trust_view
from dashboard.reviewed import marks_of
from dashboard.shapes import LayerView, MarkView, OutputView, Trust
from dashboard.vocabulary import BLUEPRINT_LOCKED, LAYER_WORDS, Label, Role
from orchestration.models import Agent, Task, Verification
from orchestration.rules.trust import declared_trust, proven_trust
from orchestration.selectors.graph import StepGraph
from orchestration.selectors.task_page import OutputItem, PlanRevision
from orchestration.states import (
    AuditVerdict,
    Complexity,
    PlanStatus,
    RiskLevel,
)

LAYERS_OF: Mapping[str, Sequence[str]] = {
    Complexity.LOW.value: ("L1", "L2"),
    Complexity.MEDIUM.value: ("L1", "L2", "L3"),
    Complexity.HIGH.value: ("L1", "L2", "L3", "L4"),
}
CHANGE_WORDS = {
    "added": _("step added"), "skipped": _("step skipped"), "changed": _("step changed"),
}  # fmt: skip
SHOWN_CONTENT = 20_000


# --- S2 -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RevisionLine:
    """One revision, locked blueprint or deviation."""

    word: str
    label: Label
    label_words: str
    text: str
    digest: str
    by: str
    at: datetime


def revision_lines(revisions: Sequence[PlanRevision]) -> list[RevisionLine]:
    """Revisions with what their audits said, blueprints with their hash, deviations."""
    lines = []
    for one in revisions:
        lines.append(_revision(one))
        if one.blueprint is None:
            continue
        lines.append(
            RevisionLine(
                f"v{one.blueprint.number}", BLUEPRINT_LOCKED, "", _size_words(one),
                one.blueprint.sha256, "", one.blueprint.locked_at,
            )
        )  # fmt: skip
        lines += [
            RevisionLine(
                f"± {deviation.step_key}",
                Label("arrow-fork", CHANGE_WORDS[deviation.change], Role.INK), "",
                deviation.reason, "", deviation.actor.partition(":")[2], deviation.created_at,
            )
            for deviation in one.deviations
        ]  # fmt: skip
    return lines


def _size_words(one: PlanRevision) -> str:
    """How large a blueprint is, where its steps still stand under it, and how often it was left."""
    parts = []
    for n, singular, plural in (
        (one.steps, "%(n)s step", "%(n)s steps"),
        (one.phases, "%(n)s phase", "%(n)s phases"),
        (len(one.deviations), "%(n)s deviation", "%(n)s deviations"),
    ):
        if n:
            parts.append(ngettext(singular, plural, n) % {"n": n})
    return listed(parts)


def _revision(one: PlanRevision) -> RevisionLine:
    plan, audit = one.plan, one.audit
    label = plan_label(plan.status, is_override=plan.is_override)
    words, text, by = "", "", _name_of(plan.agent, plan.backend)
    if plan.is_light:
        words = gettext("Light plan, not audited")
    if plan.faults:
        text = "; ".join(fault_text(fault) for fault in plan.faults)
    if audit is not None:
        by = _name_of(audit.agent, audit.backend)
        findings = [str(check.get("finding", "")) for check in audit.checks if not check.get("ok")]
        said = [one for one in findings if one] or [str(one) for one in audit.suggestions]
        text = "; ".join(finding_words(one) for one in said)
        n = len(audit.suggestions)
        if audit.verdict == AuditVerdict.APPROVED_WITH_SUGGESTIONS and n:
            words = ngettext(
                "Approved, %(n)s suggestion", "Approved, %(n)s suggestions", n
            ) % {"n": n}  # fmt: skip
    word = gettext("rev %(n)s") % {"n": plan.revision}
    if plan.attempt > 1:
        word = gettext("attempt %(a)s, rev %(n)s") % {"a": plan.attempt, "n": plan.revision}
    return RevisionLine(word, label, words, text, "", by, plan.created_at)


def _name_of(agent: Agent | None, backend: str) -> str:
    return agent.name if agent is not None else backend_word(backend)


def plan_words(revisions: Sequence[PlanRevision]) -> str:
    """The state of the newest revision, for the anchors."""
    audited = [one.plan for one in revisions if not one.plan.is_light]
    if not audited:
        return ""
    newest = audited[-1]
    if newest.status == PlanStatus.APPROVED:
        return gettext("approved")
    return str(plan_label(newest.status, is_override=newest.is_override).word).lower()


# --- Progress -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PhaseLine:
    """One phase in the rail."""

    word: str
    label: Label
    state: str
    numbers: str


def phase_lines(graph: StepGraph) -> list[PhaseLine]:
    """Progress by phase."""
    lines = []
    for phase in graph.phases:
        label = band_label(graph.root, phase)
        is_closed = phase.finished == phase.total
        is_open = phase.phase <= graph.root.open_phase
        words = (
            gettext("closed")
            if is_closed
            else pgettext("phase", "open")
            if is_open
            else gettext("waits")
        )
        numbers = f"{phase.finished}/{phase.total}"
        word = gettext("Phase %(n)s") % {"n": phase.phase}
        lines.append(PhaseLine(word, label, words, numbers))
    return lines


# --- Outputs --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OutputCard:
    """One output with its marks, trust and layers."""

    id: int
    step_key: str
    title: str
    path: str
    note: str
    summary: str
    change_note: str
    marks: Sequence[MarkView]
    layers: Sequence[LayerView]
    trust: Trust | None
    content: OutputView | None
    at: datetime


def output_cards(items: Sequence[OutputItem]) -> list[OutputCard]:
    """The cards of some outputs, in their order."""
    return [_output_card(item) for item in items]


def _output_card(item: OutputItem) -> OutputCard:
    output = item.output
    held = output.assignment
    by = held.agent.name if held is not None and held.agent is not None else ""
    by = by or (backend_word(held.backend) if held is not None else "")
    note = listed((f"v{output.version}", by))
    content = None
    if output.content.strip():
        text = output.content[:SHOWN_CONTENT]
        content = output_view(text, title=output.title)
    return OutputCard(
        id=output.pk,
        step_key=output.task.step_key,
        title=engine_words(output.title),
        path=output.path,
        note=note,
        summary="" if output.summary == output.title else engine_words(output.summary),
        change_note=output.change_note,
        marks=marks_of(output.marks),
        layers=_layer_views(output.task, item.layers),
        trust=_trust(output.assertions),
        content=content,
        at=output.created_at,
    )


def _layer_views(task: Task, found: Mapping[str, tuple[str, list[str]]]) -> list[LayerView]:
    wanted = list(LAYERS_OF.get(task.complexity, ("L1", "L2")))
    if task.risk_level == RiskLevel.CRITICAL:
        wanted.append("L5")
    shown = [level for level in LAYER_WORDS if level in wanted or level in found]
    return [
        layer_view(level, found[level][0], sentences_of(found[level][1]))
        if level in found
        else layer_view(level, "")
        for level in shown
    ]


def sentences_of(findings: Sequence[str]) -> str:
    """What a layer found, in the reader's language."""
    return "; ".join(check_words(one) for one in findings)


def _trust(assertions: Sequence[Mapping[str, Any]]) -> Trust | None:
    """Both figures from the claims; what was proven is unknown until they were judged."""
    if not assertions:
        return None
    is_judged = any("proof" in one for one in assertions)
    return trust_view(declared_trust(assertions), proven_trust(assertions) if is_judged else None)


@dataclass(frozen=True, slots=True)
class CheckView:
    """One command that we ran to check a task."""

    output: OutputView
    at: datetime


def check_views(checks: Sequence[Verification]) -> list[CheckView]:
    """The checks we ran ourselves, with their output."""
    views = []
    for one in checks:
        command = " ".join((one.command or {}).get("argv", ()))
        view = output_view(
            one.output_tail, command=command, title=one.layer, exit_code=one.exit_code
        )
        views.append(CheckView(view, one.created_at))
    return views
