"""What the pages of knowledge show: rows of the list, and whether somebody has looked at a text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from django.utils.translation import pgettext_lazy

from dashboard.engine_texts import actor_name
from dashboard.places import address
from dashboard.vocabulary import Label, Role
from orchestration.models import Experience, Project, WikiPage
from orchestration.states import ExperienceKind, KnowledgeStatus

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

KNOWLEDGE_LABELS: Mapping[str, Label] = {
    KnowledgeStatus.UNREVIEWED.value: Label(
        "eye", pgettext_lazy("knowledge", "Not reviewed"), Role.INK
    ),
    KnowledgeStatus.ACCEPTED.value: Label(
        "circle-check", pgettext_lazy("knowledge", "Accepted"), Role.GREEN
    ),
    KnowledgeStatus.REJECTED.value: Label(
        "circle-x", pgettext_lazy("knowledge", "Rejected"), Role.GREY
    ),
}
KIND_WORDS: Mapping[str, str | StrPromise] = {
    ExperienceKind.NOTE.value: pgettext_lazy("experience", "note"),
    ExperienceKind.FAILURE.value: pgettext_lazy("experience", "from a failure"),
    ExperienceKind.ARCHIVE.value: pgettext_lazy("experience", "from an archive"),
}
SUMMARY_CHARACTERS = 180


@dataclass(frozen=True, slots=True)
class KnowledgeLine:
    """One row of the list. Shape: `note` is a page's name or an experience's kind."""

    url: str
    title: str
    note: str | StrPromise
    is_code: bool
    summary: str
    label: Label
    author: str
    at: datetime
    version: int


def page_line(row: WikiPage, project: Project) -> KnowledgeLine:
    """Show one wiki page in a list."""
    return KnowledgeLine(
        url=address("wiki_page", project.slug, row.name),
        title=row.title,
        note=row.name,
        is_code=True,
        summary=_head(row.summary or row.body),
        label=KNOWLEDGE_LABELS[row.status],
        author=actor_name(row.author),
        at=row.updated_at,
        version=row.version,
    )


def experience_line(row: Experience, project: Project) -> KnowledgeLine:
    """Show one experience in a list."""
    return KnowledgeLine(
        url=address("experience", project.slug, row.pk),
        title=row.title,
        note=KIND_WORDS.get(row.kind, row.kind),
        is_code=False,
        summary=_head(row.body),
        label=KNOWLEDGE_LABELS[row.status],
        author=actor_name(row.author),
        at=row.created_at,
        version=row.version,
    )


def _head(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= SUMMARY_CHARACTERS else f"{flat[:SUMMARY_CHARACTERS]}…"
