"""New rows written with statements that are built once: value lists on SQLite, JSON on PostgreSQL.

A JSON parameter makes one statement for any number of rows, so that PostgreSQL plans it once.
Source: docs/decisions/0003-unit-of-work.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from operator import itemgetter
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection, connections, models

from orchestration.models.rows import Convert, writer_of

MAX_ROWS = 250
"""Rows one INSERT takes at most: SQLite binds at most 32,766 parameters."""


def insert_rows(rows: Sequence[models.Model]) -> None:
    """Insert rows of one model in as few statements as possible and set their keys.

    Every column is written as it stands on the object, so nothing is stamped on the way in.
    """
    for start in range(0, len(rows), MAX_ROWS):
        batch = rows[start : start + MAX_ROWS]
        states = [row.__dict__ for row in batch]
        keys = _insert_batch(type(batch[0]), states)
        for row, key in zip(batch, keys, strict=True):
            row.pk = key if key is not None else row.pk
            row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS


def insert_keyed(rows: Sequence[models.Model]) -> None:
    """Insert rows of one model that have their keys already; a known key is left as it is."""
    model = type(rows[0])
    is_own = not isinstance(model._meta.pk, models.AutoField)
    if is_own:
        # Two writers of the same keys then wait for each other in one order.
        rows = sorted(rows, key=lambda row: str(row.pk))
    for start in range(0, len(rows), MAX_ROWS):
        states = [row.__dict__ for row in rows[start : start + MAX_ROWS]]
        _insert_batch(model, states, ignore_known=is_own, is_keyed=True)


def insert_states(model: type[models.Model], states: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows that nobody reads again, given as plain mappings of every column's attribute."""
    for start in range(0, len(states), MAX_ROWS):
        _insert_batch(model, states[start : start + MAX_ROWS])


def _insert_batch(
    model: type[models.Model],
    states: Sequence[Mapping[str, Any]],
    *,
    ignore_known: bool = False,
    is_keyed: bool = False,
) -> list[Any]:
    """Run one INSERT. Shape: the new keys, in order; None where rows bring their own."""
    database = connections[DEFAULT_DB_ALIAS]
    if database.vendor == "postgresql":
        sql, key, values = _record_set(model, states, is_keyed=is_keyed)
    else:
        sql, key, values = _value_lists(model, states, is_keyed=is_keyed)
    with database.cursor() as cursor:
        if key is None:
            cursor.execute(sql + " ON CONFLICT DO NOTHING" if ignore_known else sql, values)
            return [None] * len(states)
        cursor.execute(f"{sql} RETURNING {database.ops.quote_name(key)}", values)
        return [found for (found,) in cursor.fetchall()]


def _value_lists(
    model: type[models.Model], states: Sequence[Mapping[str, Any]], *, is_keyed: bool
) -> tuple[str, str | None, list[Any]]:
    """Write rows as lists of placeholders."""
    head, row_marks, writers, key = _insert(model, is_keyed=is_keyed)
    values = [write(state) for state in states for write in writers]
    return head + ", ".join([row_marks] * len(states)), key, values


def _record_set(
    model: type[models.Model], states: Sequence[Mapping[str, Any]], *, is_keyed: bool
) -> tuple[str, str | None, list[Any]]:
    """Write rows as one JSON parameter: one statement for any number, so it stays prepared."""
    sql, writers, key = _insert_record_set(model, is_keyed=is_keyed)
    rows = [{column: write(state) for column, write in writers} for state in states]
    return sql, key, [_encode_rows(rows)]


_encode_rows = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode


@lru_cache(maxsize=64)
def _insert_record_set(
    model: type[models.Model], *, is_keyed: bool
) -> tuple[str, list[tuple[str, Convert]], str | None]:
    quote = connection.ops.quote_name
    fields, key = _inserted_fields(model, is_keyed=is_keyed)
    columns = ", ".join(quote(str(field.column)) for field in fields)
    table = quote(model._meta.db_table)
    sql = (
        f"INSERT INTO {table} ({columns}) SELECT {columns} "  # noqa: S608  # names only
        f"FROM json_populate_recordset(NULL::{table}, %s::json)"
    )
    return sql, [(str(field.column), _record_writer(field)) for field in fields], key


def _record_writer(field: models.Field[Any, Any]) -> Convert:
    """Build what turns an object's value into one that JSON carries."""
    name = field.attname
    if isinstance(field, models.DateTimeField):
        return lambda state: _iso_time(state[name])
    if isinstance(field, models.BinaryField):
        return lambda state: None if state[name] is None else "\\x" + bytes(state[name]).hex()
    return itemgetter(name)


@lru_cache(maxsize=256)
def _iso_time(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat()


def _inserted_fields(
    model: type[models.Model], *, is_keyed: bool
) -> tuple[list[models.Field[Any, Any]], str | None]:
    """List the fields an INSERT names, and the key that the database makes."""
    pk = model._meta.pk
    is_auto = isinstance(pk, models.AutoField) and not is_keyed
    fields = [one for one in model._meta.concrete_fields if not (is_auto and one is pk)]
    return fields, str(pk.column) if is_auto else None


@lru_cache(maxsize=64)
def _insert(
    model: type[models.Model], *, is_keyed: bool
) -> tuple[str, str, list[Convert], str | None]:
    quote = connection.ops.quote_name
    fields, key = _inserted_fields(model, is_keyed=is_keyed)
    columns = ", ".join(quote(str(field.column)) for field in fields)
    marks = f"({', '.join(['%s'] * len(fields))})"
    head = f"INSERT INTO {quote(model._meta.db_table)} ({columns}) VALUES "  # noqa: S608
    return head, marks, [writer_of(field) for field in fields], key
