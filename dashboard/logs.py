"""The live log: output of commands and events as lines, with a cursor that gives each line once.

Source: UI.md section 5.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext, ngettext_lazy, pgettext_lazy

from dashboard.charts import LogLine
from dashboard.engine_texts import engine_words, who_words
from dashboard.places import address
from dashboard.verdicts import VERDICT_LABELS
from dashboard.vocabulary import SEVERITY_LABELS
from orchestration.models import Project, Task
from orchestration.selectors.activity import LogCursor, LogRow, read_log
from orchestration.states import AuditVerdict, Severity

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

EVENT_WORDS: Mapping[str, str | StrPromise] = {
    "task.claimed": _("claimed"),
    "task.working": _("works on it"),
    "task.review": _("handed in"),
    "task.blocked": _("blocked: %(why)s"),
    "task.waiting_human": _("waits for Sir: %(why)s"),
    "task.done": _("done"),
    "task.failed": _("failed: %(why)s"),
    "task.fatal": _("fatal: %(why)s"),
    "task.cancelled": _("cancelled: %(why)s"),
    "task.progress": _("progress: step %(actual_steps)s %(why)s"),
    "assignment.expired": _("lease ended: %(why)s"),
    "plan.drafted": ngettext_lazy(
        "plan revision %(revision)s, %(steps)s step",
        "plan revision %(revision)s, %(steps)s steps",
        "steps",
    ),
    "plan.audited": _("audit of revision %(revision)s: %(verdict)s"),
    "plan.needs_revision": _("revision %(revision)s goes back"),
    "plan.rejected": _("revision %(revision)s rejected"),
    "blueprint.locked": ngettext_lazy(
        "blueprint v%(number)s locked, %(steps)s step",
        "blueprint v%(number)s locked, %(steps)s steps",
        "steps",
    ),
    "review.pass": _("QA passed it"),
    "review.fail": _("QA found defects: %(defects)s"),
    "validation.packaged": _("verdict %(verdict)s %(why)s"),
    "loop.commanded": _("the loop: %(next_action)s"),
    "fix.recorded": _("fix round %(fix_round)s applied: %(why)s"),
    "artifact.locked": _("locked %(name)s v%(version)s"),
    "defect.open": _("defect, %(severity)s: %(title)s"),
    "defect.verified": _("defect verified"),
    "defect.accepted_as_is": _("defect accepted as is"),
    "defect.rejected": _("defect rejected"),
    "decision.opened": _("asks Sir: %(question)s"),
    "decision.decided": _("Sir decided: %(verdict)s"),
    "decision.withdrawn": _("question withdrawn: %(why)s"),
    "decision.expired": _("question expired"),
    "handshake.opened": _("says what it understood"),
    "handshake.awaiting_auditor": _("its intent goes to the auditor: %(why)s"),
    "handshake.awaiting_sir": _("its intent goes to Sir: %(why)s"),
    "handshake.confirmed": _("intent confirmed"),
    "handshake.confirmed_with_correction": _("intent confirmed with a correction"),
    "handshake.rejected": _("intent rejected: %(why)s"),
    "handshake.void": _("intent void: %(why)s"),
}
AUDIT_WORDS: Mapping[str, str | StrPromise] = {
    AuditVerdict.APPROVED.value: pgettext_lazy("audit", "approved"),
    AuditVerdict.APPROVED_WITH_SUGGESTIONS.value: pgettext_lazy(
        "audit", "approved with suggestions"
    ),
    AuditVerdict.NEEDS_REVISION.value: pgettext_lazy("audit", "needs revision"),
    AuditVerdict.REJECTED.value: pgettext_lazy("audit", "rejected"),
}
COUNTED_EVENTS = frozenset({"plan.drafted", "blueprint.locked"})
BAD_EVENTS = frozenset({"task.failed", "task.fatal", "review.fail", "defect.rejected"})
BAD_STARTS = ("E ", "Traceback (", "ERROR", "FAILED", "error:", "fatal:")


class _Facts(dict[str, Any]):
    """Facts of an event; one that an old event does not have reads as nothing."""

    def __missing__(self, key: str) -> str:
        return ""


LINE_CHARACTERS = 1_000


def make_log_lines(
    rows: Sequence[LogRow], project: Project, *, shown_root: int | None
) -> list[LogLine]:
    """Turn rows of the log into lines in the reader's language; output stays as it is.

    A root stands by its key, `DEMO-9`, and steps of another root than the one shown carry it:
    `DEMO-9/3`.
    """
    names = {name: who_words(name) for name in {row.source for row in rows}}
    return [_line(row, project, shown_root, names[row.source]) for row in rows]


def shortened(text: str) -> str:
    """Cut a line that no reader follows to its end; the downloaded log has all of it.

    A browser takes seconds to lay out one line of many thousand signs: one bar that a command
    prints must not take the board from everybody.
    """
    if len(text) <= LINE_CHARACTERS:
        return text
    left = len(text) - LINE_CHARACTERS
    return f"{text[:LINE_CHARACTERS]} " + (
        ngettext("… %(n)s more character", "… %(n)s more characters", left) % {"n": left}
    )


def _line(row: LogRow, project: Project, shown_root: int | None, source: str) -> LogLine:
    step = row.step
    if row.root_id is not None and (row.root_id != shown_root or not step):
        key = f"{project.key_prefix}-{row.root_number}"
        step = f"{key}/{step}" if step else key
    if not row.event:
        look = "bad" if row.text.startswith(BAD_STARTS) else ""
        return LogLine(row.at, step, source, shortened(row.text), look)
    words = EVENT_WORDS.get(row.event, row.event)
    text = shortened(str(words % _facts(row)).rstrip(":： "))
    return LogLine(row.at, step, source, text, "bad" if row.event in BAD_EVENTS else "")


def _facts(row: LogRow) -> _Facts:
    """The facts of an event, its codes said in words."""
    facts = _Facts(row.facts or {})
    if row.event in COUNTED_EVENTS:
        facts["steps"] = int(facts["steps"] or 0)
    for name in ("why", "question"):
        if isinstance(facts.get(name), str):
            facts[name] = engine_words(facts[name])
    verdict, severity = str(facts.get("verdict", "")), str(facts.get("severity", ""))
    if row.event == "decision.decided" and verdict in VERDICT_LABELS:
        facts["verdict"] = VERDICT_LABELS[verdict].word
    if row.event == "plan.audited":
        facts["verdict"] = AUDIT_WORDS.get(verdict, verdict)
    if severity in tuple(Severity):
        facts["severity"] = SEVERITY_LABELS[Severity(severity)].word
    return facts


def log_context(project: Project, root: Task | None) -> dict[str, Any]:
    """The newest lines of a project's log and where its page asks for more."""
    rows, cursor = read_log(project.pk, LogCursor())
    shown = root.pk if root is not None else None
    return {
        "lines": make_log_lines(rows, project, shown_root=shown),
        "log_url": address("log", project.slug, shown=shown),
        "log_after": cursor.text(),
        "log_topic": f"log:{project.pk} audit:{project.pk}",
        "download_url": address("log_file", project.slug),
    }
