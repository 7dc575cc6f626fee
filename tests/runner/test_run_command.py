"""The runner: outcomes, environment, output, limits, callbacks; no process or file stays behind."""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orchestration.errors import Invalid, WorkspaceError
from orchestration.runner.command import CommandSpec, check_expectations, run_command
from orchestration.runner.launch import LAUNCHER
from orchestration.runner.proc import TOKEN_VARIABLE
from tests.runner.conftest import Run, is_running, wait_until

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


def test_environment_holds_nothing_of_ours(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "do-not-leak")
    monkeypatch.setenv("DATABASE_URL", "postgres://do-not-leak")
    monkeypatch.setenv("PYTHONPATH", "/do-not-leak")
    ran = run("env", environment={"STEP": "2a"})
    variables = dict(line.split("=", 1) for line in ran.text.splitlines())
    assert variables.keys() == {"PATH", "HOME", "LANG", "TMPDIR", "STEP", TOKEN_VARIABLE}
    assert variables["LANG"] == "C.UTF-8"
    assert "do-not-leak" not in ran.text


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


def test_both_streams_come_in_the_order_written(run: Run) -> None:
    ran = run("sh", "-c", "echo 1; echo 2 >&2; echo 3")
    assert ran.text == "1\n2\n3\n"


def test_invalid_utf8_and_nul_are_replaced(run_python: Run) -> None:
    ran = run_python("import os; os.write(1, b'a\\xff\\xfeb\\0c \\xe6\\xbc')")
    assert ran.text == ran.result.stdout_tail == "a\ufffd\ufffdb\ufffdc \ufffd"


def test_character_cut_by_two_reads_stays_whole(run_python: Run) -> None:
    code = "import os, time\nfor b in '漢字\\n'.encode(): os.write(1, bytes([b])); time.sleep(0.01)"
    assert run_python(code).text == "漢字\n"


def test_output_comes_while_the_command_runs(run: Run, workspace: Path) -> None:
    os.mkfifo(workspace / "gate")
    seen: list[str] = []

    def answer(text: str) -> None:
        seen.append(text)
        if "ready" in text:
            (workspace / "gate").write_text("go\n")

    result = run_command(
        CommandSpec(
            argv=("sh", "-c", "echo ready; read word < gate; echo $word"), workspace=workspace
        ),
        on_output=answer,
        on_start=lambda pgid: None,
        should_stop=lambda: None,
    )
    assert result.outcome == "ok"
    assert seen == ["ready\n", "go\n"]


def test_line_without_end_comes_while_the_command_runs(workspace: Path) -> None:
    os.mkfifo(workspace / "gate")
    seen: list[str] = []

    def answer(text: str) -> None:
        seen.append(text)
        if text == "your name? ":
            (workspace / "gate").write_text("go\n")

    result = run_command(
        CommandSpec(
            argv=("sh", "-c", "printf 'your name? '; read word < gate"), workspace=workspace
        ),
        on_output=answer,
        on_start=lambda pgid: None,
        should_stop=lambda: None,
    )
    assert (result.outcome, seen) == ("ok", ["your name? "])


def test_whole_lines_are_handed_on_together(run_python: Run) -> None:
    ran = run_python("print('\\n'.join(map(str, range(100_000))))")
    assert ran.text.splitlines() == [str(number) for number in range(100_000)]
    assert all(piece.endswith("\n") for piece in ran.pieces)
    assert len(ran.pieces) < 1000


def test_hundred_megabytes_stop_at_the_limit_and_cost_no_memory(run: Run) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ran = run("sh", "-c", "head -c 100000000 /dev/zero | tr '\\0' x", output_limit_bytes=MEBIBYTE)
    assert ran.result.outcome == "output_limit"
    assert ran.result.exit_code is None
    assert len(ran.text) == MEBIBYTE
    assert ran.result.output_bytes > MEBIBYTE
    assert ran.result.truncated
    assert len(ran.result.stdout_tail) == 8192
    grown_bytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown_bytes < 16 * MEBIBYTE


def test_hundred_megabytes_within_the_limit_cost_no_memory(workspace: Path) -> None:
    counts: list[int] = []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = run_command(
        CommandSpec(
            argv=("head", "-c", "100000000", "/dev/zero"),
            workspace=workspace,
            output_limit_bytes=100_000_000,
        ),
        on_output=lambda text: counts.append(len(text)),
        on_start=lambda pgid: None,
        should_stop=lambda: None,
    )
    assert (result.outcome, result.output_bytes, sum(counts)) == ("ok", 100_000_000, 100_000_000)
    grown_bytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown_bytes < 16 * MEBIBYTE


