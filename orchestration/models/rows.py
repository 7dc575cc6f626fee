"""Whole rows in and out with statements that are built once.

The ORM builds the SQL of every query anew: reading one task (60 columns) costs it 1 ms of CPU
on the machine the benchmarks name, the statement itself 0.03 ms. The engine reads, inserts and
updates some fifteen rows for each step, so those few go through here. Fields, converters and column
names are the models' own; everything else keeps the ORM.
Source: docs/decisions/0003-unit-of-work.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection, connections, models
from django.db.models.expressions import Col

M = TypeVar("M", bound=models.Model)
Convert = Callable[[Any], Any]
_EMPTY_JSON: Mapping[type, str] = {list: "[]", dict: "{}"}
MAX_ROWS = 250
"""Rows one INSERT takes at most: SQLite binds at most 32,766 parameters."""


def fetch_rows(
    model: type[M],
    where: str,
    params: Sequence[Any] = (),
    *,
    lock: bool = False,
    skip_locked: bool = False,
) -> list[M]:
    """Read whole rows. `where` is SQL after WHERE, over the table's own columns.

    Locks: with `lock` the rows, where the database has row locks, without blocking foreign keys.
    """
    database = connections[DEFAULT_DB_ALIAS]
    sql, names, converters = _select(model, database.vendor)
    sql += where
    if lock and database.vendor == "postgresql":
        sql += " FOR NO KEY UPDATE SKIP LOCKED" if skip_locked else " FOR NO KEY UPDATE"
    with database.cursor() as cursor:
        cursor.execute(sql, params)
        found = cursor.fetchall()
    return [_build(model, names, converters, values) for values in found]


def _build(
    model: type[M],
    names: Sequence[str],
    converters: Sequence[tuple[int, Convert]],
    values: Sequence[Any],
) -> M:
    row = list(values)
    for index, convert in converters:
        row[index] = convert(row[index])
    return model.from_db(DEFAULT_DB_ALIAS, names, row)


@lru_cache(maxsize=64)
def _select(
    model: type[models.Model], vendor: str
) -> tuple[str, list[str], list[tuple[int, Convert]]]:
    quote = connection.ops.quote_name
    fields = model._meta.concrete_fields
    columns = ", ".join(quote(str(field.column)) for field in fields)
    converters: list[tuple[int, Convert]] = []
    for index, field in enumerate(fields):
        chain = _converters(field)
        if chain is not None:
            converters.append((index, chain))
    sql = f"SELECT {columns} FROM {quote(model._meta.db_table)} WHERE "  # noqa: S608  # names only
    return sql, [field.attname for field in fields], converters


def _converters(field: models.Field[Any, Any]) -> Convert | None:
    expression = Col(field.model._meta.db_table, field)
    chain = [
        *connection.ops.get_db_converters(expression),
        *field.get_db_converters(connection),
    ]
    if not chain:
        return None

    def convert(value: Any) -> Any:
        for one in chain:
            value = one(value, expression, connection)
        return value

    return convert


def fetch_columns(
    model: type[models.Model], names: Sequence[str], where: str, params: Sequence[Any] = ()
) -> list[list[Any]]:
    """Read some columns of rows, converted as the model would, without building objects."""
    database = connections[DEFAULT_DB_ALIAS]
    sql, converters = _select_columns(model, tuple(names), database.vendor)
    with database.cursor() as cursor:
        cursor.execute(sql + where, params)
        found = [list(values) for values in cursor.fetchall()]
    for row in found:
        for index, convert in converters:
            row[index] = convert(row[index])
    return found


@lru_cache(maxsize=64)
def _select_columns(
    model: type[models.Model], names: tuple[str, ...], vendor: str
) -> tuple[str, list[tuple[int, Convert]]]:
    quote = connection.ops.quote_name
    known = {field.attname: field for field in model._meta.concrete_fields}
    fields = [known[name] for name in names]
    columns = ", ".join(quote(str(field.column)) for field in fields)
    chains = ((index, _converters(field)) for index, field in enumerate(fields))
    converters = [(index, chain) for index, chain in chains if chain is not None]
    return f"SELECT {columns} FROM {quote(model._meta.db_table)} WHERE ", converters  # noqa: S608


def insert_rows(rows: Sequence[models.Model], *, ignore_known: bool = False) -> None:
    """Insert rows of one model in as few statements as possible and set their keys.

    Every column is written as it stands on the object, so nothing is stamped on the way in. With
    `ignore_known` a row whose key exists is left as it is; only for models with keys of their own.
    """
    for start in range(0, len(rows), MAX_ROWS):
        batch = rows[start : start + MAX_ROWS]
        states = [row.__dict__ for row in batch]
        keys = _insert_batch(type(batch[0]), states, ignore_known=ignore_known)
        for row, key in zip(batch, keys, strict=True):
            row.pk = key if key is not None else row.pk
            row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS


def insert_states(model: type[models.Model], states: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows that nobody reads again, given as plain mappings of every column's attribute."""
    for start in range(0, len(states), MAX_ROWS):
        _insert_batch(model, states[start : start + MAX_ROWS], ignore_known=False)


