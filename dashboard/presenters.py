"""Labels, icons and words for the pages: machine codes in, typed rows for the template parts out.

No queries and no rules here; a page hands over what a selector read.
Source: UI.md sections 2, 5 and 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from dashboard.shapes import (
    LayerView,
    MarkView,
    Navigation,
    NavLink,
    OutputLine,
    OutputView,
    ProjectLink,
    Trust,
)
from dashboard.verdicts import VERDICT_LABELS
from dashboard.vocabulary import (
    ASSIGNMENT_LABELS,
    AUDIT_OVERRIDDEN,
    DECISION_LABELS,
    DEFECT_LABELS,
    LAYER_LOOKS,
    LAYER_WORDS,
    MARK_LABELS,
    NOT_READY_PLAIN,
    NOT_READY_WORDS,
    PLAN_LABELS,
    PROJECT_LABELS,
    SEVERITY_LABELS,
    SKIPPED,
    TASK_LABELS,
    TRUST_BANDS,
    WAITING_FOR_AGENT,
    Label,
    Role,
)
from orchestration.mark_words import mark_kind
from orchestration.rules.trust import trust_band
from orchestration.states import (
    SKIPPED_REASON,
    AssignmentStatus,
    DecisionStatus,
    DefectStatus,
    NotReadyReason,
    PlanStatus,
    ProjectStatus,
    Severity,
    TaskStatus,
)

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

OUTPUT_TAIL_LINES = 40


# --- Statuses -----------------------------------------------------------------------------------


def task_label(status: str, cancel_reason: str = "") -> Label:
    """The label of a task; a step cancelled as skipped reads "Skipped"."""
    if status == TaskStatus.CANCELLED and cancel_reason == SKIPPED_REASON:
        return SKIPPED
    return TASK_LABELS[TaskStatus(status)]


def not_ready_words(reason: str, params: Mapping[str, Any] | None = None) -> str:
    """Why a pending task is not offered, in grey words; without params the plain form."""
    code = NotReadyReason(reason)
    if params or code not in NOT_READY_PLAIN:
        return str(NOT_READY_WORDS[code] % (params or {}))
    return str(NOT_READY_PLAIN[code])


def project_label(status: str) -> Label:
    """The label of a project."""
    return PROJECT_LABELS[ProjectStatus(status)]


def defect_label(status: str) -> Label:
    """The label of a defect."""
    return DEFECT_LABELS[DefectStatus(status)]


def decision_label(status: str, verdict: str = "") -> Label:
    """The label of a decision; a decided one shows its verdict's own word."""
    if status == DecisionStatus.DECIDED and verdict in VERDICT_LABELS:
        return VERDICT_LABELS[verdict]
    return DECISION_LABELS[DecisionStatus(status)]


def assignment_label(status: str, *, has_filler: bool = True) -> Label:
    """The label of an assignment; queued without a filler waits for an agent."""
    if status == AssignmentStatus.QUEUED and not has_filler:
        return WAITING_FOR_AGENT
    return ASSIGNMENT_LABELS[AssignmentStatus(status)]


def plan_label(status: str, *, is_override: bool = False) -> Label:
    """The label of a plan revision; one that Sir let pass says so."""
    return AUDIT_OVERRIDDEN if is_override else PLAN_LABELS[PlanStatus(status)]


def severity_label(severity: str) -> Label:
    """The label of a severity, told by shape."""
    return SEVERITY_LABELS[Severity(severity)]


def layer_view(level: str, outcome: str, note: str = "") -> LayerView:
    """One verification layer. An outcome that is absent or unknown reads "not reached"."""
    icon, role, words = LAYER_LOOKS.get(outcome, LAYER_LOOKS["not_reached"])
    return LayerView(str(LAYER_WORDS[level]), icon, f"state--{role}", note or str(words))


def mark_view(kind: str, text: str = "", *, by: str = "") -> MarkView:
    """One mark in the reader's language, brackets kept. Errors: KeyError for an unknown kind."""
    return MarkView(mark_kind(kind, by), MARK_LABELS[kind].role, text)


def trust_view(declared: float | None, proven: float | None) -> Trust:
    """Both trust figures; the band goes by the proven one only."""
    if proven is None:
        return Trust(declared, proven, "")
    return Trust(declared, proven, str(TRUST_BANDS[trust_band(proven)]))


def exit_label(exit_code: int | None) -> Label | None:
    """The label of an exit code: green at 0, red above, nothing when the command never ended."""
    if exit_code is None:
        return None
    icon, role = ("circle-check", Role.GREEN) if exit_code == 0 else ("circle-x", Role.RED)
    return Label(icon, _("exit %(code)s") % {"code": exit_code}, role)


# --- Output -------------------------------------------------------------------------------------


def output_view(
    text: str,
    *,
    title: str,
    exit_code: int | None = None,
    note: str = "",
    command: str = "",
    tail_lines: int = OUTPUT_TAIL_LINES,
) -> OutputView:
    """Cut an output into its tail and the earlier lines; nothing of it is left out.

    The command stands over the tail, however long the output is.
    """
    lines = [OutputLine(line, _line_look(line)) for line in text.splitlines()]
    cut = max(len(lines) - tail_lines, 0)
    over = [OutputLine(f"$ {command}", "dim")] if command else []
    total = len(lines) + len(over)
    return OutputView(title, note, exit_label(exit_code), lines[:cut], [*over, *lines[cut:]], total)


def _line_look(line: str) -> str:
    if line.startswith(("E ", "Traceback (", "ERROR", "FAILED", "error:", "fatal:")):
        return "bad"
    return "dim" if line.startswith(("$ ", "    ")) else ""


# --- Shell --------------------------------------------------------------------------------------

MAIN_LINKS = (("inbox", "inbox", _("Inbox")), ("overview", "layout-dashboard", _("Overview")))
SYSTEM_LINKS = (
    ("agents", "robot", _("Agents")),
    ("knowledge", "books", _("Knowledge")),
    ("insights", "chart-bar", _("Insights")),
    ("audit", "history", _("Audit trail")),
    ("policy", "adjustments", _("Policy")),
)


def page_url(name: str) -> str:
    """The address of a dashboard page, or nothing where that page does not exist."""
    try:
        return reverse(f"dashboard:{name}")
    except NoReverseMatch:
        return ""


def _links(
    names: Iterable[tuple[str, str, str | StrPromise]], active: str, count: int | None
) -> tuple[NavLink, ...]:
    found = ((code, icon, word, page_url(code)) for code, icon, word in names)
    return tuple(
        NavLink(code, icon, word, url, code == active, count if code == "inbox" else None)
        for code, icon, word, url in found
        if url
    )


def make_navigation(
    *,
    inbox_count: int | None,
    projects: Sequence[ProjectLink],
    user_name: str,
    active: str,
    unread_count: int = 0,
) -> Navigation:
    """Build the shell's navigation from what the selectors read."""
    return Navigation(
        inbox_count=inbox_count,
        projects=tuple(projects),
        user_name=user_name,
        active=active,
        main=_links(MAIN_LINKS, active, inbox_count),
        system=_links(SYSTEM_LINKS, active, None),
        new_work_url=page_url("new_work"),
        search_url=page_url("search"),
        projects_url=page_url("projects"),
        count_url=page_url("inbox_count"),
        unread_count=unread_count,
        notices_url=page_url("notifications"),
    )


def waiting_words(count: int) -> str:
    """How many wait for Sir, as the lists say it."""
    return ngettext("%(n)s waits for you", "%(n)s wait for you", count) % {"n": count}
