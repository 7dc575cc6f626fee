"""Notable events as lines for the overview: what happened, where, and when.

Source: UI.md section 5.6 ("Since you last looked").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from dashboard.places import board_url, task_key, task_url
from dashboard.verdicts import KINDS
from orchestration.models import AuditEvent
from orchestration.states import DecisionKind

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

LINES: Mapping[str, tuple[str, str, str | StrPromise]] = {
    "task.done": ("circle-check", "good", _("%(key)s done")),
    "task.failed": ("circle-x", "bad", _("%(key)s failed")),
    "task.fatal": ("alert-octagon", "bad", _("%(key)s reached max retries; the project stopped")),
    "blueprint.locked": ("lock", "", _("Blueprint %(key)s locked")),
    "decision.opened": ("hand-stop", "", _("%(key)s: %(kind)s")),
    "project.suspended": ("player-pause", "", _("%(project)s suspended")),
    "project.safe_stop": ("alert-hexagon", "bad", _("%(project)s: safe stop")),
    "project.completed": ("checks", "good", _("%(project)s completed")),
}


@dataclass(frozen=True, slots=True)
class FeedLine:
    """One line of the feed."""

    icon: str
    look: str
    text: str
    detail: str
    url: str
    at: datetime


def feed_lines(events: Sequence[AuditEvent]) -> list[FeedLine]:
    """Build the lines, in the order of the events."""
    return [_line(event) for event in events]


def _line(event: AuditEvent) -> FeedLine:
    icon, look, words = LINES[event.kind]
    facts: dict[str, Any] = dict(event.after) if isinstance(event.after, dict) else {}
    project, task = event.project, event.task
    kind = str(facts.get("kind", ""))
    if event.kind == "decision.opened" and kind in tuple(DecisionKind):
        icon = KINDS[DecisionKind(kind)].icon
        facts["kind"] = str(KINDS[DecisionKind(kind)].word)
    key, detail, url = "", "", ""
    if project is not None:
        facts["project"] = project.name
        key, url = project.name, board_url(project)
    if project is not None and task is not None:
        key = task_key(task, project)
        if task.parent_id is not None and task.step_key:
            key = f"{key} / {task.step_key}"
        detail, url = task.title, task_url(task, project)
    if event.kind == "blueprint.locked":
        n = int(facts.get("steps") or 0)
        detail = ngettext("%(n)s step", "%(n)s steps", n) % {"n": n}
    text = str(words) % {
        "key": key,
        "kind": facts.get("kind", ""),
        "project": facts.get("project", ""),
    }
    return FeedLine(icon, look, text, detail, url, event.at)
