"""The tools of the playbooks, on small repositories made for the purpose."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.runner.playbooks import (
    TOOLS,
    load_playbook,
    run_argv,
    run_step,
    run_tool,
    verify_step,
)

PASSING = """import unittest


class T(unittest.TestCase):
    def test_one(self):
        self.assertEqual(1, 1)
"""
FAILING = PASSING.replace("self.assertEqual(1, 1)", "self.fail('on purpose')")


def write(root: Path, files: dict[str, str]) -> Path:
    """Write a small repository."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def run_and_read(root: Path, tool: str, *arguments: str) -> tuple[int | None, dict[str, Any]]:
    """Run a tool. Shape: its exit code and the document it wrote."""
    result, text = run_tool(root, tool, "--output", "out/document.json", *arguments)
    assert (root / "out/document.json").is_file(), text
    return result.exit_code, json.loads((root / "out/document.json").read_text(encoding="utf-8"))


class TestInventory:
    """`inventory.py`"""

    def test_files_are_counted_and_what_is_not_ours_is_left_out(self, workspace: Path) -> None:
        write(
            workspace,
            {
                "a.py": "def f(): pass\nclass C: pass\n",
                "sub/b.txt": "one\ntwo\n",
                "node_modules/x.js": "",
                ".venv/y.py": "",
                "reports/old.json": "{}",
            },
        )
        (workspace / "link").symlink_to("/etc/passwd")
        code, document = run_and_read(workspace, "inventory.py", "--leave-out", "reports")
        rows = {row["path"]: row for row in document["files"]}
        assert code == 0
        assert rows.keys() == {"a.py", "sub/b.txt"}
        assert (rows["a.py"]["functions"], rows["a.py"]["classes"]) == (1, 1)
        assert (rows["sub/b.txt"]["lines"], rows["sub/b.txt"]["bytes"]) == (2, 8)
        assert document["totals"]["files"] == 2

    def test_files_of_any_kind_are_survived(self, workspace: Path) -> None:
        write(workspace, {"bad.py": "def (:\n", "名.md": "x"})
        (workspace / "binary.bin").write_bytes(b"\0\xff\n")
        (workspace / "latin.py").write_bytes(b"# caf\xe9\n")
        code, document = run_and_read(workspace, "inventory.py")
        rows = {row["path"]: row for row in document["files"]}
        assert code == 0
        assert len(rows) == 4
        assert "syntax_error" in rows["bad.py"]
        assert rows["binary.bin"]["lines"] == 0

    @pytest.mark.parametrize(
        ("exit_code", "expected"),
        [(0, ["a.py", "new.py"]), (128, ["a.py", "ignored.log", "new.py"])],
    )
    def test_git_is_asked_and_believed_only_when_it_answers(
        self, workspace: Path, tmp_path: Path, exit_code: int, expected: list[str]
    ) -> None:
        write(workspace, {"a.py": "", "ignored.log": "", "new.py": "", ".git/HEAD": ""})
        git = write(tmp_path, {"bin/git": "#!/bin/sh\n"}) / "bin/git"
        git.write_text(
            "#!/bin/sh\n"
            '[ "$*" = "ls-files -z --cached --others --exclude-standard" ] || exit 9\n'
            f"printf 'a.py\\0new.py\\0deleted.py\\0'; exit {exit_code}\n"
        )
        git.chmod(0o755)
        run_argv(
            workspace,
            *(sys.executable, str(TOOLS / "inventory.py"), "--output", "out/document.json"),
            environment={"PATH": f"{git.parent}:/usr/bin:/bin"},
        )
        document = json.loads((workspace / "out/document.json").read_text(encoding="utf-8"))
        assert [row["path"] for row in document["files"]] == expected


class TestByteCompile:
    """`byte_compile.py`"""

    def test_sources_that_compile_leave_no_trace(self, workspace: Path) -> None:
        write(workspace, {"a.py": "x = 1\n", "sub/b.py": "print('\\d')\n"})
        code, document = run_and_read(workspace, "byte_compile.py")
        assert (code, document["compiled"], document["failures"]) == (0, 2, [])
        assert [row["path"] for row in document["warnings"]] == ["sub/b.py"]
        assert not list(workspace.rglob("__pycache__"))

    @pytest.mark.parametrize("source", ["def (:\n", "x = '\0'\n", "# coding: nonsense\n"])
    def test_source_that_does_not_compile_is_named(self, workspace: Path, source: str) -> None:
        write(workspace, {"good.py": "x = 1\n", "bad.py": source})
        code, document = run_and_read(workspace, "byte_compile.py")
        assert code == 1
        assert [row["path"] for row in document["failures"]] == ["bad.py"]


