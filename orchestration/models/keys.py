"""Keys given out before their rows are written, so that many rows are written in one statement.

Both databases are asked once for a model in a transaction: PostgreSQL's sequence gives a block,
SQLite's counter stands still while the one writer writes. Nothing is kept beyond the transaction,
so a database that was restored under a running process gives no key twice. A key that no row gets
leaves a gap, as a roll-back does.
"""

from __future__ import annotations

from collections import deque
from functools import lru_cache

from django.db import connection, models

from orchestration.models.rows import fetch_values

BLOCK = 8
"""Keys taken from PostgreSQL at a time: about what a chain of instant steps uses."""


class Keys:
    """The keys one transaction gives out."""

    def __init__(self) -> None:
        self._counters: dict[type[models.Model], int] = {}
        self._blocks: dict[type[models.Model], deque[int]] = {}

    def next_key(self, model: type[models.Model]) -> int:
        """Return a key of a model that no other row has or gets."""
        if connection.vendor == "postgresql":
            return self._of_block(model)
        last = self._counters.get(model)
        if last is None:
            table = model._meta.db_table
            rows = fetch_values("SELECT seq FROM sqlite_sequence WHERE name = %s", [table])
            last = rows[0][0] if rows else 0
        self._counters[model] = last + 1
        return last + 1

    def forget(self, model: type[models.Model]) -> None:
        """Read a counter anew: what was given out is written, and others may write now."""
        self._counters.pop(model, None)

    def _of_block(self, model: type[models.Model]) -> int:
        left = self._blocks.setdefault(model, deque())
        if not left:
            sql = "SELECT nextval(%s::regclass) FROM generate_series(1, %s)"
            left.extend(key for (key,) in fetch_values(sql, [_sequence(model), BLOCK]))
        return left.popleft()


@lru_cache(maxsize=64)
def _sequence(model: type[models.Model]) -> str:
    pk = model._meta.pk
    table = f'"{model._meta.db_table}"'
    rows = fetch_values("SELECT pg_get_serial_sequence(%s, %s)", [table, str(pk.column)])
    return str(rows[0][0])