def test_output_of_exactly_the_limit_is_fine(run: Run) -> None:
    ran = run("printf", "12345678", output_limit_bytes=8)
    assert (ran.result.outcome, ran.result.truncated) == ("ok", False)
    ran = run("printf", "123456789", output_limit_bytes=8)
    assert (ran.result.outcome, ran.text) == ("output_limit", "12345678")


def test_endless_command_times_out(run_python: Run) -> None:
    ran = run_python("while True: pass", timeout_seconds=0.3)
    assert (ran.result.outcome, ran.result.exit_code) == ("timed_out", None)
    assert 0.3 <= ran.result.duration_seconds < 2.0


def test_command_that_ignores_sigterm_is_killed_after_the_grace(run_python: Run) -> None:
    code = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEPER}"
    ran = run_python(code, timeout_seconds=0.5)
    assert ran.result.outcome == "timed_out"
    assert 2.4 <= ran.result.duration_seconds < 5.0


def test_command_may_clean_up_on_sigterm_but_stays_timed_out(run: Run, workspace: Path) -> None:
    code = "trap 'echo tidy > note; exit 0' TERM; sleep 600 & wait"
    ran = run("sh", "-c", code, timeout_seconds=0.5)
    assert (workspace / "note").read_text() == "tidy\n"
    assert (ran.result.outcome, ran.result.exit_code) == ("timed_out", None)


def test_signals_that_we_ignore_work_in_commands(run: Run) -> None:
    assert signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN
    ran = run("sh", "-c", "kill -PIPE $$; echo survived")
    assert "SIGPIPE" in ran.result.detail
    ran = run("sh", "-c", "kill -TERM $$; echo survived")
    assert "SIGTERM" in ran.result.detail


def test_background_children_end_with_their_command(run: Run) -> None:
    ran = run("sh", "-c", "sleep 600 & echo $!")
    assert ran.result.outcome == "ok"
    assert ran.result.duration_seconds < 5.0
    assert not is_running(int(ran.text))


def test_child_that_left_the_session_ends_with_its_command(run_python: Run) -> None:
    ran = run_python(
        "import os, sys, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        print(os.getpid(), flush=True)\n"
        f"        {SLEEPER}\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "time.sleep(0.2)\n"
    )
    assert ran.result.outcome == "ok"
    assert not is_running(int(ran.text))


def test_timeout_ends_children_that_ignore_sigterm(run_python: Run) -> None:
    ran = run_python(
        "import os, signal\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "print(os.getpid(), flush=True)\n"
        f"{SLEEPER}\n",
        timeout_seconds=0.5,
    )
    pids = [int(word) for word in ran.text.split()]
    assert ran.result.outcome == "timed_out"
    assert len(pids) == 2
    assert not any(is_running(pid) for pid in pids)


def test_allocation_beyond_the_limit_fails(run_python: Run) -> None:
    ran = run_python("x = bytearray(2**30)", memory_limit_bytes=256 * MEBIBYTE)
    assert ran.result.outcome == "failed"
    assert "MemoryError" in ran.text


def test_many_processes_share_one_memory_limit(run_python: Run) -> None:
    ran = run_python(
        "import os\n"
        "for _ in range(4):\n"
        "    if os.fork() == 0:\n"
        "        break\n"
        "x = b'x' * (60 * 2**20)\n"
        f"{SLEEPER}\n",
        memory_limit_bytes=150 * MEBIBYTE,
        timeout_seconds=30,
    )
    assert ran.result.outcome == "memory_limit"
    assert str(150 * MEBIBYTE) in ran.result.detail


def test_pages_that_forked_processes_share_count_once(run_python: Run) -> None:
    ran = run_python(
        "import os, time\n"
        "x = b'x' * (60 * 2**20)\n"
        "for _ in range(4):\n"
        "    if os.fork() == 0:\n"
        "        break\n"
        "time.sleep(0.5)\n",
        memory_limit_bytes=150 * MEBIBYTE,
        timeout_seconds=30,
    )
    assert ran.result.outcome == "ok"


def test_too_many_processes_end_the_command(run_python: Run) -> None:
    ran = run_python(
        "import os, time\n"
        "for _ in range(60):\n"
        "    if os.fork() == 0:\n"
        f"        {SLEEPER}\n"
        f"{SLEEPER}\n",
        max_processes=30,
        timeout_seconds=30,
    )
    assert ran.result.outcome == "process_limit"


