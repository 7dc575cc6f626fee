"""Lookups of our own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.exceptions import EmptyResultSet
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BigAutoField, ForeignKey, Lookup
from django.db.models.sql.compiler import SQLCompiler

if TYPE_CHECKING:
    BaseLookup = Lookup[Any]
else:
    BaseLookup = Lookup


@BigAutoField.register_lookup
@ForeignKey.register_lookup
class OneOf(BaseLookup):
    """Match a list of ids that PostgreSQL takes as one array.

    Each id of an `IN` is a parameter: a thousand cost more to send, to read and to plan than the
    rows that they find, and each length is another statement to prepare.
    """

    lookup_name = "one_of"
    prepare_rhs = False

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, Any]:
        """Write an array where there are arrays, else a list. An empty one matches nothing."""
        left, params = self.process_lhs(compiler, connection)
        ids = [int(one) for one in self.rhs]
        if not ids:
            raise EmptyResultSet
        if connection.vendor == "postgresql":
            return f"{left} = ANY(%s)", [*params, ids]
        marks = ", ".join(["%s"] * len(ids))
        return f"{left} IN ({marks})", [*params, *ids]
