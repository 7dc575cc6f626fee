"""The layers run one after another: where one fails, nothing of a later one runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestration.models import Project, Task
from tests.factories import agent_step, child, drive, new_agent, new_project, submit_plan
from tests.services.test_claim_marks import FAILED, answer, write, write_tests

pytestmark = pytest.mark.django_db

RAN = ("planned", "tested")
CLAIM = {"claim": "it is fast", "confidence": "inferred", "reasoning": "measured"}
OTHERWISE = {"claim": "it is fast", "confidence": "uncertain", "reasoning": "not measured"}


@pytest.fixture
def project() -> Project:
    made = new_project(policy={"commands": {"allow": [["touch"]]}})
    write_tests(made, 2)
    tests = Path(made.workspace) / "test_sums.py"
    tests.write_text(f"open('tested', 'w').close()\n{tests.read_text()}")
    write(made, "report.md", "# Report\n")
    return made


def hand_in(
    project: Project,
    *claims: dict[str, Any],
    words: str = "all tests pass",
    calls: tuple[dict[str, Any], ...] = (),
) -> Task:
    """Hand in a step with a planned check, claims, and words about tests."""
    step = agent_step("1", verify=["touch planned"], expected_artifacts=["report.md"])
    root = submit_plan(project, step)
    drive(project)
    output = {"title": "work", "type": "code", "content": "x", "summary": words,
              "assertions": list(claims)}  # fmt: skip
    document = {"status": "review", "output": output, "comment": "done"}
    answer(child(root, "1"), "executor", new_agent(project=project), document, calls=calls)
    drive(project)
    return child(root, "1")


def what_ran(project: Project) -> list[str]:
    return [name for name in RAN if (Path(project.workspace) / name).exists()]


def layers(task: Task) -> list[tuple[str, str]]:
    return list(task.verifications.order_by("pk").values_list("layer", "outcome"))


def test_everything_runs_where_nothing_failed_before(project: Project) -> None:
    hand_in(project, CLAIM)
    assert what_ran(project) == list(RAN)


def test_nothing_runs_after_a_missing_artifact(project: Project) -> None:
    (Path(project.workspace) / "report.md").unlink()
    task = hand_in(project, CLAIM)
    assert what_ran(project) == []
    assert layers(task) == [("L1", "failed")]


def test_nothing_runs_after_claims_that_do_not_hold_together(project: Project) -> None:
    task = hand_in(project, CLAIM, OTHERWISE)
    assert what_ran(project) == []
    assert layers(task) == [("L1", "passed"), ("L2", "failed")]


def test_nothing_runs_after_a_claim_that_the_record_denies(project: Project) -> None:
    task = hand_in(project, CLAIM, calls=(FAILED,))
    assert what_ran(project) == []
    assert layers(task) == [("L1", "passed"), ("L2", "passed"), ("L2", "failed")]
    assert task.defects.get().severity == "high"
