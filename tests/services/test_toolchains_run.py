"""Toolchains are run, in the sandbox, and their exit codes and counts decide over a claim."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from orchestration.models import Project, Task
from orchestration.runner.sandbox import readable_places
from tests.factories import new_project
from tests.services.test_claim_marks import hand_in, lines, write
from tests.services.toolchain_programs import install

pytestmark = pytest.mark.django_db
Installed = Callable[..., None]

GO_MOD = "module example.com/app\n\ngo 1.22\n"
GO_TEST = "package app\n\nfunc TestOne(t *testing.T) {{}}\nfunc TestTwo(t *testing.T) {{ {two} }}\n"
PACKAGE = '{{"scripts": {{"build": "{build}",\n "test": "node --test"}}}}\n'
MAKEFILE = "build:\n\t@{build}\n\ntest:\n\t@{test}\n"


@pytest.fixture
def project() -> Project:
    return new_project()


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Installed]:
    """Have only some of the programs on the PATH, beside the tools of the system that are none."""
    home = Path(tempfile.mkdtemp(prefix="tools-"))
    home.chmod(0o755)

    def use(*names: str) -> None:
        install(home / "ours", *names)
        base = home / "base"
        base.mkdir()
        for name in ("sh", "make", "python3", "sed", "grep", "cat", "head", "ls", "true", "false"):
            found = shutil.which(name)
            assert found is not None
            (base / name).symlink_to(os.path.realpath(found))
        monkeypatch.setenv("PATH", f"{home / 'ours'}:{base}")
        readable_places.cache_clear()

    yield use
    shutil.rmtree(home)
    readable_places.cache_clear()


def found(task: Task) -> dict[str, tuple[str, int | None]]:
    """What became of each claim: by its kind, the outcome and the exit code of our run."""
    rows = task.verifications.filter(name__startswith="claim:")
    return {one.name.split(":")[1]: (one.outcome, one.exit_code) for one in rows}


def claimed(project: Project, files: Mapping[str, str], words: str) -> Task:
    for name, text in files.items():
        write(project, name, text)
    return hand_in(project, words)


def go(*, two: str = "", main: str = "package app\n") -> dict[str, str]:
    return {"go.mod": GO_MOD, "main.go": main, "app_test.go": GO_TEST.format(two=two)}


def test_go_builds_and_tests(project: Project, installed: Installed) -> None:
    installed("go")
    task = claimed(project, go(), "编译通过，2 个测试全部通过")
    assert found(task) == {"build": ("passed", 0), "test": ("passed", 0)}
    assert lines(task) == ["[independently verified ✓] builds, tests: 2 passed, 0 failed"]
    [row] = task.verifications.filter(name__startswith="claim:test")
    assert row.command == {"argv": ["go", "test", "-v", "./..."]}


def test_go_that_does_not_build_contradicts_both(project: Project, installed: Installed) -> None:
    installed("go")
    task = claimed(project, go(main="package app\nvar x = undefined\n"), "it builds, tests pass")
    assert found(task) == {"build": ("failed", 1), "test": ("failed", 1)}
    assert {one.severity for one in task.defects.all()} == {"high"}


def test_go_with_a_failing_test_contradicts_the_count(
    project: Project, installed: Installed
) -> None:
    installed("go")
    task = claimed(project, go(two='t.Fatal("no")'), "it builds, all 2 tests pass")
    assert found(task) == {"build": ("passed", 0), "test": ("failed", 1)}
    assert "ran 1 passed, 1 failed" in task.defects.get().description


def test_go_without_a_test_proves_no_test(project: Project, installed: Installed) -> None:
    installed("go")
    task = claimed(project, {"go.mod": GO_MOD, "main.go": "package app\n"}, "all tests pass")
    assert found(task)["test"][0] == "not_possible"
    assert "found no test" in task.verifications.get(name__startswith="claim:test").findings[0]


@pytest.mark.parametrize("runner", ["npm", "bun"])
def test_scripts_of_a_package_are_run(project: Project, installed: Installed, runner: str) -> None:
    installed(runner, "node")
    files = {"package.json": PACKAGE.format(build="true"), "a.test.js": "test('x', pass)\n"}
    task = claimed(project, files, "it builds, 1 passed")
    assert found(task) == {"build": ("passed", 0), "test": ("passed", 0)}
    [row] = task.verifications.filter(name__startswith="claim:test")
    assert row.command == {"argv": [runner, "run", "test"]}


def test_failing_scripts_contradict(project: Project, installed: Installed) -> None:
    installed("npm", "node")
    files = {"package.json": PACKAGE.format(build="false"), "a.test.js": "test('x', fail)\n"}
    task = claimed(project, files, "it builds, all tests pass")
    assert found(task) == {"build": ("failed", 1), "test": ("failed", 1)}


def test_bun_is_used_where_its_lock_file_is(project: Project, installed: Installed) -> None:
    installed("npm", "node", "bun")
    files = {"package.json": "{}", "bun.lock": "", "a.test.js": "test('x', pass)\n"}
    task = claimed(project, files, "1 passed")
    [row] = task.verifications.filter(name__startswith="claim:test")
    assert (row.outcome, row.command) == ("passed", {"argv": ["bun", "test"]})


def test_bun_without_a_test_proves_no_test(project: Project, installed: Installed) -> None:
    installed("bun")
    task = claimed(project, {"package.json": "{}", "bun.lock": ""}, "all tests pass")
    assert found(task)["test"][0] == "not_possible"


def test_make_really_builds_and_tests(project: Project) -> None:
    files = {"Makefile": MAKEFILE.format(build="echo made > app", test="grep -q made app")}
    task = claimed(project, files, "it builds, all tests pass")
    assert found(task) == {"build": ("passed", 0), "test": ("passed", 0)}
    assert (Path(project.workspace) / "app").read_text() == "made\n"


def test_make_that_fails_contradicts(project: Project) -> None:
    task = claimed(project, {"Makefile": MAKEFILE.format(build="false", test="exit 3")}, "编译通过")
    assert found(task) == {"build": ("failed", 2)}


def test_make_that_lacks_a_tool_is_unverified(project: Project) -> None:
    files = {"Makefile": MAKEFILE.format(build="no-such-compiler app.c", test="true")}
    task = claimed(project, files, "it builds")
    assert found(task)["build"][0] == "not_possible"
    assert not task.defects.exists()


def test_python_really_builds_and_tests(project: Project) -> None:
    tests = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n"
    task = claimed(project, {"test_a.py": tests}, "it builds, 1 passed")
    assert found(task) == {"build": ("passed", 0), "test": ("passed", 0)}


@pytest.mark.parametrize(
    ("files", "words", "tool"),
    [
        (go(), "it builds", "go"),
        (go(), "all tests pass", "go"),
        ({"package.json": PACKAGE.format(build="true")}, "it builds", "bun"),
        ({"package.json": "{}"}, "3 passed", "node"),
        ({"package.json": "{}", "bun.lock": ""}, "3 passed", "node"),
    ],
)
def test_missing_tool_leaves_the_claim_unverified_and_says_which(
    project: Project, installed: Installed, files: dict[str, str], words: str, tool: str
) -> None:
    installed()
    task = claimed(project, files, words)
    [row] = task.verifications.filter(name__startswith="claim:")
    assert (row.outcome, row.grade) == ("not_possible", "none")
    assert row.findings == [f"{tool} or a part of it is not installed here"]
    marks = task.outputs.get().marks
    assert [one["kind"] for one in marks] == ["not_verified"]
    assert not task.defects.exists()


def test_toolchain_of_the_policy_is_run(installed: Installed) -> None:
    installed("go")
    rules: list[dict[str, Any]] = [
        {"name": "own", "files": ["own.txt"], "build": "sh -c 'exit 4'", "test": ["go", "test"]}
    ]
    project = new_project(policy={"checks": {"toolchains": rules}})
    task = claimed(project, {"own.txt": "x", "own_test.go": "func TestA() {}\n"}, "it builds")
    assert found(task)["build"] == ("failed", 4)


def test_build_cannot_read_what_the_sandbox_hides(
    project: Project, settings: Any, installed: Installed
) -> None:
    installed("npm", "node")
    secret = Path(settings.COUNTERSIGN_DATA_DIR) / "seen-by-a-build"
    secret.write_text("secret")
    files = {"package.json": PACKAGE.format(build=f"cat {secret}")}
    task = claimed(project, files, "it builds")
    [row] = task.verifications.filter(name__startswith="claim:build")
    assert row.outcome != "passed"
    assert "secret\n" not in row.output_tail
    assert not row.output_tail.endswith("secret")
