"""The live log: output of commands and events as lines, with a cursor that gives each line once.

Source: UI.md section 5.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy as _

from dashboard.charts import LogLine
from dashboard.places import address
from orchestration.models import Project, Task
from orchestration.selectors.activity import LogCursor, LogRow, read_log

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
    "plan.drafted": _("plan revision %(revision)s, %(steps)s steps"),
    "plan.audited": _("audit of revision %(revision)s: %(verdict)s"),
    "plan.needs_revision": _("revision %(revision)s goes back"),
    "plan.rejected": _("revision %(revision)s rejected"),
    "blueprint.locked": _("blueprint v%(number)s locked, %(steps)s steps"),
    "review.pass": _("QA passed it"),
    "review.fail": _("QA found %(defects)s defects"),
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
}
BAD_EVENTS = frozenset({"task.failed", "task.fatal", "review.fail", "defect.rejected"})
BAD_STARTS = ("E ", "Traceback (", "ERROR", "FAILED", "error:", "fatal:")


class _Facts(dict[str, Any]):
    """Facts of an event; one that an old event does not have reads as nothing."""

    def __missing__(self, key: str) -> str:
        return ""


def make_log_lines(rows: Sequence[LogRow], *, shown_root: int | None) -> list[LogLine]:
    """Turn rows of the log into lines in the reader's language; output stays as it is.

    Steps of another root than the one shown carry its number: `9/3`.
    """
    return [_line(row, shown_root) for row in rows]


def _line(row: LogRow, shown_root: int | None) -> LogLine:
    step = row.step
    if row.root_id is not None and row.root_id != shown_root:
        step = f"{row.root_number}/{step}" if step else str(row.root_number)
    if not row.event:
        look = "bad" if row.text.startswith(BAD_STARTS) else ""
        return LogLine(row.at, step, row.source, row.text, look)
    words = str(EVENT_WORDS.get(row.event, row.event))
    text = (words % _Facts(row.facts or {})).rstrip(": ")
    return LogLine(row.at, step, row.source, text, "bad" if row.event in BAD_EVENTS else "")


def log_context(project: Project, root: Task | None) -> dict[str, Any]:
    """The newest lines of a project's log and where its page asks for more."""
    rows, cursor = read_log(project.pk, LogCursor())
    shown = root.pk if root is not None else None
    return {
        "lines": make_log_lines(rows, shown_root=shown),
        "log_url": address("log", project.slug, shown=shown),
        "log_after": cursor.text(),
        "log_topic": f"log:{project.pk} audit:{project.pk}",
        "download_url": address("log_file", project.slug),
    }
