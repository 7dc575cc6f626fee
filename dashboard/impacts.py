"""What a decision touches: the small graph around its step and the list beside it.

Source: UI.md section 5.2 (rail).
"""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext, ngettext

from dashboard.charts import Impact, ImpactItem, ImpactNode
from dashboard.drawings import IMPACT_BOX, Edge, Link, lay_out
from dashboard.places import address
from orchestration.models import Decision, Project, Task
from orchestration.selectors.blocked import OpenStep, WaitingWork, load_waiting_work, locked_readers

DRAWN_WAITING = 7
DRAWN_LOCKED = 3
LISTED = 5


def impact_of_decision(decision: Decision) -> Impact | None:
    """Show what waits behind a step's decision, and what would have to be verified again."""
    task = decision.task
    if task is None or task.parent_id is None:
        return None
    work = load_waiting_work([task.lineage_root_id], [decision.project_id])
    waiting = [one for one in work.behind(task.pk) if one.parent_id == task.parent_id]
    locked = locked_readers(task.pk) if decision.defect_id is not None else []
    nodes, edges, width, height = _drawing(task, locked, waiting, work)
    items = [_locked_item(one, decision.project) for one in locked]
    items += [_waiting_item(one, decision.project) for one in waiting]
    rest = [one.key for one in items[LISTED:]]
    return Impact(
        summary=_summary(len(locked), len(waiting)),
        nodes=nodes if waiting or locked else [],
        edges=edges,
        width=width,
        height=height,
        items=items[:LISTED],
        more=_more(rest),
        more_url=address("board", decision.project.slug, task=task.lineage_root_id, view="table"),
        phases=len({one.phase for one in waiting}),
    )


def _summary(locked: int, waiting: int) -> str:
    if not locked:
        return gettext("%(n)s waiting") % {"n": waiting}
    return gettext("%(locked)s locked, %(n)s waiting") % {"locked": locked, "n": waiting}


def _more(keys: Sequence[str]) -> str:
    if not keys:
        return ""
    named = ", ".join(keys[:6]) + ("…" if len(keys) > 6 else "")
    words = ngettext("%(n)s more: %(keys)s", "%(n)s more: %(keys)s", len(keys))
    return words % {"n": len(keys), "keys": named}


def _locked_item(task: Task, project: Project) -> ImpactItem:
    url = address("task", project.slug, task.pk)
    return ImpactItem(task.step_key, task.title, "lock", gettext("to re-verify"), url)


def _waiting_item(step: OpenStep, project: Project) -> ImpactItem:
    url = address("task", project.slug, step.id)
    return ImpactItem(step.step_key, step.title, "circle-dashed", gettext("freed"), url)


def _drawing(
    task: Task, locked: Sequence[Task], waiting: Sequence[OpenStep], work: WaitingWork
) -> tuple[list[ImpactNode], Sequence[Edge], int, int]:
    """Draw the step before its locked readers and the first of what waits."""
    drawn = waiting[:DRAWN_WAITING]
    before = locked[:DRAWN_LOCKED]
    keys = [task.step_key, *(one.step_key for one in before), *(one.step_key for one in drawn)]
    links = [Link(task.step_key, one.step_key, "blocker") for one in before]
    links += _links(task, drawn, work)
    layout = lay_out(list(dict.fromkeys(keys)), links, IMPACT_BOX)
    looks = {one.step_key: "locked" for one in before} | {task.step_key: "subject"}
    nodes = [
        ImpactNode(place.key, place.x, place.y, looks.get(place.key, "waiting"))
        for place in layout.places.values()
    ]
    return nodes, layout.edges, layout.width + 2, layout.height + 2


def _links(task: Task, drawn: Sequence[OpenStep], work: WaitingWork) -> list[Link]:
    """Edges among the drawn steps; one without any hangs on the last step of an earlier phase."""
    keys = {one.id: one.step_key for one in drawn} | {task.pk: task.step_key}
    edges = work.edges_among(keys)
    links = [Link(keys[needed], keys[later]) for needed, later in edges]
    reached = {later for _, later in edges}
    phases = {one.id: one.phase for one in drawn} | {task.pk: task.phase}
    for step in drawn:
        if step.id in reached:
            continue
        earlier = [pk for pk, phase in phases.items() if phase < step.phase]
        ends = [pk for pk in earlier if not any(a == pk and b in earlier for a, b in edges)]
        links += [Link(keys[pk], step.step_key) for pk in ends or [task.pk]]
    return links
