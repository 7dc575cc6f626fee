"""Put the test database back after a test that committed.

Django's flush deletes rows, which the append-only triggers rightly refuse. So the database as it
was after the migrations is kept and copied back whole, by SQLite's backup or PostgreSQL's TEMPLATE.
"""

from __future__ import annotations

import sqlite3
from typing import Any, Protocol

import psycopg
from django.db import connections
from psycopg import sql

BUSY_ROUNDS = 200
BUSY_SLEEP_SECONDS = 0.05


class Snapshot(Protocol):
    """A kept copy of one database."""

    def restore(self) -> None:
        """Make the database what it was."""

    def drop(self) -> None:
        """Give the copy up."""


class SqliteSnapshot:
    """The pages of a database file, in memory."""

    def __init__(self, alias: str) -> None:
        self.path = str(connections[alias].settings_dict["NAME"])
        self.copy = sqlite3.connect(":memory:", check_same_thread=False)
        source = sqlite3.connect(self.path)
        source.backup(self.copy)
        source.close()

    def restore(self) -> None:
        """Copy the pages back. Errors: RuntimeError when a test left a writer behind."""
        connections.close_all()
        rounds = 0

        def count_rounds(status: int, _remaining: int, _total: int) -> None:
            nonlocal rounds
            rounds += status in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
            if rounds > BUSY_ROUNDS:
                raise RuntimeError("a thread of the last test still holds a transaction open")

        target = sqlite3.connect(self.path)
        try:
            target.execute("PRAGMA synchronous=OFF")
            self.copy.backup(target, progress=count_rounds, sleep=BUSY_SLEEP_SECONDS)
        finally:
            target.close()

    def drop(self) -> None:
        """Free the pages."""
        self.copy.close()


class PostgresSnapshot:
    """A template database beside the test database."""

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self.name = str(connections[alias].settings_dict["NAME"])
        self.template = f"{self.name}_template"
        self._copy(source=self.name, target=self.template)

    def restore(self) -> None:
        """Create the database again from the template; sessions that a test left are ended."""
        self._copy(source=self.template, target=self.name)

    def drop(self) -> None:
        """Drop the template."""
        with self._maintenance() as session:
            session.execute(_drop_statement(self.template))

    def _copy(self, *, source: str, target: str) -> None:
        connections.close_all()
        wrapper: Any = connections[self.alias]
        wrapper.close_pool()
        with self._maintenance() as session:
            session.execute(_drop_statement(target))
            session.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY").format(
                    sql.Identifier(target), sql.Identifier(source)
                )
            )

    def _maintenance(self) -> psycopg.Connection[Any]:
        kept = connections[self.alias].settings_dict
        return psycopg.connect(
            host=kept["HOST"],
            port=kept["PORT"] or None,
            user=kept["USER"] or None,
            password=kept["PASSWORD"] or None,
            dbname="postgres",
            autocommit=True,
        )


def take_snapshot(alias: str) -> Snapshot:
    """Keep the database as it is now."""
    if connections[alias].vendor == "postgresql":
        return PostgresSnapshot(alias)
    return SqliteSnapshot(alias)


def _drop_statement(name: str) -> sql.Composed:
    return sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
