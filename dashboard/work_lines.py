"""Who did what on a task: hand-offs, comments, and assignments with their time and cost.

Source: UI.md section 5.5.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.utils import timezone
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from dashboard.assessments import backend_word
from dashboard.boards import seat_word
from dashboard.clock import short_age
from dashboard.costs import money
from dashboard.engine_texts import engine_words, who_words
from dashboard.phrases import listed
from dashboard.places import address
from dashboard.presenters import assignment_label
from dashboard.vocabulary import Label
from orchestration.errors import Invalid
from orchestration.models import Assignment, Comment, Project, ToolCall
from orchestration.policy import Backend
from orchestration.rules.handoff import parse_handoff
from orchestration.states import AssignmentStatus, CommentType

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

KIND_WORDS = {
    CommentType.GENERAL: _("comment"),
    CommentType.HANDOFF: _("hand-off"),
    CommentType.OBSERVATION: _("observation"),
    CommentType.REVIEW: _("review"),
}
CALL_WORDS = {
    "ok": pgettext_lazy("call", "ok"),
    "failed": pgettext_lazy("call", "failed"),
    "interrupted": pgettext_lazy("call", "interrupted"),
    "harness": pgettext_lazy("call", "our own record"),
    "agent": pgettext_lazy("call", "the agent"),
}
SETTING_WORDS = {
    "turns": _("Turns"),
    "cost_usd": _("Cost in USD"),
    "timeout_seconds": _("Seconds"),
    "model": _("Model"),
    "effort": _("Effort"),
    "thinking": _("Thinking"),
}


def call_lines(calls: Sequence[ToolCall]) -> list[tuple[ToolCall, str, str]]:
    """Tool calls, each with the words of its outcome and of who recorded it."""
    return [(one, str(CALL_WORDS[one.outcome]), str(CALL_WORDS[one.source])) for one in calls]


HINT_WORDS: Mapping[str, str | StrPromise] = {
    "low": pgettext_lazy("hint", "low"),
    "medium": pgettext_lazy("hint", "medium"),
    "high": pgettext_lazy("hint", "high"),
    "disabled": pgettext_lazy("hint", "disabled"),
    "adaptive": pgettext_lazy("hint", "adaptive"),
}


def setting_lines(settings: Mapping[str, object]) -> list[tuple[str, object]]:
    """Limits or hints of an assignment by their words; those without a value are left out."""
    held = {name: value for name, value in settings.items() if value not in (None, "", False)}
    return [
        (str(SETTING_WORDS.get(name, name)), HINT_WORDS.get(str(value), value))
        for name, value in held.items()
    ]


@dataclass(frozen=True, slots=True)
class CommentView:
    """One hand-off or comment."""

    step_key: str
    author: str
    kind: str | StrPromise
    body: str
    size: str
    at: datetime
    is_handoff: bool
    is_earlier: bool = False


def comment_views(comments: Sequence[Comment]) -> list[CommentView]:
    """Hand-offs and comments, newest first; a JSON hand-off is shown by its parts.

    Of a step's hand-offs only the newest stands open, those of earlier rounds are folded.
    """
    views = []
    handed: set[int] = set()
    for one in comments:
        view = _comment(one)
        views.append(replace(view, is_earlier=view.is_handoff and one.task_id in handed))
        if view.is_handoff:
            handed.add(one.task_id)
    return views


def _comment(one: Comment) -> CommentView:
    is_handoff = one.comment_type == "handoff"
    body = one.body
    if is_handoff and body.lstrip().startswith("{"):
        body = _handoff_words(body)
    size = f"{len(one.body)} / 500" if is_handoff and body == one.body else ""
    word = KIND_WORDS[CommentType(one.comment_type)]
    return CommentView(
        one.task.step_key,
        who_words(one.author),
        word,
        engine_words(body),
        size,
        one.created_at,
        is_handoff,
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
        agent=_agent_of(row),
        step_key=row.task.step_key,
        label=label,
        label_words=words,
        turns=str(turns) if turns is not None else "",
        time=time,
        cost=money(float(cost)) if isinstance(cost, int | float) else _no_cost(row),
        is_cost_known=is_known,
        url=address("assignment", project.slug, row.pk),
    )


@dataclass(frozen=True, slots=True)
class PromptLine:
    """A prompt as it was sent. Units: characters."""

    id: int
    step_key: str
    seat: str
    agent: str
    characters: int
    digest: str
    language: str
    text: str
    url: str


def prompt_line(row: Assignment | None, project: Project) -> PromptLine | None:
    """The prompt that was sent for an assignment; None where none was."""
    if row is None:
        return None
    return PromptLine(
        id=row.pk,
        step_key=row.task.step_key,
        seat=seat_word(row.seat),
        agent=_agent_of(row),
        characters=len(row.prompt),
        digest=hashlib.sha256(row.prompt.encode()).hexdigest(),
        language=project.language,
        text=row.prompt,
        url=address("assignment", project.slug, row.pk),
    )


def _agent_of(row: Assignment) -> str:
    if row.agent is not None:
        return row.agent.name
    return "" if row.backend == Backend.EXTERNAL else backend_word(row.backend)


def _no_cost(row: Assignment) -> str:
    """Our own backends cost nothing; an agent that reported nothing is unknown."""
    if row.backend != Backend.EXTERNAL or row.leased_at is None:
        return ""
    return gettext("unknown")


# --- What waits for an agent ----------------------------------------------------------------------

SCOPES = {
    "scorer": "plan", "planner": "plan", "executor": "execute", "fixer": "execute",
    "auditor": "review", "qa": "review", "cross_verifier": "review", "validator": "review",
}  # fmt: skip


def waiting_facts(rows: Sequence[Assignment]) -> dict[str, Any]:
    """The seats that wait for an agent, and the scopes that a token for them needs."""
    seats = list(dict.fromkeys(row.seat for row in rows))
    return {
        "waiting_rows": rows,
        "waiting_seats": listed(seat_word(seat) for seat in seats),
        "seat_codes": json.dumps(seats),
        "scopes": ",".join(dict.fromkeys(SCOPES.get(seat, "execute") for seat in seats)),
    }
