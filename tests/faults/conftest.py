"""The installation that a module's tests kill parts of, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from uuid import uuid4

import pytest

from tests.faults.site import Site
from tests.services_up import PostgresServer, RedisServer

SCALED_OUT = {
    "web": ["serve"],
    "worker-1": ["worker", "--concurrency", "2"],
    "worker-2": ["worker", "--concurrency", "2"],
    "beat": ["beat"],
}


@pytest.fixture(scope="module")
def redis_server() -> Iterator[RedisServer]:
    """A Redis that these tests may kill."""
    with RedisServer() as server:
        yield server


@pytest.fixture(scope="module")
def installation(
    tmp_path_factory: pytest.TempPathFactory,
    private_postgres: PostgresServer,
    redis_server: RedisServer,
) -> Iterator[Site]:
    """A web process, two workers and the scheduler on PostgreSQL and Redis."""
    address = private_postgres.create_database(f"faults_{uuid4().hex}")
    folder = tmp_path_factory.mktemp("faults")
    with ExitStack() as stack:
        yield Site(stack, folder, address, redis_server.url)


@pytest.fixture
def site(installation: Site) -> Site:
    """The installation with every process running, whatever the last test killed."""
    installation.heal(SCALED_OUT)
    return installation
