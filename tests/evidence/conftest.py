"""A project whose commands may compile and search, and an agent of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from orchestration.api.throttles import buckets
from orchestration.models import Project
from tests.api.callers import Caller, agent_client
from tests.factories import new_project

ALLOWED = [["python", "-m", "py_compile"], ["grep"]]


@pytest.fixture
def project(db: None) -> Iterator[Project]:
    buckets.forget()
    made = new_project("demo", policy={"commands": {"allow": ALLOWED}})
    yield made
    shutil.rmtree(made.workspace)


@pytest.fixture
def bob(project: Project) -> Caller:
    return agent_client(project, name="bob")
