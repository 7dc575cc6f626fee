"""Who did what on a task: hand-offs, comments, and assignments with their time and cost.

Source: UI.md section 5.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone
from django.utils.translation import gettext

from dashboard.boards import seat_word
from dashboard.clock import short_age
from dashboard.costs import money
from dashboard.places import address
from dashboard.presenters import assignment_label
from dashboard.vocabulary import Label
from orchestration.errors import Invalid
from orchestration.models import Assignment, Comment, Project
from orchestration.policy import Backend
from orchestration.rules.handoff import parse_handoff
from orchestration.states import AssignmentStatus


@dataclass(frozen=True, slots=True)
class CommentView:
    """One hand-off or comment."""

    step_key: str
    author: str
    kind: str
    body: str
    size: str
    at: datetime
    is_handoff: bool


def comment_views(comments: Sequence[Comment]) -> list[CommentView]:
    """Hand-offs and comments; a JSON hand-off is shown by its parts."""
    return [_comment(one) for one in comments]


def _comment(one: Comment) -> CommentView:
    is_handoff = one.comment_type == "handoff"
    body = one.body
    if is_handoff and body.lstrip().startswith("{"):
        body = _handoff_words(body)
    size = f"{len(one.body)} / 500" if is_handoff and body == one.body else ""
    return CommentView(
        one.task.step_key, one.author, one.comment_type, body, size, one.created_at, is_handoff
    )


def _handoff_words(body: str) -> str:
    try:
        parsed = parse_handoff(body)
    except Invalid:
        return body
    if parsed is None:
        return body
    lists = {
        gettext("Artifacts"): list(parsed.artifacts),
        gettext("Decisions"): [f"{one.what}: {one.why}" for one in parsed.decisions],
        gettext("Problems"): [f"{one.what}: {one.how_solved}" for one in parsed.problems],
        gettext("Advice"): list(parsed.advice),
    }
    parts = [parsed.completed, *(_listed(name, items) for name, items in lists.items() if items)]
    return "\n\n".join(parts)


def _listed(name: str, items: Sequence[str]) -> str:
    """Write a Markdown list under its name. An item stays one item, however it is broken up."""
    lines = "\n".join(f"- {' '.join(item.split())}" for item in items)
    return f"**{name}**\n\n{lines}"


@dataclass(frozen=True, slots=True)
class AssignmentLine:
    """One assignment in the table."""

    seat: str
    agent: str
    step_key: str
    label: Label
    label_words: str
    turns: str
    time: str
    cost: str
    is_cost_known: bool
    url: str


def assignment_lines(rows: Sequence[Assignment], project: Project) -> list[AssignmentLine]:
    """The assignments, newest first, with turns, time and what their cost is known from."""
    return [_assignment(row, project) for row in rows]


def _assignment(row: Assignment, project: Project) -> AssignmentLine:
    now = timezone.now()
    is_external = row.backend == Backend.EXTERNAL
    label = assignment_label(row.status, has_filler=not is_external)
    words = ""
    if row.status == AssignmentStatus.LEASED and is_external and row.lease_expires_at is not None:
        left = short_age((row.lease_expires_at - now).total_seconds())
        words = gettext("Leased, %(time)s left") % {"time": left}
    elif row.status == AssignmentStatus.LEASED and row.is_clock_stopped:
        words = gettext("Leased, clock stopped")
    time = ""
    if row.leased_at is not None:
        time = short_age(((row.finished_at or now) - row.leased_at).total_seconds())
    cost = row.usage.get("cost_usd")
    turns = row.usage.get("turns")
    is_known = isinstance(cost, int | float)
    return AssignmentLine(
        seat=seat_word(row.seat),
        agent=row.agent.name if row.agent is not None else "" if is_external else row.backend,
        step_key=row.task.step_key,
        label=label,
        label_words=words,
        turns=str(turns) if turns is not None else "",
        time=time,
        cost=money(float(cost)) if isinstance(cost, int | float) else _no_cost(row),
        is_cost_known=is_known,
        url=address("assignment", project.slug, row.pk),
    )


def _no_cost(row: Assignment) -> str:
    """Our own backends cost nothing; an agent that reported nothing is unknown."""
    if row.backend != Backend.EXTERNAL or row.leased_at is None:
        return ""
    return gettext("unknown")
