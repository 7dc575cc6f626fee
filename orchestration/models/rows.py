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
from django.db.models.base import ModelState
from django.db.models.expressions import Col

M = TypeVar("M", bound=models.Model)
Convert = Callable[[Any], Any]
_EMPTY_JSON: Mapping[type, str] = {list: "[]", dict: "{}"}


def fetch_rows(
    model: type[M],
    where: str,
    params: Sequence[Any] = (),
    *,
    lock: bool = False,
    skip_locked: bool = False,
    shared: bool = False,
) -> list[M]:
    """Read whole rows. `where` is SQL after WHERE, over the table's own columns.

    Locks: with `lock` the rows, where the database has row locks, without blocking foreign keys;
    with `shared` only against their change.
    """
    database = connections[DEFAULT_DB_ALIAS]
    sql, names, converters = _select(model, database.vendor)
    sql += where
    if lock and database.vendor == "postgresql":
        sql += " FOR SHARE" if shared else " FOR NO KEY UPDATE"
        sql += " SKIP LOCKED" if skip_locked else ""
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
    # What `Model.from_db` makes, without the walk over 60 fields that its constructor is.
    made = model.__new__(model)
    state = made._state = ModelState()
    state.adding, state.db = False, DEFAULT_DB_ALIAS
    made.__dict__.update(zip(names, row, strict=True))
    return made


def new_row(model: type[M], **values: Any) -> M:
    """Make an unsaved row with the defaults of its model, for `insert_rows`.

    A foreign key takes an object or, by its column name, a key; times are given, never stamped.
    Errors: TypeError for a name that is no field.
    """
    constants, makers, relations = _defaults(model)
    made = model.__new__(model)
    state = made._state = ModelState()
    columns = made.__dict__
    columns.update(constants)
    for name, make in makers:
        columns[name] = make()
    for name, value in values.items():
        if name in columns:
            columns[name] = value
        elif name in relations:
            columns[relations[name]] = None if value is None else value.pk
            state.fields_cache[name] = value
        else:
            raise TypeError(f"{model.__name__} has no field {name}")
    return made


@lru_cache(maxsize=64)
def _defaults(
    model: type[models.Model],
) -> tuple[dict[str, Any], list[tuple[str, Callable[[], Any]]], dict[str, str]]:
    constants: dict[str, Any] = {}
    makers: list[tuple[str, Callable[[], Any]]] = []
    relations: dict[str, str] = {}
    for field in model._meta.concrete_fields:
        is_made = field.has_default() and callable(field.default)
        if is_made:
            makers.append((field.attname, field.default))
        constants[field.attname] = None if is_made else field.get_default()
        if field.is_relation:
            relations[field.name] = field.attname
    return constants, makers, relations


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


def update_and_fetch(
    model: type[M],
    assignments: str,
    where: str,
    params: Sequence[Any],
    *,
    keep: Mapping[str, Any],
) -> list[M]:
    """Run one UPDATE and return the changed rows whose columns have the values of `keep`."""
    database = connections[DEFAULT_DB_ALIAS]
    select, names, converters = _select(model, database.vendor)
    columns = select[len("SELECT ") : select.index(" FROM ")]
    table = database.ops.quote_name(model._meta.db_table)
    places = [(names.index(name), value) for name, value in keep.items()]
    with database.cursor() as cursor:
        cursor.execute(
            f"UPDATE {table} SET {assignments} WHERE {where} RETURNING {columns}",  # noqa: S608
            params,
        )
        found = cursor.fetchall()
    return [
        _build(model, names, converters, values)
        for values in found
        if all(values[place] == value for place, value in places)
    ]


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


def writer_of(field: models.Field[Any, Any]) -> Convert:
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
    if isinstance(field, models.BinaryField | models.DateField | models.TimeField):
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
    return sql, [writer_of(field) for field in fields]


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
