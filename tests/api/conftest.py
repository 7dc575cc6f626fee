"""A project, the callers of it, and full buckets for each test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from uuid import uuid4

import pytest

from orchestration.api.throttles import buckets
from orchestration.models import Project
from tests.api.callers import Caller, agent_client, human_client
from tests.factories import new_project
from tests.services_up import PostgresServer, RedisServer


@pytest.fixture(scope="module")
def sqlite_services() -> Mapping[str, str]:
    """Nothing beside the server: SQLite, and its workers inside it."""
    return {}


@pytest.fixture(scope="module")
def postgres_services(private_postgres: PostgresServer) -> Iterator[Mapping[str, str]]:
    """The addresses of a database and a broker that nobody else uses."""
    with RedisServer() as broker:
        address = private_postgres.create_database(f"served_{uuid4().hex}")
        yield {"DATABASE_URL": address, "REDIS_URL": f"{broker.url}/0"}


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def services(request: pytest.FixtureRequest) -> Mapping[str, str]:
    """What a server is started on: each test that starts one runs on both."""
    found: Mapping[str, str] = request.getfixturevalue(f"{request.param}_services")
    return found


@pytest.fixture(autouse=True)
def _full_buckets() -> Iterator[None]:
    buckets.forget()
    yield
    buckets.forget()


@pytest.fixture
def project(db: None) -> Iterator[Project]:
    """A project named demo, with an empty workspace."""
    made = new_project("demo")
    yield made
    shutil.rmtree(made.workspace)


@pytest.fixture
def agent(project: Project) -> Caller:
    """An agent of the project with every scope."""
    return agent_client(project)


@pytest.fixture
def outsider(project: Project) -> Caller:
    """An agent with every scope, in another project."""
    return agent_client(new_project("elsewhere"), name="outsider")


@pytest.fixture
def sir(db: None) -> Caller:
    """Sir, with a token made for deciding."""
    return human_client()


@pytest.fixture
def viewer(db: None) -> Caller:
    """A person who may only look."""
    return human_client("looker", "viewer")


@pytest.fixture
def task(agent: Caller) -> str:
    """The path of a direct task that waits for an agent."""
    made = agent.send("/api/projects/demo/messages", {"text": "Implement the greeting"})
    return f"/api/projects/demo/tasks/{made.json()['task']['id']}"


@pytest.fixture
def held(agent: Caller, task: str) -> str:
    """The path of a task that the agent claimed and works on."""
    assert agent.send(f"{task}/claim").status_code == 200
    assert agent.send(f"{task}/status", {"status": "working"}).status_code == 200
    return task
