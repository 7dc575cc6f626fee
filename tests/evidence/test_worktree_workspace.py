"""A project whose workspace is a git worktree: work and checks happen there, and nowhere else."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orchestration.models import Project, Task
from orchestration.services.projects import create_project
from orchestration.services.work import SYSTEM
from tests.api.callers import Caller, agent_client
from tests.api.test_assignments_api import claim
from tests.evidence.test_worked_examples import hand_in, shown, step_of
from tests.factories import drive, fresh
from tests.runner.test_worktrees import git

CODE = "def two():\n    return 2\n"
TESTS = (
    "import unittest\nfrom made import two\n\n\nclass Twos(unittest.TestCase):\n"
    "    def test_two(self):\n        self.assertEqual(two(), 2)\n"
)
COMMITTED = "git cat-file -e HEAD:made.py"
SAID = "已创建 made.py，编译通过，1 个测试全部通过。"
POLICY = {"commands": {"allow": [["git"]]}}


@dataclass
class Checkouts:
    """The main checkout and the worktree that is the project's workspace."""

    main: Path
    worktree: Path


@pytest.fixture
def checkouts(settings: Any) -> Iterator[Checkouts]:
    """A repository with one commit, and a worktree of it on a branch of its own.

    Both lie outside of the data directory, whose content no command may see.
    """
    root = Path(tempfile.mkdtemp(prefix="trees-"))
    root.chmod(0o755)
    settings.COUNTERSIGN_WORKSPACE_ROOTS = (root,)
    made = Checkouts(root / "main", root / "work")
    made.main.mkdir(parents=True)
    git(made.main, "init", "-q", "-b", "main")
    (made.main / "README.md").write_text("# Before\n")
    git(made.main, "add", ".")
    git(made.main, "commit", "-q", "-m", "before")
    git(made.main, "worktree", "add", "-q", "-b", "work", str(made.worktree))
    yield made
    shutil.rmtree(root)


@pytest.fixture
def project(db: None, checkouts: Checkouts) -> Project:
    return create_project(
        slug="demo", workspace=str(checkouts.worktree), policy=POLICY, actor=SYSTEM
    )


@pytest.fixture
def bob(project: Project) -> Caller:
    return agent_client(project, name="bob")


def write(place: Path) -> None:
    """Write code and its test, and commit them where they are."""
    (place / "made.py").write_text(CODE)
    (place / "test_made.py").write_text(TESTS)
    git(place, "add", ".")
    git(place, "commit", "-q", "-m", "make two")


def state(place: Path) -> tuple[str, str, list[str]]:
    """What a checkout is at: its commit, what is not committed, and its files."""
    files = sorted(one.name for one in place.iterdir() if one.name != ".git")
    return git(place, "rev-parse", "HEAD"), git(place, "status", "--short"), files


def did(project: Project, bob: Caller, place: Path) -> Task:
    """Let an agent work in a checkout and say so. Return its step, checked."""
    task = step_of(project, expected_artifacts=["README.md"], verify=[COMMITTED])
    held = claim(bob, "executor")
    told = bob.read(held["prompt_url"])["text"]
    assert project.workspace in told
    write(place)
    hand_in(bob, held, SAID, path="README.md", type="document")
    drive(project)
    return fresh(task)


def test_work_in_the_worktree_is_checked_there_and_the_main_checkout_stays(
    project: Project, bob: Caller, checkouts: Checkouts
) -> None:
    before = state(checkouts.main)
    task = did(project, bob, checkouts.worktree)
    assert (task.status, [one.title for one in task.defects.all()]) == ("done", [])
    line = shown(bob, task)[0]
    for words in ("文件存在: made.py", "编译通过", "测试", f"通过: {COMMITTED}"):
        assert words in line
    assert state(checkouts.main) == before
    assert git(checkouts.worktree, "rev-parse", "--abbrev-ref", "HEAD") == "work"
    assert git(checkouts.worktree, "log", "-1", "--format=%s") == "make two"


def test_work_in_the_main_checkout_is_not_there(
    project: Project, bob: Caller, checkouts: Checkouts
) -> None:
    """CASES A-46: an agent worked in the base repository instead of its worktree."""
    task = did(project, bob, checkouts.main)
    assert task.status == "review"
    found = {one.source_key for one in task.defects.all()}
    assert {"claim:file:made.py", "verify:0"} <= found
    assert "[独立验证 ✗]" in "\n".join(shown(bob, task))
    assert not (checkouts.worktree / "made.py").exists()
