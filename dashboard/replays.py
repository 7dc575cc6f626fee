"""The board at a past event as drawn rows: the same parts as the live board, without its hints.

Source: UI.md section 5.4 (Replay).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from dashboard.boards import make_bands, make_stages
from dashboard.charts import Band, MasterRow
from dashboard.places import address
from dashboard.presenters import project_label, task_label
from dashboard.shapes import Progress
from dashboard.timelines import make_gantt
from dashboard.vocabulary import WAITING, WAITING_FOR_AGENT
from orchestration.models import Project
from orchestration.rules.replay import PastBoard
from orchestration.selectors.graph import TIMELINE_ROWS
from orchestration.selectors.master import MASTER_PAGE, MasterTask
from orchestration.selectors.replay import (
    Span,
    past_graph,
    past_roots,
    past_running,
    past_timeline,
    past_traffic,
)
from orchestration.states import TaskStatus

T = TaskStatus


@dataclass(frozen=True, slots=True)
class Moment:
    """What the reader looks at: a position, and what of the board is chosen."""

    project: Project
    at: int
    root_id: int | None
    phase: int | None

    def url(self, **changes: Any) -> str:
        """The address of this view with some of it changed."""
        chosen = {"at": self.at, "task": self.root_id, "phase": self.phase} | changes
        return address("replay", self.project.slug, **chosen)


def make_replay(board: PastBoard, moment: Moment, span: Span, now: datetime) -> dict[str, Any]:
    """What the templates take for the board at a moment."""
    project = moment.project
    roots = past_roots(board, project)
    chosen = _chosen(roots, moment.root_id)
    counted = [one for one in roots if one.task.status != T.CANCELLED]
    done = sum(one.task.status == T.DONE for one in counted)
    context: dict[str, Any] = {
        "label": project_label(board.project_status),
        "done": done,
        "total": len(counted),
        "progress": Progress(done, len(counted), f"{done}/{len(counted)}", width=120),
        "stages": make_stages(past_traffic(board), past_running(board)),
        "rows": [_row(one, moment, chosen) for one in roots[:MASTER_PAGE]],
        "root_total": len(roots),
        "root": chosen.task if chosen is not None else None,
        "earlier_url": moment.url(at=span.earlier) if span.earlier else "",
        "later_url": moment.url(at=span.later) if span.later else "",
        "first_url": moment.url(at=span.first),
        "last_url": moment.url(at=span.last),
        "span": span,
        "at": now,
        "bands": [],
        "gantt": None,
    }
    if chosen is not None:
        pk = chosen.task.pk
        graph = past_graph(board, project, pk, open_phase=moment.phase)
        bands = make_bands(graph, project, current=None, now=now)
        shown = replace(moment, root_id=pk)
        context["bands"] = [_still(band, shown) for band in bands]
        context["root_key"] = f"{project.key_prefix}-{chosen.task.number}"
        rows = past_timeline(board, pk, now, limit=TIMELINE_ROWS)
        context["gantt"] = make_gantt(rows, now)
    return context


def _chosen(roots: Sequence[MasterTask], wanted: int | None) -> MasterTask | None:
    """The root to show: the wanted one, else one that waited for Sir, one at work, or the first."""
    found = next((one for one in roots if one.task.pk == wanted), None)
    if found is not None:
        return found
    busy = (T.CLAIMED, T.WORKING, T.REVIEW)
    ranked = sorted(roots, key=lambda one: (not one.waiting, one.task.status not in busy))
    return ranked[0] if ranked else None


def _row(row: MasterTask, moment: Moment, chosen: MasterTask | None) -> MasterRow:
    task = row.task
    label = task_label(task.status, task.cancel_reason)
    if row.needs_agent and task.status in (T.PENDING, T.WORKING) and not row.waiting:
        label = WAITING_FOR_AGENT
    return MasterRow(
        key=f"{moment.project.key_prefix}-{task.number}",
        title=task.title,
        url=moment.url(task=task.pk, phase=None),
        label=label,
        stage=row.stage if task.status not in (T.DONE, T.CANCELLED) else "",
        note="",
        steps=f"{row.steps_done}/{row.steps_total}" if row.steps_total else "",
        waiting=0 if label == WAITING and row.waiting == 1 else row.waiting,
        is_current=chosen is not None and task.pk == chosen.task.pk,
    )


def _still(band: Band, moment: Moment) -> Band:
    """A band that follows no hint, and opens at the same moment."""
    nodes = [replace(node, topic="", fragment_url="") for node in band.nodes]
    opens = moment.url(phase=band.phase) if band.is_collapsed else ""
    return replace(band, nodes=nodes, topic="", fragment_url="", open_url=opens)
