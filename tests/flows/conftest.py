"""A project with a workspace, and a crew of scripted agents on it."""

from __future__ import annotations

import pytest

from orchestration.models import Project
from tests.factories import new_agent, new_project
from tests.flows.scripts import Crew


@pytest.fixture
def project() -> Project:
    """A project of its own."""
    return new_project("flows")


@pytest.fixture
def crew(project: Project) -> Crew:
    """A maker and a judge."""
    return Crew(project, new_agent("maker", project=project), new_agent("judge", project=project))
