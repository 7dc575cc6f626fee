"""The record of a run that failed is marked as failed, whatever its other checks say."""

from __future__ import annotations

import pytest

from orchestration.models import Project, Task
from tests.factories import (
    child,
    decide,
    drive,
    fresh,
    new_project,
    open_decision_of,
    step,
    submit_plan,
)

pytestmark = pytest.mark.django_db
FIX = {"description": "make it", "commands": ["touch wanted"]}


@pytest.fixture
def project() -> Project:
    return new_project()


def marks(task: Task) -> list[tuple[str, str]]:
    """Kinds and codes of the marks on the newest run record."""
    record = task.outputs.filter(title="Run record").latest("pk")
    return [(one["kind"], one["code"]) for one in record.marks]


def failing(project: Project, *verify: str) -> Task:
    """A step whose run fails, with a fix that Sir has to approve."""
    root = submit_plan(
        project,
        step(
            "1", run=["touch made", "ls wanted"], verify=list(verify),
            on_failure={"severity": "medium", "fix": FIX},
        ),
    )  # fmt: skip
    drive(project)
    return root


def test_failed_run_is_marked_so_beside_a_check_that_passed(project: Project) -> None:
    root = failing(project, "test -e made")
    assert marks(child(root, "1")) == [
        ("independently_failed", "check_failed"),
        ("independently_verified", "command_passed"),
    ]
    decide(open_decision_of(project), "approve")
    drive(project)
    assert fresh(root).status == "done"
    assert marks(child(root, "1")) == [("independently_verified", "command_passed")]


def test_failed_run_without_any_check_is_marked_too(project: Project) -> None:
    root = failing(project)
    assert marks(child(root, "1")) == [("independently_failed", "check_failed")]