class TestRunTests:
    """`run_tests.py`"""

    def test_no_tests_are_no_failure(self, workspace: Path) -> None:
        write(workspace, {"a.py": "x = 1\n"})
        code, document = run_and_read(workspace, "run_tests.py")
        assert (code, document["status"], document["ran"]) == (0, "none", None)

    @pytest.mark.parametrize("name", ["tests/test_a.py", "test_a.py", "tests/a_test.py"])
    def test_unittest_passes_and_fails_honestly(self, workspace: Path, name: str) -> None:
        write(workspace, {name: PASSING})
        code, document = run_and_read(workspace, "run_tests.py")
        assert (code, document["status"], document["ran"]) == (0, "passed", 1)
        write(workspace, {name: FAILING})
        code, document = run_and_read(workspace, "run_tests.py")
        assert (code, document["status"], document["failed"]) == (1, "failed", 1)
        assert len(document["failing"]) == 1
        assert "on purpose" in document["output_tail"]

    def test_tests_that_cannot_be_imported_fail(self, workspace: Path) -> None:
        write(workspace, {"tests/test_a.py": "import no_such_module_anywhere\n"})
        code, document = run_and_read(workspace, "run_tests.py")
        assert (code, document["status"]) == (1, "failed")

    def test_source_directory_is_found(self, workspace: Path) -> None:
        test = "import unittest\nimport thing\n" + PASSING.partition("\n")[2]
        write(workspace, {"src/thing/__init__.py": "", "tests/test_a.py": test})
        code, _ = run_and_read(workspace, "run_tests.py")
        assert code == 0

    def test_pytest_is_used_where_the_tests_are_written_for_it(self, workspace: Path) -> None:
        tests = "import pytest\ndef test_good(): pass\ndef test_bad(): assert 1 == 2\n"
        tests += "@pytest.mark.skip\ndef test_skipped(): pass\n"
        write(workspace, {"tests/test_a.py": tests})
        code, document = run_and_read(workspace, "run_tests.py")
        assert (code, document["framework"], document["status"]) == (1, "pytest", "failed")
        assert (document["ran"], document["failed"], document["skipped"]) == (3, 1, 1)
        assert document["failing"] == ["tests.test_a.test_bad"]

    def test_own_command_of_the_repository_is_used(self, workspace: Path) -> None:
        command = '[tool.countersign]\ntest_command = ["{python}", "check.py"]\n'
        write(workspace, {"pyproject.toml": command, "check.py": "exit(3)\n"})
        code, document = run_and_read(workspace, "run_tests.py")
        assert (code, document["status"], document["reason"]) == (1, "failed", "Exit code 3.")

    def test_own_command_without_its_module_is_not_run(self, workspace: Path) -> None:
        command = '[tool.countersign]\ntest_command = ["{python}", "-m", "no_such_module"]\n'
        write(workspace, {"pyproject.toml": command})
        code, document = run_and_read(workspace, "run_tests.py")
        assert (code, document["status"]) == (0, "not_run")


class TestLint:
    """`lint.py`; ruff itself is among our development tools."""

    def test_clean_sources_are_clean_and_others_are_not(self, workspace: Path) -> None:
        write(workspace, {"a.py": "x = 1\n"})
        code, document = run_and_read(workspace, "lint.py")
        assert (code, document["status"]) == (0, "clean")
        write(workspace, {"a.py": "import os\n"})
        code, document = run_and_read(workspace, "lint.py")
        assert (code, document["status"], document["by_rule"]) == (1, "findings", {"F401": 1})
        assert document["findings"][0]["path"] == "a.py"

    def test_settings_that_ruff_cannot_read_are_an_error(self, workspace: Path) -> None:
        write(workspace, {"a.py": "x = 1\n", "ruff.toml": "no-such-setting = 1\n"})
        code, document = run_and_read(workspace, "lint.py")
        assert (code, document["status"]) == (1, "error")
        assert "no-such-setting" in document["reason"]


