"""What a command is given and how it ends: arguments, environment, directory, outcomes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from orchestration.errors import Invalid, WorkspaceError
from orchestration.runner.command import CommandSpec, check_expectations, run_command
from orchestration.runner.launch import LAUNCHER
from orchestration.runner.proc import TOKEN_VARIABLE
from tests.runner.conftest import Run

SLEEPER = "import time; time.sleep(600)"
MEBIBYTE = 1024 * 1024


def test_success_has_exit_code_output_and_group(run: Run) -> None:
    ran = run("echo", "hello")
    assert (ran.result.outcome, ran.result.exit_code) == ("ok", 0)
    assert ran.text == ran.result.stdout_tail == "hello\n"
    assert ran.result.output_bytes == 6
    assert ran.groups == [ran.result.pgid]
    assert not ran.result.truncated


def test_exit_code_of_a_failure_is_kept(run: Run) -> None:
    ran = run("sh", "-c", "exit 7")
    assert (ran.result.outcome, ran.result.exit_code) == ("failed", 7)


def test_death_by_signal_is_a_failure_without_exit_code(run: Run) -> None:
    ran = run("sh", "-c", "kill -SEGV $$")
    assert (ran.result.outcome, ran.result.exit_code) == ("failed", None)
    assert "SIGSEGV" in ran.result.detail


def test_missing_program_is_not_found(run: Run) -> None:
    ran = run("no-such-program-anywhere")
    assert (ran.result.outcome, ran.result.exit_code) == ("not_found", None)
    assert "no-such-program-anywhere" in ran.result.detail


def test_file_without_permission_is_not_executable(run: Run, workspace: Path) -> None:
    (workspace / "plain.sh").write_text("#!/bin/sh\n")
    assert run("./plain.sh").result.outcome == "not_executable"


def test_program_in_the_workspace_is_found_by_its_path_only(run: Run, workspace: Path) -> None:
    program = workspace / "greet"
    program.write_text("#!/bin/sh\necho from the workspace\n")
    program.chmod(0o755)
    assert run("./greet").text == "from the workspace\n"
    assert run("greet").result.outcome == "not_found"


def test_relative_entry_of_our_path_is_not_passed_on(
    run: Run, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "greet").write_text("#!/bin/sh\necho bad\n")
    (workspace / "greet").chmod(0o755)
    monkeypatch.setenv("PATH", f".::{os.environ['PATH']}")
    assert run("greet").result.outcome == "not_found"


def test_path_that_cannot_be_entered_does_not_hide_that_a_program_is_missing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()  # closed to everybody, root included
    monkeypatch.setenv("PATH", f"{tmp_path / 'file'}:{tmp_path / 'gone'}:{os.environ['PATH']}")
    ran = run("no-such-program-anywhere")
    assert ran.result.outcome == "not_found"
    assert str(tmp_path) not in run("printenv", "PATH").text


def test_environment_holds_nothing_of_ours(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "do-not-leak")
    monkeypatch.setenv("DATABASE_URL", "postgres://do-not-leak")
    monkeypatch.setenv("PYTHONPATH", "/do-not-leak")
    ran = run("env", environment={"STEP": "2a"})
    variables = dict(line.split("=", 1) for line in ran.text.splitlines())
    assert variables.keys() == {
        "PATH", "HOME", "LANG", "TMPDIR", "STEP", "PYTHONDONTWRITEBYTECODE", TOKEN_VARIABLE,
    }  # fmt: skip
    assert variables["LANG"] == "C.UTF-8"
    assert "do-not-leak" not in ran.text


def test_a_fix_within_the_second_of_the_run_before_it_is_run(run: Run, workspace: Path) -> None:
    module = workspace / "sums.py"
    said = []
    for number in (1, 2):
        module.write_text(f"answer = {number}\n")
        os.utime(module, (1_000_000_000, 1_000_000_000))
        said.append(run(sys.executable, "-c", "import sums; print(sums.answer)").text.strip())
    assert said == ["1", "2"]
    assert not (workspace / "__pycache__").exists()


def test_environment_of_the_processes_above_is_empty_too(
    run_python: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "do-not-leak")
    LAUNCHER.close()  # so that it starts again, under the secret
    ran = run_python(
        "import os, pathlib\n"
        "pid = os.getppid()\n"
        "print(pathlib.Path(f'/proc/{pid}/environ').read_bytes())\n"
    )
    assert ran.result.outcome == "ok"
    assert "do-not-leak" not in ran.text


def test_private_directory_is_deleted_with_its_content(run_python: Run) -> None:
    ran = run_python(
        "import os, pathlib\n"
        "assert os.environ['HOME'] == os.environ['TMPDIR']\n"
        "home = pathlib.Path(os.environ['HOME'])\n"
        "(home / 'deep' / 'er').mkdir(parents=True)\n"
        "(home / 'deep' / 'er' / 'file').write_text('x')\n"
        "print(home)\n"
    )
    home = Path(ran.text.strip())
    assert home.is_absolute()
    assert not home.exists()


def test_given_home_is_used_and_kept(run: Run, tmp_path: Path) -> None:
    ran = run("sh", "-c", "echo kept > $HOME/note", home=tmp_path)
    assert ran.result.outcome == "ok"
    assert (tmp_path / "note").read_text() == "kept\n"


def test_directory_is_inside_the_workspace(run: Run, workspace: Path) -> None:
    (workspace / "sub").mkdir()
    assert run("pwd", cwd="sub").text == f"{workspace / 'sub'}\n"


@pytest.mark.parametrize("cwd", ["..", "/", "sub/../..", "out", "missing", "a\0b", "file"])
def test_directory_outside_or_missing_is_refused(run: Run, workspace: Path, cwd: str) -> None:
    (workspace / "out").symlink_to("/")
    (workspace / "file").write_text("")
    with pytest.raises(WorkspaceError):
        run("pwd", cwd=cwd)


@pytest.mark.parametrize(
    "spec",
    [
        {"argv": ()},
        {"argv": ("",)},
        {"argv": ("echo", "a\0b")},
        {"argv": ("echo", "\ud800")},
        {"argv": ("echo",), "environment": {"A=B": "c"}},
        {"argv": ("echo",), "environment": {"": "c"}},
        {"argv": ("echo",), "environment": {"A": "\0"}},
        {"argv": ("echo",), "memory_limit_bytes": 1},
    ],
)
def test_what_no_program_can_be_given_is_refused(workspace: Path, spec: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        run_command(
            CommandSpec(workspace=workspace, **spec),  # type: ignore[arg-type]
            on_output=lambda text: None,
            on_start=lambda pgid: None,
            should_stop=lambda: None,
        )


def test_arguments_arrive_as_they_are(run_python: Run) -> None:
    arguments = ["", "two words", "$HOME", "*", "漢字", "caf\udce9", "new\nline"]
    ran = run_python("import sys, os; print([os.fsencode(a) for a in sys.argv[1:]])", *arguments)
    assert ran.text.strip() == str([os.fsencode(argument) for argument in arguments])


def test_argument_list_beyond_the_system_is_not_executable(run: Run) -> None:
    ran = run("true", *["x" * 100_000] * 40)
    assert (ran.result.outcome, ran.result.exit_code) == ("not_executable", None)


def test_standard_input_is_empty(run: Run) -> None:
    assert run("cat").result.outcome == "ok"


@pytest.mark.parametrize(
    ("code", "expected", "text", "faults"),
    [
        ("print('3 passed')", 0, "3 passed", 0),
        ("print('3 passed')", 0, None, 0),
        ("print('2 passed')", 0, "3 passed", 1),
        ("print('3 passed'); exit(2)", 0, "3 passed", 1),
        ("print('3 passed'); exit(2)", 2, "3 passed", 0),
        ("print('none'); exit(2)", 0, "3 passed", 2),
        ("import os; os.abort()", 0, None, 1),
    ],
)
def test_expectations(
    run: Run, workspace: Path, code: str, expected: int, text: str | None, faults: int
) -> None:
    spec = CommandSpec(
        argv=(sys.executable, "-c", code),
        workspace=workspace,
        expect_exit_code=expected,
        expect_stdout_contains=text,
    )
    result = run(*spec.argv, expect_exit_code=expected, expect_stdout_contains=text).result
    assert len(check_expectations(spec, result)) == faults


def test_expected_text_is_found_far_from_the_tail_and_across_reads(run_python: Run) -> None:
    code = (
        "import os, time\n"
        "os.write(1, b'12 pas'); time.sleep(0.1); os.write(1, b'sed')\n"
        "os.write(1, b'x' * 100_000)\n"
    )
    ran = run_python(code, expect_stdout_contains="12 passed")
    assert ran.result.is_expected_text_found
    assert "12 passed" not in ran.result.stdout_tail


def test_command_that_did_not_end_by_itself_meets_no_expectation(run: Run, workspace: Path) -> None:
    result = run("sleep", "600", timeout_seconds=0.2).result
    faults = check_expectations(CommandSpec(argv=("sleep", "600"), workspace=workspace), result)
    assert len(faults) == 1
    assert "timed_out" in faults[0]
