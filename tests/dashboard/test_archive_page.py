"""A project's archive: what was delivered with each root, newest first."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from orchestration.models import Project, Task
from tests.factories import drive, fresh, new_project, step, submit_plan

URL = "/projects/delivered/archive/"


@pytest.fixture
def project(sir: User) -> Project:
    """A project named delivered."""
    return new_project("delivered")


def done_root(project: Project) -> Task:
    """Carry a small plan through to done."""
    made = step("1", run=["sh -c 'echo hi > made.txt'"], expected_artifacts=["made.txt"])
    root = submit_plan(project, made, text="make a file")
    drive(project)
    assert fresh(root).status == "done"
    return root


def test_page_lists_the_archive_of_each_root_newest_first(
    project: Project, sir_client: Client
) -> None:
    first, second = done_root(project), done_root(project)
    page = sir_client.get(URL).content.decode()
    newest, older = (page.index(f"/tasks/{root.pk}/archive.zip") for root in (second, first))
    assert newest < older
    assert page.count("archive.md") == 2
    assert "Passed" in page
    assert f"{project.key_prefix}-{first.number}" in page


def test_empty_archive_says_what_will_be_there(project: Project, sir_client: Client) -> None:
    assert "Nothing delivered yet" in sir_client.get(URL).content.decode()
