"""Querysets whose SQL is built once, for reads that every verdict makes.

The ORM builds the SQL of a query anew each time: half a millisecond of CPU for a statement that
takes a tenth of it. A function marked `Prepared` says the query in the ORM's words; its SQL is kept
with the places of its arguments, and a call only fills them in.
Source: docs/decisions/0003-unit-of-work.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import QuerySet
from django.db.models.query import ValuesListIterable

FIRST_MARK = -7_340_000_000
"""Stands for the first argument while the SQL is built; no id is negative."""


@dataclass(frozen=True, slots=True)
class _Statement:
    """One query on one kind of database. Shape: `places` are (place, number of the argument)."""

    sql: str
    params: tuple[Any, ...]
    places: tuple[tuple[int, int], ...]
    converters: tuple[tuple[int, Sequence[Any], Any], ...]


class Prepared:
    """A query that is called with the ids it is about; it answers with tuples of its fields.

    The function that describes it gets marks for its arguments, so it must pass each on as it is,
    and to columns of ids: no smaller column takes a mark.
    Errors: TypeError at the first call when it does not, or names no fields with `values_list`.
    """

    def __init__(self, build: Callable[..., QuerySet[Any, Any]]) -> None:
        self._build = build
        self._statements: dict[str, _Statement] = {}
        update_wrapper(self, build)

    def __call__(self, *ids: int) -> list[tuple[Any, ...]]:
        """Run the query. Shape: tuples in the order of the named fields."""
        connection = connections[DEFAULT_DB_ALIAS]
        known = self._statements.get(connection.vendor)
        if known is None:
            known = self._statements[connection.vendor] = self._prepare(len(ids))
        params = list(known.params)
        for place, number in known.places:
            params[place] = ids[number]
        with connection.cursor() as cursor:
            cursor.execute(known.sql, params)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
        if not known.converters:
            return rows
        return [_converted(row, known.converters, connection) for row in rows]

    def _prepare(self, count: int) -> _Statement:
        marks = [FIRST_MARK - number for number in range(count)]
        queryset = self._build(*marks)
        if not issubclass(queryset._iterable_class, ValuesListIterable):
            raise TypeError(f"{self._build.__name__} names no fields with values_list")
        compiler = queryset.query.get_compiler(DEFAULT_DB_ALIAS)
        sql, params = compiler.as_sql()
        places = tuple(
            (place, marks.index(value)) for place, value in enumerate(params) if value in marks
        )
        if {number for _, number in places} != set(range(count)):
            raise TypeError(f"{self._build.__name__} does not pass each argument on")
        found = compiler.get_converters([selected[0] for selected in compiler.select])
        converters = tuple((place, *chain) for place, chain in found.items())
        return _Statement(sql, tuple(params), places, converters)


def _converted(
    row: Sequence[Any], converters: Sequence[tuple[int, Sequence[Any], Any]], connection: Any
) -> tuple[Any, ...]:
    values = list(row)
    for place, chain, expression in converters:
        for convert in chain:
            values[place] = convert(values[place], expression, connection)
    return tuple(values)
