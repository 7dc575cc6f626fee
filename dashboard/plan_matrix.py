"""Plan revisions side by side: what each audit said of each, and what changed from one to the next.

Source: UI.md section 5.5 ("Compare revisions").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from dashboard.assessments import backend_word
from dashboard.engine_texts import finding_words
from dashboard.fault_lines import fault_text
from dashboard.presenters import plan_label
from dashboard.vocabulary import Label, Role
from orchestration.models import Agent
from orchestration.selectors.task_page import PlanRevision

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

SHOWN_STEPS = 200
CHECKS: Mapping[str, str | StrPromise] = {
    "completeness": _("completeness"),
    "dependencies": _("dependencies"),
    "risk": pgettext_lazy("audit", "risks"),
    "resources": _("resources"),
    "time": pgettext_lazy("audit", "time"),
}
"""What auditors look at; an agent's own checks keep their names."""
ADDED = Label("plus", pgettext_lazy("plan step", "new"), Role.INK)
CHANGED = Label("pencil", pgettext_lazy("plan step", "changed"), Role.INK)
GONE = Label("minus", pgettext_lazy("plan step", "gone"), Role.GREY)


@dataclass(frozen=True, slots=True)
class Said:
    """One word and what stands behind it. `is_new` where the revision before said otherwise."""

    word: str | StrPromise
    texts: Sequence[str]
    is_new: bool = False
    is_bad: bool = False


@dataclass(frozen=True, slots=True)
class PlanColumn:
    """One revision: who wrote it, what became of it, what its auditor found."""

    number: int
    label: Label
    is_light: bool
    by: str
    auditor: str
    at: datetime
    summary: str
    assumptions: Sequence[str]
    said: Sequence[Said]
    digest: str
    deviations: int


@dataclass(frozen=True, slots=True)
class StepCell:
    """A step in one revision; `label` where it is new, changed or gone since the one before."""

    action: str
    facts: Sequence[Said]
    label: Label | None
    is_here: bool


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step over all revisions."""

    key: str
    cells: Sequence[StepCell]

    @property
    def is_changed(self) -> bool:
        """Whether any revision says something else of it than the one before."""
        return any(cell.label is not None for cell in self.cells)

    @property
    def newest(self) -> str:
        """What the newest revision that has the step says of it."""
        return next((cell.action for cell in reversed(self.cells) if cell.is_here), "")


@dataclass(frozen=True, slots=True)
class PlanMatrix:
    """Revisions side by side. Shape: at most SHOWN_STEPS rows, `total` counts all of them."""

    columns: Sequence[PlanColumn]
    rows: Sequence[StepRow]
    total: int


def plan_matrix(revisions: Sequence[PlanRevision]) -> PlanMatrix:
    """Set revisions beside each other, oldest first. Where rows are cut, the changed ones stay."""
    steps = [_steps_of(one.plan.body) for one in revisions]
    keys = list(dict.fromkeys(key for held in steps for key in held))
    rows = [StepRow(key, _cells([held.get(key) for held in steps])) for key in keys]
    shown = rows
    if len(rows) > SHOWN_STEPS:
        shown = sorted(rows, key=lambda row: not row.is_changed)[:SHOWN_STEPS]
    return PlanMatrix([_column(one) for one in revisions], shown, len(rows))


def _column(one: PlanRevision) -> PlanColumn:
    plan, audit = one.plan, one.audit
    body = plan.body if isinstance(plan.body, Mapping) else {}
    return PlanColumn(
        number=plan.revision,
        label=plan_label(plan.status, is_override=plan.is_override),
        is_light=plan.is_light,
        by=_name(plan.agent, plan.backend),
        auditor=_name(audit.agent, audit.backend) if audit is not None else "",
        at=plan.created_at,
        summary=str(body.get("summary", "")),
        assumptions=_texts(body.get("assumptions")),
        said=_said(one),
        digest=one.blueprint.sha256 if one.blueprint is not None else "",
        deviations=len(one.deviations),
    )


def _name(agent: Agent | None, backend: str) -> str:
    return agent.name if agent is not None else backend_word(backend)


def _said(one: PlanRevision) -> list[Said]:
    """What was found in it, and what its auditor suggests."""
    said = []
    if one.plan.faults:
        faults = [fault_text(fault) for fault in one.plan.faults]
        said.append(Said(_("Malformed"), faults, is_bad=True))
    if one.audit is None:
        return said
    for check in one.audit.checks:
        name = str(check.get("name", ""))
        is_ok = bool(check.get("ok"))
        finding = "" if is_ok else str(check.get("finding", ""))
        said.append(
            Said(
                CHECKS.get(name, name),
                [finding_words(finding)] if finding else [],
                is_bad=not is_ok,
            )
        )
    if one.audit.suggestions:
        said.append(
            Said(_("Suggestions"), [finding_words(one) for one in _texts(one.audit.suggestions)])
        )
    return said


def _steps_of(body: object) -> dict[str, Mapping[str, Any]]:
    steps = body.get("steps", ()) if isinstance(body, Mapping) else ()
    return {str(one.get("id", "")): one for one in steps if isinstance(one, Mapping)}


def _cells(versions: Sequence[Mapping[str, Any] | None]) -> list[StepCell]:
    cells: list[StepCell] = []
    before: Mapping[str, Any] | None = None
    for place, step in enumerate(versions):
        cells.append(_cell(step, before, is_first=place == 0))
        before = step
    return cells


def _cell(
    step: Mapping[str, Any] | None, before: Mapping[str, Any] | None, *, is_first: bool
) -> StepCell:
    if step is None:
        label = GONE if before is not None else None
        return StepCell("", (), label, is_here=False)
    facts = [
        Said(word, texts, is_new=before is not None and texts != read(before))
        for word, read in FACTS
        if (texts := read(step)) or (before is not None and read(before))
    ]
    label = None
    if not is_first and before is None:
        label = ADDED
    elif before is not None and before != step:
        label = CHANGED
    return StepCell(str(step.get("action", "")), facts, label, is_here=True)


def _texts(value: object) -> list[str]:
    """A field's values as texts. Commands and artifacts are named by what they run or make."""
    if value in (None, "", False):
        return []
    items = value if isinstance(value, list | tuple) else [value]
    return [_text(one) for one in items]


def _text(one: object) -> str:
    if not isinstance(one, Mapping):
        return str(one)
    if "argv" in one:
        return " ".join(map(str, one["argv"]))
    for name in ("cmd", "path", "name", "severity", "description"):
        if one.get(name):
            return str(one[name])
    return ""


def _field(name: str) -> Callable[[Mapping[str, Any]], list[str]]:
    return lambda step: _texts(step.get(name))


FACTS: Sequence[tuple[str | StrPromise, Callable[[Mapping[str, Any]], list[str]]]] = (
    (_("After"), _field("depends_on")),
    (_("Phase"), _field("phase")),
    (_("Makes"), _field("expected_artifacts")),
    (_("Runs"), _field("run")),
    (_("Verified by"), _field("verify")),
    (_("Writes"), _field("writes")),
    (_("Scope"), _field("scope")),
    (_("Risks"), _field("risks")),
    (_("Risk"), _field("risk_level")),
    (_("On failure"), _field("on_failure")),
    (_("Role"), _field("role")),
)
