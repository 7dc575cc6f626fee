"""Find experiences and wiki pages by their terms: the same rows, the same order, on any database.

Two statements and whole-number arithmetic: how many documents hold each term, then those
that hold the rarest. Rejected ones have no terms, so they are not found.
Source: DESIGN section 12; rules/search_terms.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from django.db.models import QuerySet

from orchestration.models import Experience, Project, WikiPage
from orchestration.models.rows import fetch_rows, fetch_values
from orchestration.rules.search_terms import (
    BASE_WEIGHT,
    Query,
    document_terms,
    is_paired,
    query_of,
    weigh_query,
)
from orchestration.states import KnowledgeStatus

Found = TypeVar("Found", Experience, WikiPage)
MAX_FOUND = 200
INJECTED = 5
TASK_CHARACTERS = 2_000
TASK_TERMS = 120
LEAST_SHARED = 2
"""Terms an experience must share with a task to be shown to whoever works on it."""


@dataclass(frozen=True, slots=True)
class _Index:
    """Which column of the index finds a kind of document, and the table of these."""

    column: str
    table: str


_EXPERIENCES = _Index("experience_id", Experience._meta.db_table)
_PAGES = _Index("page_id", WikiPage._meta.db_table)


def search_experiences(project: Project, text: str) -> list[Experience]:
    """Find experiences by words, the best first. Shape: at most 200; every one for no words."""
    return _searched(_EXPERIENCES, _live(Experience.objects.all(), project), project, text)


def search_pages(project: Project, text: str) -> list[WikiPage]:
    """Find wiki pages by words, the best first. Shape: as `search_experiences`."""
    return _searched(_PAGES, _live(WikiPage.objects.all(), project), project, text)


def related_experiences(project_id: int, title: str, text: str) -> list[Experience]:
    """Find what resembles a task, the nearest first. Shape: at most 5."""
    found = _related(_EXPERIENCES, project_id, title, text)
    return _fetched(Experience, found)


def related_pages(project_id: int, title: str, text: str, *, but: str = "") -> list[WikiPage]:
    """Find the wiki pages that resemble a task; `but` is one that it is given anyway."""
    found = _related(_PAGES, project_id, title, text)
    return [row for row in _fetched(WikiPage, found) if not but or row.name != but]


def _live(rows: QuerySet[Found], project: Project) -> QuerySet[Found]:
    return rows.filter(project=project).exclude(status=KnowledgeStatus.REJECTED.value)


def _searched(index: _Index, rows: QuerySet[Found], project: Project, text: str) -> list[Found]:
    wanted = query_of(text)
    if not wanted:
        return []
    singles = {term for term in wanted if len(term) == 1 and is_paired(term)}
    terms = wanted | _pairs_with(index, project.pk, singles)
    # Of several words at least half must be there: one of nine is no answer.
    least = max(1, -(-len(wanted) // 2)) if not singles else 1
    found = _ranked(index, project.pk, terms, least_terms=least, limit=MAX_FOUND)
    return _in_order(rows.filter(pk__in=found), found)


def _related(index: _Index, project_id: int, title: str, text: str) -> list[int]:
    weights = document_terms(title, text[:TASK_CHARACTERS])
    terms = frozenset(list(weights)[:TASK_TERMS])
    least = min(LEAST_SHARED, len(terms))
    return _ranked(index, project_id, terms, least_terms=least, limit=INJECTED)


def _ranked(
    index: _Index, project_id: int, terms: Iterable[str], *, least_terms: int, limit: int
) -> list[int]:
    wanted = frozenset(terms)
    if not wanted:
        return []
    marks, ordered = ", ".join(["%s"] * len(wanted)), sorted(wanted)
    column = index.column
    counts = fetch_values(
        f"SELECT term, COUNT(*) FROM orchestration_knowledgeterm "  # noqa: S608  # names only
        f"WHERE project_id = %s AND {column} IS NOT NULL AND term IN ({marks}) GROUP BY term",
        [project_id, *ordered],
    )
    if not counts:
        return []
    [(total,)] = fetch_values(
        f"SELECT COUNT(*) FROM {index.table} WHERE project_id = %s",  # noqa: S608  # names only
        [project_id],
    )
    query = weigh_query(wanted, dict(counts), total)
    least = min(least_terms, len(query.used)) if len(wanted) > len(query.used) else least_terms
    return _best(index, project_id, query, least=max(1, least), limit=limit)


def _best(index: _Index, project_id: int, query: Query, *, least: int, limit: int) -> list[int]:
    """Let the database add up whole numbers, which are the same everywhere; the newest first."""
    column, used = index.column, query.used
    worth = " ".join(["WHEN %s THEN %s"] * len(used))
    marks = ", ".join(["%s"] * len(used))
    rows = fetch_values(
        f"SELECT {column} FROM orchestration_knowledgeterm "  # noqa: S608  # names and marks only
        f"WHERE project_id = %s AND {column} IS NOT NULL AND term IN ({marks}) "
        f"GROUP BY {column} HAVING COUNT(*) >= %s "
        f"ORDER BY SUM((CASE term {worth} END) * ({BASE_WEIGHT} + weight)) DESC, {column} DESC "
        f"LIMIT %s",
        [project_id, *used, least, *(one for pair in used.items() for one in pair), limit],
    )
    return [pk for (pk,) in rows]


def _pairs_with(index: _Index, project_id: int, singles: Iterable[str]) -> frozenset[str]:
    """The known pairs that hold a single character, for a query of one."""
    found: set[str] = set()
    for single in sorted(singles):
        rows = fetch_values(
            f"SELECT DISTINCT term FROM orchestration_knowledgeterm "  # noqa: S608  # names only
            f"WHERE project_id = %s AND {index.column} IS NOT NULL AND term LIKE %s LIMIT 500",
            [project_id, f"%{single}%"],
        )
        found.update(term for (term,) in rows)
    return frozenset(found)


def _fetched(model: type[Found], ids: Sequence[int]) -> list[Found]:
    """Read a few rows by id, in the order of the ids."""
    if not ids:
        return []
    marks = ", ".join(["%s"] * len(ids))
    known = {row.pk: row for row in fetch_rows(model, f"id IN ({marks})", ids)}
    return [known[pk] for pk in ids if pk in known]


def _in_order(rows: QuerySet[Found], ids: Sequence[int]) -> list[Found]:
    if not ids:
        return []
    known = {row.pk: row for row in rows}
    return [known[pk] for pk in ids if pk in known]
