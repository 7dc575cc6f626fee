"""A fix that deletes, disables or loosens a test waits for Sir, not for a rule (CASES A-05)."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client

from orchestration.models import Decision, Project, Task
from tests.api.callers import session_client
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
TESTS = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): assert 1 == 2\n"
CHECK = "python3 -m unittest -q test_it.py"


def patch_of(line: str) -> str:
    """A patch that puts a line in the place of the failing test."""
    return (
        "--- a/test_it.py\n+++ b/test_it.py\n@@ -1,3 +1,3 @@\n import unittest\n"
        f" class T(unittest.TestCase):\n-    def test_a(self): assert 1 == 2\n+{line}\n"
    )


LOOSENED = patch_of("    def helper(self): pass")
DISABLED = patch_of('    @unittest.skip("later")')
# Of another length, or Python would take its cached bytecode of the same second for the new file.
MENDED = patch_of("    def test_a(self): assert 1 + 1 == 2")


def failing(patch: str, severity: str) -> tuple[Project, Task]:
    """A step whose test fails, with a fix that its plan proposes."""
    project = new_project()
    Path(project.workspace, "test_it.py").write_text(TESTS)
    fix = {"description": "make it pass", "patch": patch}
    root = submit_plan(
        project, step("1", run=[CHECK], on_failure={"severity": severity, "fix": fix})
    )
    drive(project)
    return project, child(root, "1")


@pytest.mark.parametrize("severity", ["critical", "high"])
@pytest.mark.parametrize("patch", [LOOSENED, DISABLED], ids=["loosened", "disabled"])
def test_fix_that_weakens_a_test_is_not_approved_by_rule(severity: str, patch: str) -> None:
    project, task = failing(patch, severity)
    defect = task.defects.get()
    assert (defect.severity, defect.status) == (severity, "awaiting_sir")
    assert Path(project.workspace, "test_it.py").read_text() == TESTS
    decision = open_decision_of(project, "medium_defect")
    assert decision.content["severity"] == severity
    client: Client = session_client()
    page = client.get(f"/inbox/{decision.pk}/").content.decode()
    assert "This fix weakens tests" in page
    assert "test_it.py" in page


def test_what_sir_signs_is_applied_all_the_same() -> None:
    project, task = failing(LOOSENED, "high")
    decide(open_decision_of(project, "medium_defect"), "approve")
    drive(project)
    assert "helper" in Path(project.workspace, "test_it.py").read_text()
    assert fresh(task).fix_round == 1


def test_fix_that_keeps_every_test_is_approved_by_rule() -> None:
    project, task = failing(MENDED, "high")
    assert fresh(task).status == "done"
    assert [one.status for one in task.defects.all()] == ["verified"]
    assert not Decision.objects.filter(project=project, kind="medium_defect").exists()


def test_low_defect_that_is_accepted_applies_nothing_and_asks_nobody() -> None:
    project, task = failing(LOOSENED, "low")
    assert task.defects.get().status == "accepted_as_is"
    assert Path(project.workspace, "test_it.py").read_text() == TESTS
    assert not Decision.objects.filter(project=project).exists()
