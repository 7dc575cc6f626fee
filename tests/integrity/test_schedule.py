"""The schedule checks every project in each turn, each on its own, a slice at a time."""

from __future__ import annotations

import logging

import pytest

from orchestration.jobs import integrity_job
from orchestration.models import Project, Task
from orchestration.services.audit import seal_events
from orchestration.services.integrity import check_every_project
from orchestration.services.projects import archive_project
from orchestration.services.work import SYSTEM
from tests.factories import agent_step, drive, new_project, step, submit_plan
from tests.integrity.planted import changed_blueprint, changed_status
from tests.integrity.planting import force

pytestmark = pytest.mark.django_db(transaction=True)
PROJECT = "orchestration_project"


def broken(slug: str) -> Project:
    """A project with a task that its history does not explain."""
    root = plan(slug)
    changed_status(root)
    return root.project


def plan(slug: str) -> Task:
    """A plan whose first step is done and locked something."""
    root = submit_plan(
        new_project(slug),
        step("1", run=["sh -c 'echo hi > made.txt'"], expected_artifacts=["made.txt"]),
        agent_step("2", after=["1"]),
    )
    drive(root.project)
    seal_events()
    return root


def states(*projects: Project) -> list[str]:
    """The states of some projects as they are stored."""
    return [str(Project.objects.get(pk=one.pk).status) for one in projects]


def test_one_turn_checks_every_project() -> None:
    one, sound = broken("one"), plan("sound").project
    three = plan("three")
    changed_blueprint(three)
    assert check_every_project() is None
    assert states(one, sound, three.project) == ["safe_stop", "active", "safe_stop"]


def test_a_project_that_cannot_be_checked_keeps_none_from_its_check(
    caplog: pytest.LogCaptureFixture,
) -> None:
    one, two, three = (broken(slug) for slug in ("one", "two", "three"))
    force(f"UPDATE {PROJECT} SET policy_json = 'not json' WHERE id = %s", one.pk)
    with caplog.at_level(logging.ERROR):
        assert check_every_project() is None
    assert states(one, two, three) == ["active", "safe_stop", "safe_stop"]
    assert f"project {one.pk} could not be checked" in caplog.text


def test_an_archived_project_is_not_checked() -> None:
    one, two = (broken(slug) for slug in ("one", "two"))
    archive_project(project_id=one.pk, actor=SYSTEM)
    assert check_every_project() is None
    assert states(one, two) == ["archived", "safe_stop"]


def test_a_long_turn_yields_and_goes_on_where_it_was() -> None:
    one, two, three = (broken(slug) for slug in ("one", "two", "three"))
    assert check_every_project(seconds=0) == one.pk
    assert states(one, two, three) == ["safe_stop", "active", "active"]
    assert check_every_project(after=one.pk, seconds=0) == two.pk
    assert check_every_project(after=two.pk, seconds=0) is None
    assert states(one, two, three) == ["safe_stop"] * 3


def test_the_job_goes_on_after_the_project_it_is_sent_with() -> None:
    one, two, three = (broken(slug) for slug in ("one", "two", "three"))
    integrity_job(two.pk)
    assert states(one, two, three) == ["active", "active", "safe_stop"]
    integrity_job()
    assert states(one, two, three) == ["safe_stop"] * 3
