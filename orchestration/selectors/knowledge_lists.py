"""Lists of wiki pages and experiences for reading: what waits for a reviewer first, then newest.

Source: UI.md section 5.8 ("Knowledge").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from django.db.models import Case, Count, IntegerField, Q, QuerySet, Value, When

from orchestration.models import Experience, Project, WikiPage
from orchestration.selectors.knowledge import search_experiences, search_pages
from orchestration.states import KnowledgeStatus

Row = TypeVar("Row", WikiPage, Experience)
LISTED = 100
UNREVIEWED = KnowledgeStatus.UNREVIEWED.value


@dataclass(frozen=True, slots=True)
class Listed(Generic[Row]):
    """Some rows, and how many there are. Shape: at most 100 rows."""

    rows: Sequence[Row]
    total: int


@dataclass(frozen=True, slots=True)
class Holdings:
    """How much a project knows, and how much of it nobody has looked at."""

    pages: int
    pages_unreviewed: int
    experiences: int
    experiences_unreviewed: int


def list_pages(
    project: Project, words: str = "", *, only_unreviewed: bool = False
) -> Listed[WikiPage]:
    """List a project's wiki pages, or find them by words. Rejected ones are not listed."""
    if words:
        found = [one for one in search_pages(project, words) if _is_wanted(one, only_unreviewed)]
        return Listed(found[:LISTED], len(found))
    rows = _narrow(WikiPage.objects.filter(project=project), only_unreviewed)
    return Listed(list(_ordered(rows)[:LISTED]), rows.count())


def list_experiences(
    project: Project, words: str = "", *, only_unreviewed: bool = False
) -> Listed[Experience]:
    """List a project's experiences, or find them by words. Rejected ones are not listed."""
    if words:
        found = [
            one for one in search_experiences(project, words) if _is_wanted(one, only_unreviewed)
        ]
        return Listed(found[:LISTED], len(found))
    rows = _narrow(Experience.objects.filter(project=project), only_unreviewed)
    return Listed(list(_ordered(rows)[:LISTED]), rows.count())


def count_holdings(project: Project) -> Holdings:
    """Count what a project knows, in two statements."""
    is_live = ~Q(status=KnowledgeStatus.REJECTED.value)
    counted = [
        model._default_manager.filter(project=project).aggregate(
            n=Count("pk", filter=is_live), waiting=Count("pk", filter=Q(status=UNREVIEWED))
        )
        for model in (WikiPage, Experience)
    ]
    pages, experiences = counted
    return Holdings(pages["n"], pages["waiting"], experiences["n"], experiences["waiting"])


def _is_wanted(row: WikiPage | Experience, only_unreviewed: bool) -> bool:  # noqa: FBT001
    return not only_unreviewed or row.status == UNREVIEWED


def _narrow(
    rows: QuerySet[Row],
    only_unreviewed: bool,  # noqa: FBT001
) -> QuerySet[Row]:
    if only_unreviewed:
        return rows.filter(status=UNREVIEWED)
    return rows.exclude(status=KnowledgeStatus.REJECTED.value)


def _ordered(rows: QuerySet[Row]) -> QuerySet[Row]:
    waits = Case(
        When(status=UNREVIEWED, then=Value(0)), default=Value(1), output_field=IntegerField()
    )
    return rows.annotate(waits=waits).order_by("waits", "-pk")