def test_dependencies_declared_and_imported(workspace: Path) -> None:
    write(
        workspace,
        {
            "pyproject.toml": "[project]\nname = 'x'\ndependencies = ['Django>=5,<6']\n"
            "[project.optional-dependencies]\ntest = ['pytest==9']\n",
            "requirements-dev.txt": "# tools\n-r requirements.txt\nruff==1.0  # lint\n"
            "uvicorn[standard]==2 ; python_version > '3'\nhttps://example.org/x.whl\n",
            "mine/__init__.py": "import os, yaml\nfrom mine.other import x\n",
            "mine/other.py": "from yaml import load\nfrom . import y\nimport rest_framework.x\n",
            "broken.py": "def (:\n",
        },
    )
    code, document = run_and_read(workspace, "dependencies.py")
    assert code == 0
    assert [(row["name"], row["version"]) for row in document["declared"]] == [
        ("Django", ">=5,<6"),
        ("pytest", "==9"),
        ("ruff", "==1.0"),
        ("uvicorn", "==2"),
    ]
    assert document["imported"] == [
        {"package": "rest_framework", "files": 1},
        {"package": "yaml", "files": 2},
    ]


class TestBuildWheel:
    """`build_wheel.py`"""

    def test_repository_without_a_backend_is_told_so(self, workspace: Path) -> None:
        result, text = run_tool(workspace, "build_wheel.py", "--directory", "dist")
        assert result.exit_code == 1
        assert "names no build backend" in text

    def test_backend_that_is_not_installed_is_named(self, workspace: Path) -> None:
        write(
            workspace,
            {"pyproject.toml": "[build-system]\nrequires = []\nbuild-backend = 'not_here.api'\n"},
        )
        result, text = run_tool(workspace, "build_wheel.py", "--directory", "dist")
        assert result.exit_code == 1
        assert "not_here" in text


class TestCheckLinks:
    """`check_links.py`"""

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("[a](a.txt) [web](https://example.org) [here](#here)", 0),
            ("[a](a%20b.txt#part)", 0),
            ("[a](a.txt) [b](missing.txt)", 1),
            ("no link at all", 1),
        ],
    )
    def test_links_lead_somewhere(self, workspace: Path, text: str, expected: int) -> None:
        write(workspace, {"report.md": text, "a.txt": "", "a b.txt": ""})
        result, _ = run_tool(workspace, "check_links.py", "report.md")
        assert result.exit_code == expected


REPOSITORY = {
    "pkg/__init__.py": "x = 1\n",
    "tests/test_pkg.py": PASSING,
    "requirements.txt": "PyYAML==6\n",
    "README.md": "a | b\n",
}


class TestCheckRepository:
    """`check_repository.yaml` on a repository of somebody's own."""

    def test_sound_repository_passes_every_step(self, workspace: Path) -> None:
        write(workspace, REPOSITORY)
        for step in load_playbook("check_repository.yaml").steps:
            assert run_step(workspace, step).outcome == "ok", step.id
            assert verify_step(workspace, step) == (), step.id
        report = (workspace / "countersign-report/report.md").read_text(encoding="utf-8")
        for words in ("4 files", "All tests passed.", "0 findings.", "PyYAML"):
            assert words in report

    def test_second_run_does_not_count_the_report_of_the_first(self, workspace: Path) -> None:
        write(workspace, REPOSITORY)
        plan = load_playbook("check_repository.yaml")
        for step in [*plan.steps, *plan.steps]:
            run_step(workspace, step)
        report = (workspace / "countersign-report/report.md").read_text(encoding="utf-8")
        assert "4 files" in report
        assert "No file changed since the inventory." in report

    def test_unsound_repository_still_gets_its_report(self, workspace: Path) -> None:
        write(
            workspace,
            REPOSITORY
            | {"tests/test_pkg.py": FAILING, "bad.py": "def (:\n", "c.py": "import os\n"},
        )
        outcomes = {
            step.id: run_step(workspace, step).exit_code
            for step in load_playbook("check_repository.yaml").steps
        }
        assert outcomes == {
            "inventory": 0,
            "compile": 1,
            "lint": 1,
            "tests": 1,
            "dependencies": 0,
            "report": 0,
        }
        report = (workspace / "countersign-report/report.md").read_text(encoding="utf-8")
        for words in ("**Tests failed.**", "on purpose", "bad.py:1", "F401"):
            assert words in report

    def test_empty_repository_passes(self, workspace: Path) -> None:
        for step in load_playbook("check_repository.yaml").steps:
            assert run_step(workspace, step).outcome == "ok", step.id
