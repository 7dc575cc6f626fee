"""Code that comes with its own tests is marked so."""

from __future__ import annotations

import pytest

from orchestration.models import Project
from tests.factories import agent_step, child, drive, new_agent, new_project, submit_plan
from tests.services.test_claim_marks import answer

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return new_project()


@pytest.mark.parametrize(
    ("names", "marked"),
    [
        (("app.py", "tests/test_app.py"), {"tests/test_app.py"}),
        (("app.py", "helper.py"), set()),
        (("test_one.py", "test_two.py"), set()),
    ],
)
def test_code_that_comes_with_its_own_tests_is_marked(
    project: Project, names: tuple[str, str], marked: set[str]
) -> None:
    """CASES A-04: whoever writes both can make them fit each other."""
    root = submit_plan(project, agent_step("1"))
    drive(project)
    step, agent = child(root, "1"), new_agent(project=project)
    outputs = [{"title": name, "type": "code", "content": "x = 1"} for name in names]
    done = {"status": "review", "comment": "done", "output": outputs[1]}
    answer(step, "executor", agent, done, outputs=outputs[:1])
    drive(project)
    found = [one for mark in step.outputs.values_list("marks", flat=True) for one in mark]
    said = {one["params"]["paths"] for one in found if one["code"] == "own_tests"}
    assert said == marked