def test_file_beyond_the_limit_cannot_be_written(run: Run, workspace: Path) -> None:
    ran = run("sh", "-c", "head -c 5000000 /dev/zero > big", file_limit_bytes=1_000_000)
    assert ran.result.outcome == "failed"
    assert (workspace / "big").stat().st_size == 1_000_000


def test_reason_to_stop_ends_the_command(run: Run) -> None:
    asked: list[int] = []

    def should_stop() -> str | None:
        asked.append(1)
        return "the task was cancelled" if len(asked) > 1 else None

    ran = run("sleep", "600", should_stop=should_stop)
    assert (ran.result.outcome, ran.result.detail) == ("stopped", "the task was cancelled")
    assert ran.result.duration_seconds < 5.0


def test_reason_to_stop_before_the_start_keeps_the_command_from_starting(
    run: Run, workspace: Path
) -> None:
    ran = run("touch", "started", should_stop=lambda: "lease lost")
    assert ran.result.outcome == "stopped"
    assert not (workspace / "started").exists()


def test_group_is_told_before_the_command_can_act(workspace: Path) -> None:
    def on_start(pgid: int) -> None:
        assert is_running(pgid)
        assert not wait_until((workspace / "started").exists, seconds=0.2)

    result = run_command(
        CommandSpec(argv=("touch", "started"), workspace=workspace),
        on_output=lambda text: None,
        on_start=on_start,
        should_stop=lambda: None,
    )
    assert result.outcome == "ok"
    assert (workspace / "started").exists()


@pytest.mark.parametrize("broken", ["on_start", "on_output", "should_stop"])
def test_error_in_a_callback_ends_the_command_and_is_raised(workspace: Path, broken: str) -> None:
    groups: list[int] = []
    calls: list[str] = []

    def act(name: str) -> None:
        calls.append(name)
        if name == broken and calls.count(name) == (2 if name == "should_stop" else 1):
            raise ZeroDivisionError(name)

    def on_start(pgid: int) -> None:
        groups.append(pgid)
        act("on_start")

    with pytest.raises(ZeroDivisionError):
        run_command(
            CommandSpec(argv=("sh", "-c", "echo hello; sleep 600"), workspace=workspace),
            on_output=lambda text: act("on_output"),
            on_start=on_start,
            should_stop=lambda: act("should_stop"),
        )
    assert not is_running(groups[0])


def test_two_hundred_commands_leave_no_file_thread_or_process(run: Run) -> None:
    run("true")
    files, threads = len(list(Path("/proc/self/fd").iterdir())), threading.active_count()
    outcomes = [run("true").result.outcome for _ in range(200)]
    assert outcomes == ["ok"] * 200
    assert len(list(Path("/proc/self/fd").iterdir())) == files
    assert threading.active_count() == threads


def test_commands_run_side_by_side_from_many_threads(run: Run) -> None:
    with ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(lambda number: run("echo", str(number)).text, range(64)))
    assert texts == [f"{number}\n" for number in range(64)]


def test_command_sees_no_file_of_ours(run_python: Run) -> None:
    ran = run_python("import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))")
    assert ran.text == "[0, 1, 2, 3]\n"  # 3 is the listing itself


def test_launcher_that_was_killed_is_started_again(run: Run) -> None:
    run("true")
    before = LAUNCHER.pid
    assert before is not None
    os.kill(before, signal.SIGKILL)
    assert wait_until(lambda: not is_running(before))
    assert run("echo", "again").text == "again\n"
    assert LAUNCHER.pid != before


def test_killed_monitor_takes_its_command_along(workspace: Path) -> None:
    groups: list[int] = []

    scratch: list[str] = []

    def kill_parent(text: str) -> None:
        parent, directory = text.split()
        assert Path(directory).is_dir()
        scratch.append(directory)
        os.kill(int(parent), signal.SIGKILL)

    result = run_command(
        CommandSpec(
            argv=("sh", "-c", "echo $PPID $TMPDIR; sleep 600; echo survived"), workspace=workspace
        ),
        on_output=kill_parent,
        on_start=groups.append,
        should_stop=lambda: None,
    )
    assert (result.outcome, result.exit_code) == ("failed", None)
    assert "killed" in result.detail
    assert not is_running(groups[0])
    assert not Path(scratch[0]).exists()


def test_launcher_outlives_the_thread_that_started_it(run: Run) -> None:
    LAUNCHER.close()
    starter = threading.Thread(target=run, args=("true",))
    starter.start()
    starter.join()
    ran = run("sh", "-c", "sleep 0.2; echo alive")
    assert (ran.result.outcome, ran.text) == ("ok", "alive\n")


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
