"""What every test gets: marks by what it touches, a database that comes back, private servers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import SyncToAsync
from django.conf import settings
from django.db import connections
from django.test import TestCase, TransactionTestCase

from config.celery import app
from config.workers import WorkerGroup
from orchestration.selectors.replay_checkpoints import checkpoints
from orchestration.services.audit import floor
from orchestration.services.worker_link import stopping
from tests.database_restore import Snapshot, take_snapshot
from tests.services_up import PostgresServer, RedisServer

DATABASE_FIXTURES = frozenset({"db", "transactional_db", "live_server", "django_db_setup"})
IS_POSTGRES = "postgres" in settings.DATABASES["default"]["ENGINE"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what touches the database; leave out what this database or machine cannot run.

    Left out, not skipped: `make test` chooses the passes, so that each test runs in one of them.
    """
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        if _touches_database(item):
            item.add_marker("database")
        wrong = "sqlite" if IS_POSTGRES else "postgres"
        needs_browser = item.get_closest_marker("browser") and not shutil.which("chromedriver")
        (left_out if item.get_closest_marker(wrong) or needs_browser else kept).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def _touches_database(item: pytest.Item) -> bool:
    fixtures = set(getattr(item, "fixturenames", ()))
    owner = getattr(item, "cls", None)
    is_django_case = owner is not None and issubclass(owner, TransactionTestCase)
    has_mark = item.get_closest_marker("django_db") is not None
    return has_mark or is_django_case or bool(fixtures & DATABASE_FIXTURES)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Keep the migrated database and copy it back after each test that commits."""
    with django_db_blocker.unblock():
        snapshot = take_snapshot("default")
    flush = TransactionTestCase._fixture_teardown  # type: ignore[attr-defined]
    TransactionTestCase._fixture_teardown = _restoring(snapshot)  # type: ignore[attr-defined]
    yield
    TransactionTestCase._fixture_teardown = flush  # type: ignore[attr-defined]
    with django_db_blocker.unblock():
        snapshot.drop()


def _restoring(snapshot: Snapshot) -> Any:
    def restore(case: TransactionTestCase) -> None:
        assert not isinstance(case, TestCase)
        # Asynchronous tests reach the database in this thread, which outlives them.
        SyncToAsync.single_thread_executor.submit(connections.close_all).result()
        snapshot.restore()

    return restore


@pytest.fixture(autouse=True)
def unknown_floor() -> None:
    """Let the sealer look from the start: the database came back and hands its ids out again."""
    floor.reset()
    checkpoints.clear()


@pytest.fixture(autouse=True)
def empty_workspaces() -> None:
    """Begin without the files of earlier tests: ids, and so folders, are handed out again."""
    for root in settings.COUNTERSIGN_WORKSPACE_ROOTS:
        for folder in root.iterdir():
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def running_workers(transactional_db: None) -> Iterator[WorkerGroup]:
    """Both workers, in threads of this process: wake-ups do what they do in `serve`.

    Without it a wake-up stays in the broker, and a test calls the service or the job itself.
    """
    app.control.purge()
    group = WorkerGroup(concurrency=4)
    group.start()
    assert group.wait_until_ready()
    yield group
    group.ask_to_stop()
    assert group.wait_until_stopped(grace_seconds=20)
    # Said to this whole process; the next test works in it again.
    stopping.clear()
    connections.close_all()


@pytest.fixture(scope="session")
def private_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server of this session's own, for tests that start or kill processes."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def private_redis() -> Iterator[RedisServer]:
    """A Redis server of this test's own: it may kill and start it again."""
    with RedisServer() as server:
        yield server
