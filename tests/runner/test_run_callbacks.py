"""What the caller is told and may say; and nothing of ours leaks or breaks over many runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orchestration.runner.command import CommandSpec, run_command
from orchestration.runner.launch import LAUNCHER
from tests.runner.conftest import Run, is_running, wait_until

SLEEPER = "import time; time.sleep(600)"
MEBIBYTE = 1024 * 1024


def test_reason_to_stop_ends_the_command(run: Run) -> None:
    asked: list[int] = []

    def should_stop() -> str | None:
        asked.append(1)
        return "the task was cancelled" if len(asked) > 1 else None

    ran = run("sleep", "600", should_stop=should_stop)
    assert (ran.result.outcome, ran.result.detail) == ("stopped", "the task was cancelled")
    assert ran.result.duration_seconds < 20.0


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


def test_launcher_runs_on_the_standard_library_and_little_of_it() -> None:
    code = (
        "import sys; before = set(sys.modules); sys.path.insert(0, sys.argv[1]); "
        "import orchestration.runner.launcher; print(*sorted(set(sys.modules) - before))"
    )
    root = str(Path(__file__).resolve().parents[2])
    answer = subprocess.run(  # noqa: S603 (our own test program)
        [sys.executable, "-I", "-S", "-c", code, root], capture_output=True, text=True, check=True
    )
    modules = set(answer.stdout.split())
    assert "orchestration.runner.monitor" in modules
    ours = {name for name in modules if name.startswith("orchestration")}
    assert {name.partition(".")[0] for name in modules - ours} <= sys.stdlib_module_names
    assert not modules & {"subprocess", "dataclasses", "inspect", "asyncio", "logging", "threading"}
