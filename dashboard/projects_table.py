"""The table of projects: health with its reason, what waits, progress, cost, last event.

Source: UI.md sections 2 ("Health") and 5.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone
from django.utils.translation import gettext, ngettext

from dashboard.boards import seat_word
from dashboard.clock import short_age
from dashboard.costs import cost_cell
from dashboard.engine_texts import engine_words
from dashboard.places import address, board_url
from dashboard.shapes import Progress
from dashboard.verdicts import KINDS
from dashboard.vocabulary import HEALTH_LABELS, Health, Label
from orchestration.models import Project
from orchestration.selectors.overview import ProjectRow
from orchestration.states import DecisionKind


@dataclass(frozen=True, slots=True)
class ProjectLine:
    """One line of the table."""

    project: Project
    initial: str
    url: str
    inbox_url: str
    label: Label
    why: str
    count: int
    progress: Progress
    cost: str
    is_cost_known: bool
    last_event_at: datetime | None


def project_lines(rows: Sequence[ProjectRow]) -> list[ProjectLine]:
    """The lines of the table, in the order of the rows."""
    return [_line(row) for row in rows]


def _line(row: ProjectRow) -> ProjectLine:
    words = gettext("%(n)s of %(all)s") % {"n": row.done, "all": row.total}
    return ProjectLine(
        project=row.project,
        initial=row.project.name[:1].upper(),
        url=board_url(row.project),
        inbox_url=address("inbox", project=row.project.slug),
        label=HEALTH_LABELS[Health(row.health)],
        why=_why(row),
        count=row.open_count,
        progress=Progress(row.done, row.total, words, width=112),
        cost=cost_cell(row.cost),
        is_cost_known=bool(row.cost.reported) or not row.cost.unknown,
        last_event_at=row.last_event_at,
    )


def _why(row: ProjectRow) -> str:
    """The reason behind the health, in grey words."""
    now = timezone.now()
    health = row.health
    if health == "stopped" and row.stopped_since is not None:
        kind = str(KINDS[DecisionKind(row.stop_kind)].word).lower()
        age = short_age((now - row.stopped_since).total_seconds())
        return gettext("%(kind)s, %(age)s") % {"kind": kind, "age": age}
    if health == "waiting":
        return gettext("nothing else can run")
    if health == "moving":
        return ngettext("%(n)s running", "%(n)s running", row.running) % {"n": row.running}
    if health == "waiting_for_agent" and row.agent_since is not None:
        age = short_age((now - row.agent_since).total_seconds())
        return gettext("%(seat)s seat, %(age)s") % {"seat": seat_word(row.agent_seat), "age": age}
    if health in ("suspended", "safe_stop"):
        return engine_words(row.project.status_reason)
    if health == "idle":
        return gettext("nothing to do") if not row.total else ""
    return gettext("every task is done") if health == "completed" else ""