def _insert_batch(
    model: type[models.Model], states: Sequence[Mapping[str, Any]], *, ignore_known: bool
) -> list[Any]:
    """Run one INSERT. Shape: the new keys, in order; None where rows bring their own."""
    database = connections[DEFAULT_DB_ALIAS]
    head, row_marks, writers, key = _insert(model, database.vendor)
    values = [write(state) for state in states for write in writers]
    sql = head + ", ".join([row_marks] * len(states))
    with database.cursor() as cursor:
        if key is None:
            cursor.execute(sql + " ON CONFLICT DO NOTHING" if ignore_known else sql, values)
            return [None] * len(states)
        cursor.execute(f"{sql} RETURNING {database.ops.quote_name(key)}", values)
        return [found for (found,) in cursor.fetchall()]


@lru_cache(maxsize=64)
def _insert(model: type[models.Model], vendor: str) -> tuple[str, str, list[Convert], str | None]:
    quote = connection.ops.quote_name
    pk = model._meta.pk
    is_auto = isinstance(pk, models.AutoField)
    fields = [one for one in model._meta.concrete_fields if not (is_auto and one is pk)]
    columns = ", ".join(quote(str(field.column)) for field in fields)
    marks = f"({', '.join(['%s'] * len(fields))})"
    head = f"INSERT INTO {quote(model._meta.db_table)} ({columns}) VALUES "  # noqa: S608
    return head, marks, [_writer(field) for field in fields], pk.column if is_auto else None


def _writer(field: models.Field[Any, Any]) -> Convert:
    """Build what turns an object's value into a parameter, without the checks of a form."""
    name, prepare = field.attname, _parameter(field)
    if prepare is None:
        return lambda state: state[name]
    return lambda state: prepare(state[name])


def _parameter(field: models.Field[Any, Any]) -> Convert | None:
    if isinstance(field, models.JSONField):
        return _json_parameter(field)
    if isinstance(field, models.DateTimeField):
        return datetime_parameter
    if isinstance(field, models.BinaryField):
        return lambda value: field.get_db_prep_value(value, connection)
    return None


def _json_parameter(field: models.JSONField[Any, Any]) -> Convert:
    if connection.vendor == "sqlite":
        # What adapt_json_value does there, without building an encoder each time.
        return _json_text
    return lambda value: (
        None if value is None else connection.ops.adapt_json_value(value, field.encoder)
    )


def _json_text(value: Any) -> str | None:
    if not value:
        return _EMPTY_JSON.get(type(value)) or (None if value is None else json.dumps(value))
    return json.dumps(value)


@lru_cache(maxsize=256)
def datetime_parameter(value: datetime | None) -> Any:
    """Turn an aware datetime into what the database stores. A step writes the same one 30 times."""
    return connection.ops.adapt_datetimefield_value(value)


def update_row(row: models.Model, fields: Iterable[str]) -> None:
    """Write some fields of one row by its key."""
    database = connections[DEFAULT_DB_ALIAS]
    sql, writers = _update(type(row), tuple(sorted(fields)), database.vendor)
    values = [write(row.__dict__) for write in writers]
    with database.cursor() as cursor:
        cursor.execute(sql, [*values, row.pk])


@lru_cache(maxsize=1024)
def _update(
    model: type[models.Model], names: tuple[str, ...], vendor: str
) -> tuple[str, list[Convert]]:
    quote = connection.ops.quote_name
    known = {field.name: field for field in model._meta.concrete_fields}
    fields = [known[name] for name in names]
    columns = ", ".join(f"{quote(str(field.column))} = %s" for field in fields)
    pk = quote(str(model._meta.pk.column))
    sql = f"UPDATE {quote(model._meta.db_table)} SET {columns} WHERE {pk} = %s"  # noqa: S608
    return sql, [_writer(field) for field in fields]


def fetch_values(sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Run one SELECT and return its raw tuples."""
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(sql, params)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def execute(sql: str, params: Sequence[Any] = ()) -> int:
    """Run one statement and return how many rows it changed."""
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(sql, params)
        count: int = cursor.rowcount
    return count
