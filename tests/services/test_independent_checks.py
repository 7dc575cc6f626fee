"""What an agent says it did is checked in the workspace; what is not so blocks its work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestration.models import Project, Task
from orchestration.states import TaskStatus
from tests.factories import agent_step, child, drive, fresh, new_agent, new_project, submit_plan
from tests.services.test_external_seats import answer

pytestmark = pytest.mark.django_db

TESTS = (
    "import unittest\n"
    "class Sums(unittest.TestCase):\n"
    "    def test_one(self): self.assertEqual(1 + 1, 2)\n"
    "    def test_two(self): self.assertEqual(1 + 2, {three})\n"
)


@pytest.fixture
def project() -> Project:
    return new_project()


def write(project: Project, name: str, text: str) -> None:
    (Path(project.workspace) / name).write_text(text)


def hand_in(project: Project, words: str) -> Task:
    """Let an agent hand in a step with these words as its summary."""
    root = submit_plan(project, agent_step("1"))
    drive(project)
    document = {
        "status": "review",
        "output": {"title": "work", "type": "code", "content": "x", "summary": words},
        "comment": "done",
    }
    answer(child(root, "1"), "executor", new_agent(project=project), document)
    drive(project)
    return child(root, "1")


def rows(task: Task) -> dict[str, str]:
    return {
        one.name.split(": ")[0]: one.outcome
        for one in task.verifications.filter(name__startswith="claim:", fix_round=task.fix_round)
    }


def test_claims_that_are_so_are_proven(project: Project) -> None:
    write(project, "test_sums.py", TESTS.format(three=3))
    task = hand_in(project, "test_sums.py 已创建，编译通过，2 个测试全部通过")
    assert task.status == TaskStatus.DONE
    assert rows(task) == {
        "claim:file:test_sums.py": "passed",
        "claim:build:": "passed",
        "claim:test:": "passed",
    }
    assert task.verifications.get(name__startswith="claim:test").grade == "rerun"


@pytest.mark.parametrize(
    ("words", "key"),
    [
        ("created missing.py", "claim:file:missing.py"),
        ("创建了 报告.md", "claim:file:报告.md"),
        ("Refactored it to use a cache and all 2 tests pass.", "claim:test:"),
        ("不再依赖 X 而且所有用例通过", "claim:test:"),
        ("it builds", "claim:build:"),
        ("所有测试通过", "claim:test:"),
        ("2 passed", "claim:test:"),
    ],
)
def test_a_claim_that_is_not_so_is_a_high_defect_and_blocks_done(
    project: Project, words: str, key: str
) -> None:
    write(project, "test_sums.py", TESTS.format(three=4))
    write(project, "broken.py", "def f(:\n")
    task = hand_in(project, words)
    assert task.status == TaskStatus.REVIEW
    defect = task.defects.get()
    assert (defect.severity, defect.source_key) == ("high", key)
    found = task.verifications.get(name__startswith=key)
    assert (found.outcome, found.grade) == ("failed", "rerun")


def test_a_claimed_count_is_compared_with_the_real_one(project: Project) -> None:
    write(project, "test_sums.py", TESTS.format(three=3))
    task = hand_in(project, "all 12 tests pass")
    assert "claimed 12 passed" in task.defects.get().description
    assert task.status == TaskStatus.REVIEW


def test_an_honest_count_of_failures_is_no_contradiction(project: Project) -> None:
    write(project, "test_sums.py", TESTS.format(three=4))
    task = hand_in(project, "1 passed, 1 failed")
    assert (task.status, rows(task)) == (TaskStatus.DONE, {"claim:test:": "passed"})


def test_a_contradicted_claim_is_cleared_when_it_becomes_true(project: Project) -> None:
    task = hand_in(project, "created late.py")
    assert task.status == TaskStatus.REVIEW
    write(project, "late.py", "x = 1\n")
    fixed = {
        "status": "review",
        "output": {"title": "work", "content": "x", "summary": "created late.py"},
        "comment": "made it",
        "change_note": "made it",
    }
    answer(task, "fixer", new_agent(project=project), fixed)
    drive(project)
    assert fresh(task).defects.get().status == "verified"
    assert fresh(task).status == TaskStatus.DONE


@pytest.mark.parametrize(
    ("files", "words", "key"),
    [
        ({"own.txt": "x"}, "编译通过", "claim:build:"),
        ({}, "测试通过", "claim:test:"),
        ({"x.py": "x = 1"}, "all tests pass", "claim:test:"),
        ({}, "created /etc/countersign.conf", "claim:file:/etc/countersign.conf"),
    ],
)
def test_what_cannot_be_checked_is_unverified_and_never_a_pass(
    files: dict[str, str], words: str, key: str
) -> None:
    rule = {"name": "own", "files": ["own.txt"], "build": "no-such-compiler ."}
    project = new_project(policy={"checks": {"toolchains": [rule]}})
    for name, text in files.items():
        write(project, name, text)
    task = hand_in(project, words)
    assert rows(task) == {key: "not_possible"}
    assert not task.defects.exists()


def test_without_a_sandbox_builds_and_tests_are_not_run(project: Project, settings: Any) -> None:
    settings.COUNTERSIGN_SANDBOX = "none"
    write(project, "test_sums.py", "open('ran', 'w')\n")
    task = hand_in(project, "created test_sums.py, all tests pass")
    assert rows(task) == {"claim:file:test_sums.py": "passed", "claim:test:": "not_possible"}
    assert not (Path(project.workspace) / "ran").exists()


def test_a_toolchain_of_the_policy_is_used() -> None:
    rule = {"name": "own", "files": ["own.txt"], "test": "sh -c 'echo 4 passed in 1s'"}
    project = new_project(policy={"checks": {"toolchains": [rule]}})
    write(project, "own.txt", "x")
    assert rows(hand_in(project, "4 passed")) == {"claim:test:": "passed"}
